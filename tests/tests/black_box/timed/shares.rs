//! Shares and reservations on a device that does not know of them: what real clients
//! of one emulated array get of it.
//!
//! The clients ask for all that they can get, and each has more requests under way
//! than the array has room for before it is overrun. Without a window the array would
//! serve both alike.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sterna_tests::wait::seconds;
use sterna_tests::{CheckerOptions, Daemon, Stage, until};

/// Some hundred requests per second, and no cache that makes a client's luck.
const ARRAY: &str = "array://old-fc?spindles=4&cache=0&write-cache=0";

/// Of each client.
const DEPTH: u32 = 32;

/// How long the clients are looked at; some hundred requests.
const SPAN: Duration = seconds(3);

/// The window follows the latency in steps of a second.
const SETTLES_WITHIN: Duration = seconds(90);

/// A stage with the disks `a` and `b` on the array, each in a class of its name.
fn stage() -> Stage {
    let stage = Stage::new();
    stage.datastore("array", ARRAY);
    for name in ["a", "b"] {
        stage.daemon.sterna(&format!("disk create {name} --size 256M --on array")).ok();
        stage.daemon.sterna(&format!("class create {name} {name}")).ok();
    }
    stage
}

/// Requests that the disks `a` and `b` have carried out so far.
fn carried_out(daemon: &Daemon) -> [f64; 2] {
    ["a", "b"].map(|disk| {
        let activity = &daemon.disk(disk)["activity"];
        let count = |what: &str| activity[what].as_u64().expect("a count");
        (count("reads") + count("writes")) as f64
    })
}

/// IO/s of both.
fn pace(daemon: &Daemon) -> [f64; 2] {
    let (before, since) = (carried_out(daemon), Instant::now());
    std::thread::sleep(SPAN);
    let (after, span) = (carried_out(daemon), since.elapsed().as_secs_f64());
    [0, 1].map(|at| (after[at] - before[at]) / span)
}

/// Waits until what both get is `right`; gives it.
#[track_caller]
fn settled(daemon: &Daemon, what: &str, right: impl Fn([f64; 2]) -> bool) -> [f64; 2] {
    let mut last = [0.0; 2];
    until(what, SETTLES_WITHIN, || {
        last = pace(daemon);
        eprintln!("{what}: {last:.0?} IO/s");
        right(last).then_some(last)
    })
}

/// The disk `a` gets at least this part of a reservation of so many IO/s, and goes on
/// getting it; and its neighbour gets something, too.
#[track_caller]
fn is_kept(daemon: &Daemon, reserved: f64, part: f64) {
    daemon.sterna(&format!("class set a --reservation {reserved}iops")).ok();
    let held = |[a, _]: [f64; 2]| a >= reserved * part;
    settled(daemon, "the reservation", held);
    for _ in 0..3 {
        let now = pace(daemon);
        assert!(held(now), "it does not stay: {now:?} IO/s of {reserved} IO/s");
        assert!(now[1] > 0.0, "the neighbour gets nothing at all");
    }
}

#[test]
fn two_clients_of_an_array_get_what_their_shares_say() {
    let stage = stage();
    let clients = ["a", "b"].map(|it| stage.checker(it, &CheckerOptions::hard(DEPTH)));
    let even = |[a, b]: [f64; 2]| (0.7..1.4).contains(&(a / b));
    settled(&stage.daemon, "what is not asked for", even);
    stage.daemon.sterna("class set a --shares 3000").ok();
    let near = |[a, b]: [f64; 2]| (2.2..4.0).contains(&(a / b));
    settled(&stage.daemon, "3000 shares against 1000", near);
    for _ in 0..3 {
        let now = pace(&stage.daemon);
        assert!(near(now), "it does not stay: {now:?} IO/s");
    }
    stage.daemon.sterna("class set a --shares 1000").ok();
    settled(&stage.daemon, "equal shares again", even);
    for client in clients {
        client.finish();
    }
}

#[test]
fn a_reservation_holds_beside_a_neighbour_with_most_of_the_shares() {
    let stage = stage();
    stage.daemon.sterna("class set b --shares 9000").ok();
    let clients = ["a", "b"].map(|it| stage.checker(it, &CheckerOptions::hard(DEPTH)));
    let crowded_out = |[a, b]: [f64; 2]| a < b / 5.0;
    let [a, b] = settled(&stage.daemon, "a tenth of the shares", crowded_out);
    // Half of what there is, and far more than the shares give it.
    let reserved = ((a + b) / 2.0).floor();
    is_kept(&stage.daemon, reserved, 0.85);
    for client in clients {
        client.finish();
    }
}

#[test]
fn a_reservation_holds_where_the_array_is_slow_to_nobody() {
    let stage = stage();
    // 24 at once take it 30 ms, and it has no reason to prefer anybody.
    let depths = [("a", 4), ("b", 16)];
    let clients =
        depths.map(|(it, depth)| stage.checker(it, &CheckerOptions::hard(depth)));
    let [a, b] = pace(&stage.daemon);
    eprintln!("nothing is reserved: {a:.0} and {b:.0} IO/s");
    // Twice of what its few requests have among the many.
    let reserved = (2.0 * a).floor();
    is_kept(&stage.daemon, reserved, 0.9);
    for client in clients {
        client.finish();
    }
}

#[test]
fn what_is_lacking_of_a_reservation_is_said() {
    let stage = stage();
    // One request at a time: the array cannot answer them any sooner.
    let client = stage.checker("a", &CheckerOptions::hard(1));
    let [alone, _] = pace(&stage.daemon);
    let reserved = (2.0 * alone).floor();
    stage.daemon.sterna(&format!("class set a --reservation {reserved}iops")).ok();
    let said = until("it to be said", seconds(60), || {
        let notes = stage.daemon.json("class show a")["notes"].to_string();
        notes.contains("of its reservation").then_some(notes)
    });
    assert!(
        said.contains("datastore array: the class has") && said.contains(" % of"),
        "{said}"
    );
    let attained = &stage.daemon.json("class show a")["attained"];
    assert_eq!(attained["state"], "alone", "{attained}");
    assert_eq!(stage.daemon.json("class show b")["attained"], Value::Null);
    client.finish();
    let idle = until("it to be idle", seconds(10), || {
        let attained = stage.daemon.json("class show a")["attained"].clone();
        (attained["state"] == "idle").then_some(attained)
    });
    assert_eq!((&idle["has"]["iops"], &idle["percent"]), (&json!(0), &json!(0.0)));
}

#[test]
fn a_reservation_that_cannot_be_kept_is_warned_of() {
    let stage = stage();
    let depths = [("a", 1), ("b", 16)];
    let clients =
        depths.map(|(it, depth)| stage.checker(it, &CheckerOptions::hard(depth)));
    let [a, _] = pace(&stage.daemon);
    let warnings = || stage.daemon.json("status")["warnings"].to_string();
    assert_eq!(warnings(), "[]");
    // One request at a time is not answered so much sooner by anything.
    let reserved = (20.0 * a).floor();
    stage.daemon.sterna(&format!("class set a --reservation {reserved}iops")).ok();
    let said = until("a warning", seconds(60), || {
        let said = warnings();
        said.contains("class a").then_some(said)
    });
    assert!(said.contains("Sterna slows other classes as far as this helps"), "{said}");
    let shown = stage.daemon.sterna("class show a").ok();
    assert!(shown.stdout.contains("lacking since"), "{}", shown.stdout);
    // What was said was of another reservation.
    stage.daemon.sterna("class set a --reservation 1iops").ok();
    assert_eq!(warnings(), "[]");
    until("it to be kept", seconds(10), || {
        let state = stage.daemon.json("class show a")["attained"]["state"].clone();
        (state == "kept").then_some(())
    });
    for client in clients {
        client.finish();
    }
}
