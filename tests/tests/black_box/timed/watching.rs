//! What `sterna top` and `sterna disk stats` show is what clients get.

use std::io::{BufRead, BufReader};

use serde_json::Value;
use sterna_tests::clients::Fio;
use sterna_tests::daemon::send_signal;
use sterna_tests::programs;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

/// A client of disk `name` with a steady load for so long.
fn load(stage: &Stage, name: &str, span: u64, rest: &str) -> Fio {
    let uri = stage.daemon.uri(name);
    let fio =
        Fio::start(&uri, &format!("time_based=1\nruntime={span}\nsize=16m\n{rest}"));
    until("the client to work", seconds(30), || {
        let iops = stage.daemon.disk(name)["activity"]["recent"]["iops"].as_f64();
        (iops > Some(0.0)).then_some(())
    });
    fio
}

fn row<'a>(top: &'a Value, name: &str) -> &'a Value {
    let rows = top["rows"].as_array().expect("rows");
    let found = rows.iter().find(|row| row["name"] == name);
    &found.unwrap_or_else(|| panic!("no row {name}: {top:#}"))["load"]
}

/// A figure, or 0 where there is none.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn lines(text: &str) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).expect("an object a line");
    text.lines().map(parse).collect()
}

#[test]
fn the_figures_are_those_of_the_client() {
    let Some(stage) = Stage::given(&["fio"]) else { return };
    stage.disk("a", 16 * MIB);
    let rest = "rw=randrw\nrwmixread=75\nbs=8k\niodepth=4\nrate_iops=600,200";
    let fio = load(&stage, "a", 9, rest);
    // The first second has the client's start in it.
    let answer = stage.daemon.sterna("top --batch --json --interval 2s --count 3").ok();
    let seen = lines(&answer.stdout);
    let client = fio.finish();
    assert_eq!(seen.len(), 3);
    let mean = |of: &dyn Fn(&Value) -> f64| {
        seen[1..].iter().map(|top| of(row(top, "a"))).sum::<f64>() / 2.0
    };
    for way in ["read", "write"] {
        let ours = mean(&|load| number(&load[way]["iops"]));
        let theirs = number(&client[way]["iops"]);
        assert!((ours / theirs - 1.0).abs() < 0.1, "{way}: {ours} and {theirs} IO/s");
        let rate = mean(&|load| number(&load[way]["bytes_per_second"]));
        assert!((rate / (ours * 8192.0) - 1.0).abs() < 0.001, "{rate} bytes/s");
        let ours = mean(&|load| number(&load[way]["response_us"]));
        let theirs = number(&client[way]["lat_ns"]["mean"]) / 1e3;
        assert!(ours > 0.0 && ours < theirs, "{way}: {ours} us here, {theirs} us there");
    }
}

#[test]
fn disks_count_for_their_class_and_their_datastore() {
    let Some(stage) = Stage::given(&["fio"]) else { return };
    for disk in ["a", "b", "idle"] {
        stage.disk(disk, 16 * MIB);
    }
    stage.daemon.sterna("class create web a b").ok();
    stage.daemon.sterna("disk create alone --size 16M --on there").ok();
    let steady = "rw=randread\nbs=4k\nrate_iops=300";
    let all = ["a", "b", "alone"].map(|disk| load(&stage, disk, 8, steady));
    let top = |by: &str| {
        let line = format!("top --by {by} --interval 2s --count 2 --json");
        lines(&stage.daemon.sterna(&line).ok().stdout).remove(1)
    };
    for (by, name) in [("class", "web"), ("datastore", "here")] {
        let top = top(by);
        let iops = number(&row(&top, name)["read"]["iops"]);
        assert!((540.0..660.0).contains(&iops), "{by}: {iops}");
        assert_eq!(number(&row(&top, name)["write"]["iops"]), 0.0);
        if by == "class" {
            // The rows are all that there is.
            let iops = number(&row(&top, "(no class)")["read"]["iops"]);
            assert!((270.0..330.0).contains(&iops), "in no class: {iops}");
        }
    }
    let disks = top("disk");
    assert_eq!(number(&row(&disks, "idle")["read"]["iops"]), 0.0);
    let total = number(&disks["total"]["read"]["iops"]);
    assert!((810.0..990.0).contains(&total), "all: {total}");
    assert_eq!(disks["disks"], 4);
    all.into_iter().for_each(|fio| drop(fio.finish()));
}

#[test]
fn what_is_copied_counts_for_both_datastores_and_for_its_class() {
    let stage = Stage::new();
    stage.disk_with_data("a", 64 * MIB, 64 * MIB);
    let id = stage.daemon.migrate("a --to there --rate 16M");
    let copied = |by: &str, name: &str, way: &str| {
        let top = stage.daemon.json(&format!("top --by {by} --count 1"));
        number(&row(&top, name)[way]["bytes_per_second"])
    };
    // Each on its own: the copy goes on for four seconds.
    for (by, name, way) in [
        ("datastore", "here", "read"),
        ("datastore", "there", "write"),
        ("class", "migration", "write"),
    ] {
        until("the copy to be seen", seconds(20), || {
            (copied(by, name, way) > 4.0 * MIB as f64).then_some(())
        });
    }
    stage.daemon.completed(id);
}

#[test]
fn stats_show_what_the_requests_are_like() {
    let Some(stage) = Stage::given(&["fio"]) else { return };
    // Slow enough that eight requests are under way when eight are asked for.
    let slow = stage.scratch.dir("slow");
    stage.datastore("slow", format!("{} --shape latency=2ms", slow.display()));
    stage.daemon.sterna("disk create a --size 16M --on slow").ok();
    let uri = stage.daemon.uri("a");
    Fio::start(&uri, "rw=write\nbs=64k\niodepth=1\nsize=16m").finish();
    Fio::start(&uri, "rw=randread\nbs=4k\niodepth=8\nsize=16m\nio_size=4m").finish();
    let stats = stage.daemon.json("disk stats a");
    assert_eq!(
        (&stats["write"]["operations"], &stats["read"]["operations"]),
        (&Value::from(256), &Value::from(1024),)
    );
    let count = |side: &str, what: &str, to: i64| {
        let buckets = stats[side]["pattern"][what].as_array().expect("buckets").iter();
        let found = buckets.filter(|bucket| bucket["to"] == to);
        found.map(|bucket| bucket["count"].as_u64().unwrap_or(0)).sum::<u64>()
    };
    assert_eq!(count("write", "length", 65_536), 256);
    assert_eq!(count("write", "distance", 0), 255, "in order");
    assert_eq!(count("read", "length", 4096), 1024);
    assert!(count("read", "distance", 0) < 50, "at random");
    assert_eq!(count("write", "outstanding", 1), 256);
    // Seven or eight at once, and never more.
    assert!(count("read", "outstanding", 8) > 64, "{stats:#}");
    assert_eq!(count("read", "outstanding", 12), 0);
    let [p50, p99] =
        ["p50_us", "p99_us"].map(|it| number(&stats["read"]["response"][it]));
    assert!(2000.0 <= p50 && p50 <= p99, "{p50} {p99}");
    let words = stage.daemon.sterna("disk stats a --histogram").ok().stdout;
    assert!(words.contains("64 KiB") && words.contains("█"), "{words}");
    assert!(words.lines().all(|line| line.chars().count() <= 80), "{words}");
    stage.daemon.sterna("disk stats b").fails_with(&["no disk", "sterna disk list"]);
}

#[test]
fn in_a_pipe_it_prints_rows_until_nobody_reads() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    let mut top = stage.daemon.piped("top --interval 100ms");
    let mut reader = BufReader::new(top.stdout.take().expect("it is piped"));
    let (mut moments, mut rows) = (0, 0);
    while moments < 3 {
        let mut line = String::new();
        reader.read_line(&mut line).expect("read a line");
        moments += usize::from(line.starts_with("# 20"));
        rows += usize::from(line.starts_with("a "));
        assert!(line.trim_end().chars().count() <= 80, "{line}");
    }
    assert_eq!(rows, 2);
    drop(reader);
    let status = until("it to end", seconds(20), || top.try_wait().expect("ask for it"));
    assert!(status.success(), "{status}");
}

#[test]
fn a_window_that_is_not_kept_is_refused() {
    let stage = Stage::new();
    let wrong = stage.daemon.sterna("top --interval 2y");
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.stderr.contains("a duration"), "{}", wrong.stderr);
    let wrong = stage.daemon.sterna("top --interval 2h --batch");
    assert!(wrong.stderr.contains("between 100ms and"), "{}", wrong.stderr);
}

#[test]
fn the_screen_obeys_its_keys() {
    let stage = Stage::new();
    for disk in ["alpha", "beta", "gamma"] {
        stage.disk(disk, MIB);
    }
    let mut top = stage.daemon.on_terminal("top --interval 200ms", 80, 24);
    let place = |text: &str, what: &str| {
        text.lines().position(|line| line.trim_start().starts_with(what))
    };
    top.shows("table", |text| place(text, "gamma").is_some() && text.contains("IO/S"));
    let text = top.text();
    assert!(text.contains("3 disks") && text.contains("q quit"), "{text}");
    assert!(place(&text, "alpha") < place(&text, "gamma"), "{text}");
    top.press("r");
    top.shows("other order", |text| place(text, "gamma").is_some());
    // By name, from the last on: to the left of the first column is the name.
    top.press("\u{1b}[D");
    top.shows("names from the last on", |text| {
        place(text, "gamma") < place(text, "alpha")
    });
    top.press("/bet\r");
    top.shows("only one row", |text| {
        text.contains("filter: bet") && place(text, "alpha").is_none()
    });
    assert!(place(&top.text(), "beta").is_some(), "{}", top.text());
    top.press("s");
    top.shows("datastores", |text| text.contains("by datastore"));
    top.press("\u{1b}");
    top.shows("all datastores", |text| place(text, "there").is_some());
    top.press(" ");
    top.shows("a pause", |text| text.contains("paused"));
    top.press(" d");
    top.shows("disks", |text| !text.contains("paused") && place(text, "alpha").is_some());
    top.press("q");
    assert!(top.ended().success());
}

#[test]
fn the_screen_fits_and_the_terminal_is_put_back() {
    let stage = Stage::new();
    for disk in 0..40 {
        stage.disk(&format!("disk-with-quite-a-long-name-{disk:02}"), MIB);
    }
    for end in ["\u{3}", "TERM"] {
        let mut top = stage.daemon.on_terminal("top", 132, 16);
        // Wider than 80: more columns.
        // The whole of it: a terminal is read in pieces.
        top.shows("more columns, the first rows and the keys", |text| {
            text.contains("P50 ms")
                && text.contains("disk-with-quite-a-long-name-00")
                && text.lines().last().is_some_and(|line| line.contains("q quit"))
        });
        let text = top.text();
        assert!(!text.contains("disk-with-quite-a-long-name-39"), "{text}");
        top.press(&"\u{1b}[B".repeat(60));
        top.shows("the last", |text| text.contains("-name-39"));
        match end {
            "TERM" => send_signal(top.child(), rustix::process::Signal::TERM),
            key => top.press(key),
        }
        assert!(top.ended().success(), "{end:?}");
    }
}

#[test]
fn the_screen_ends_with_its_terminal_and_keeps_no_processor_busy() {
    let Some(stage) = Stage::given(&["/usr/bin/python3"]) else { return };
    // The program leads its session, as in a window that is closed.
    let script = "
import fcntl, os, pty, select, struct, sys, termios, time
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('4H', 24, 80, 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])
seen = b''
while b'q quit' not in seen:
    assert select.select([terminal], [], [], 20)[0], seen
    seen += os.read(terminal, 65536)
os.close(terminal)
until = time.time() + 20
while True:
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        code = os.waitstatus_to_exitcode(status)
        # With 1 if it was about to draw, and there was nothing to draw on.
        assert code in (0, 1), code
        sys.exit(0)
    assert time.time() < until, 'it goes on'
    time.sleep(0.05)
";
    let socket = stage.daemon.api_socket().to_str().expect("a plain path");
    let program = programs::sterna().to_str().expect("a plain path");
    let words = ["-c", script, program, "--socket", socket, "top"];
    programs::run("/usr/bin/python3", words);
}

#[test]
fn the_screen_says_that_the_daemon_is_gone_and_when_it_is_back() {
    let mut stage = Stage::new();
    stage.disk("alpha", MIB);
    let mut top = stage.daemon.on_terminal("top --interval 100ms", 80, 24);
    top.shows("the disk", |text| text.contains("alpha"));
    stage.daemon.stop();
    top.shows("the trouble", |text| text.contains("no daemon answers"));
    stage.daemon.restart();
    top.shows("the rows again", |text| !text.contains("no daemon answers"));
    top.press("q");
    assert!(top.ended().success());
}

/// The target is 0.5 % of a core. Run it alone: `cargo test -p sterna-tests --test
/// black_box timed::watching -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn what_sampling_512_disks_costs_of_which_64_are_busy() {
    const SPAN: std::time::Duration = seconds(20);
    let Some(stage) = Stage::given(&["fio"]) else { return };
    for disk in 0..512 {
        stage.disk(&format!("d{disk}"), MIB);
    }
    let sections = (1..64).map(|disk| {
        let uri = stage.daemon.uri(&format!("d{disk}"));
        format!("[d{disk}]\nuri={uri}\n{BUSY}\n")
    });
    const BUSY: &str = "time_based=1\nruntime=40\nsize=1m\nrw=randrw\nbs=4k\n\
                        rate_iops=25,25\nthread=1";
    let settings = format!("{BUSY}\n{}", sections.collect::<String>());
    let _fio = Fio::start(&stage.daemon.uri("d0"), &settings);
    until("64 disks to be busy", seconds(30), || {
        let top = stage.daemon.json("top --count 1");
        let rows = top["rows"].as_array().expect("rows").iter();
        let busy = rows.filter(|row| number(&row["load"]["read"]["iops"]) > 0.0);
        (busy.count() == 64).then_some(())
    });
    let before = cpu_of(stage.daemon.pid(), "sterna-samples");
    // Time is what is measured here; there is no event to wait for.
    std::thread::sleep(SPAN);
    let used = cpu_of(stage.daemon.pid(), "sterna-samples") - before;
    let part = used / SPAN.as_secs_f64() * 100.0;
    println!("the sampler takes {part:.2} % of a core");
    assert!(part < 0.5, "{part}");
}

/// The seconds that a process's thread has run.
fn cpu_of(process: u32, thread: &str) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("its threads");
    let of = |task: std::path::PathBuf| {
        let name = std::fs::read_to_string(task.join("comm")).ok()?;
        let times = std::fs::read_to_string(task.join("schedstat")).ok()?;
        let nanos: f64 = times.split_whitespace().next()?.parse().ok()?;
        (name.trim() == thread).then_some(nanos / 1e9)
    };
    tasks.flatten().filter_map(|task| of(task.path())).sum()
}

#[test]
fn a_person_who_waits_for_a_daemon_that_hangs_is_told_so() {
    let Some(stage) = Stage::given(&[]) else { return };
    let signal = |signal| {
        let pid = rustix::process::Pid::from_raw(stage.daemon.pid().cast_signed());
        rustix::process::kill_process(pid.expect("a process"), signal)
            .expect("signal it");
    };
    signal(rustix::process::Signal::STOP);
    let mut list = stage.daemon.on_terminal("datastore list", 80, 24);
    list.shows("that it waits", |text| text.contains("waiting for the daemon"));
    signal(rustix::process::Signal::CONT);
    assert!(list.ended().success());
    let text = list.text();
    assert!(text.contains("CAPACITY") && !text.contains("waiting"), "{text}");
}
