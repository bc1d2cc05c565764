//! `sterna disk stats`: what a disk's requests are like.
//!
//! Reads and writes stand side by side. With `--histogram` the buckets of vscsiStats
//! follow, each with its count, its part and a bar.

use sterna_api::{Bucket, DiskStats, Load, Pattern, RequestStats, SideLoad, Times};
use sterna_console::format::{bytes, count, iops, rate, response};
use sterna_console::output::Output;
use sterna_console::table::{Cell, Column, Style, Table};

/// How long a bar is that stands for all.
const BAR: usize = 19;
/// So many empty buckets in a row are left out.
const LEFT_OUT: usize = 3;
/// The width of a bucket's name.
const NAME: usize = 11;
/// The width of a bucket's count.
const COUNT: usize = 7;

/// A disk's requests in words.
pub(crate) fn show(stats: &DiskStats, histogram: bool, output: Output) -> String {
    let mut text = format!(
        "Disk {} on {}: {}, {} in flight\n\n",
        stats.name,
        stats.datastore,
        count(stats.connections, "client"),
        count(stats.in_flight, "request"),
    );
    text.push_str(&output.table(&figures(stats)));
    let others = [(stats.flushes, "flush"), (stats.zeroes, "zeroing")];
    let others = others.map(|(number, noun)| match (number, noun) {
        (1, noun) => format!("1 {noun}"),
        (number, "flush") => format!("{number} flushes"),
        (number, noun) => format!("{number} {noun}s"),
    });
    let errors = count(stats.errors, "error");
    text.push_str(&format!("\nand {}, {}, {errors}\n", others[0], others[1]));
    if histogram {
        text.push_str(&histograms(stats, output));
    }
    text
}

fn figures(stats: &DiskStats) -> Table {
    let columns = [("", Column::Left), ("READ", Column::Right), ("WRITE", Column::Right)];
    let mut table = Table::new(&columns);
    let recent = &stats.recent;
    heading(&mut table, &format!("the last {:.0} s", recent.window_s));
    add_recent(&mut table, recent);
    heading(&mut table, "since it is served");
    let mut row = |name: &str, of: &dyn Fn(&RequestStats) -> Option<String>| {
        let cells =
            [&stats.read, &stats.write].map(|side| of(side).unwrap_or("-".into()));
        // What no request had is left out.
        if name.is_empty() || cells.iter().any(|cell| cell != "-") {
            let [read, write] = cells;
            table.row(vec![format!("  {name}").into(), read.into(), write.into()]);
        }
    };
    row("requests", &|side| Some(side.operations.to_string()));
    row("bytes", &|side| Some(bytes(side.bytes)));
    row("in order", &|side| in_order(side.pattern.as_ref()?));
    for (name, of) in TIMES {
        for (figure, value) in FIGURES {
            let cell = |side: &RequestStats| Some(response(Some(value(&of(side)?))));
            row(&format!("{name}, {figure}"), &cell);
        }
    }
    table
}

/// What of the times is shown, by what.
type OfSide = fn(&RequestStats) -> Option<Times>;
type OfTimes = fn(&Times) -> f64;

const TIMES: [(&str, OfSide); 3] = [
    ("response", |side| side.response),
    // Where none has waited the service time is the response time.
    ("queue", |side| side.queue),
    ("service", |side| side.queue.and(side.service)),
];

const FIGURES: [(&str, OfTimes); 6] = [
    ("mean", |times| times.mean_us),
    ("p50", |times| times.p50_us),
    ("p95", |times| times.p95_us),
    ("p99", |times| times.p99_us),
    ("p99.9", |times| times.p999_us),
    ("longest", |times| times.max_us),
];

fn heading(table: &mut Table, text: &str) {
    let head = Cell::styled(text, Style::Head);
    table.row(vec![head, "".into(), "".into()]);
}

fn add_recent(table: &mut Table, recent: &Load) {
    let mut row = |name: &str, of: &dyn Fn(&SideLoad) -> String| {
        let [read, write] = [&recent.read, &recent.write].map(of);
        table.row(vec![format!("  {name}").into(), read.into(), write.into()]);
    };
    row("IO/s", &|side| iops(side.iops));
    row("rate", &|side| rate(side.bytes_per_second));
    row("response, mean", &|side| response(side.response_us));
}

/// The part of the requests that began where the one before, or one of the last few,
/// ended.
fn in_order(pattern: &Pattern) -> Option<String> {
    let part = |buckets: &[Bucket]| {
        let all: u64 = buckets.iter().map(|bucket| bucket.count).sum();
        let next = buckets.iter().find(|bucket| bucket.to == Some(0))?;
        (all > 0).then(|| 100.0 * next.count as f64 / all as f64)
    };
    part(&pattern.nearest).map(|part| format!("{part:.0} %"))
}

/// A histogram: its title, its unit, and where it is in a pattern.
type Histogram = (&'static str, Unit, fn(&Pattern) -> &[Bucket]);

const HISTOGRAMS: [Histogram; 6] = [
    ("LENGTH", Unit::Bytes, |pattern| &pattern.length),
    ("DISTANCE from the request before (sectors)", Unit::Plain, |it| &it.distance),
    ("DISTANCE from the nearest of the last 16", Unit::Plain, |it| &it.nearest),
    ("OUTSTANDING when a request came, with it", Unit::Plain, |it| &it.outstanding),
    ("INTERVAL since the request before", Unit::Micros, |it| &it.interval),
    ("RESPONSE TIME", Unit::Micros, |it| &it.response),
];

/// What a bucket's end is in.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Plain,
    Bytes,
    Micros,
}

impl Unit {
    /// A bucket's name: up to where it reaches, or beyond what it lies.
    fn name(self, to: Option<i64>, before: Option<i64>) -> String {
        match (to, before) {
            (Some(to), _) => self.value(to),
            (None, before) => format!("> {}", self.value(before.unwrap_or_default())),
        }
    }

    fn value(self, value: i64) -> String {
        match (self, value) {
            (Unit::Plain, value) => value.to_string(),
            // 4095 is no 4 KiB: what is not aligned must show as such.
            (Unit::Bytes, value) if value % 1024 == 0 => format!("{} KiB", value / 1024),
            (Unit::Bytes, value) => format!("{value} B"),
            (Unit::Micros, value @ 0..1_000) => format!("{value} us"),
            (Unit::Micros, value @ 1_000..1_000_000) => format!("{} ms", value / 1_000),
            (Unit::Micros, value) => format!("{} s", value / 1_000_000),
        }
    }
}

fn histograms(stats: &DiskStats, output: Output) -> String {
    let mut text = String::new();
    for (title, unit, of) in HISTOGRAMS {
        let sides = [&stats.read, &stats.write];
        let buckets = sides.map(|side| side.pattern.as_ref().map(of).unwrap_or_default());
        if let Some(rows) = rows(unit, buckets) {
            let title = output.head(title);
            let head = format!("{:NAME$}  {:<side$}WRITE", "", "READ", side = SIDE + 1);
            text.push_str(&format!("\n{title}\n{}\n{rows}", output.head(&head)));
        }
    }
    text
}

/// The width of a side: count, part and bar.
const SIDE: usize = COUNT + 5 + BAR + 2;

/// The rows from the first bucket that is not empty to the last, without long empty
/// stretches; nothing if all are.
fn rows(unit: Unit, sides: [&[Bucket]; 2]) -> Option<String> {
    let some = sides.into_iter().find(|side| !side.is_empty())?;
    let counts = |at: usize| sides.map(|side| side.get(at).map_or(0, |it| it.count));
    let full = |at: &usize| counts(*at) != [0, 0];
    let first = (0..some.len()).find(full)?;
    let last = (0..some.len()).rfind(full)?;
    let totals = sides.map(|side| side.iter().map(|bucket| bucket.count).sum::<u64>());
    let (mut text, mut at) = (String::new(), first);
    while at <= last {
        let empty = (at..last).take_while(|at| !full(at)).count();
        if empty >= LEFT_OUT {
            text.push_str(&format!("{:>NAME$}\n", "..."));
            at += empty;
        }
        let before = at.checked_sub(1).and_then(|at| some[at].to);
        let name = unit.name(some[at].to, before);
        let [read, write] = counts(at);
        let (read, write) = (side(read, totals[0]), side(write, totals[1]));
        let line = format!("{name:>NAME$}  {read:<width$}{write}", width = SIDE + 1);
        text.push_str(&format!("{}\n", line.trim_end()));
        at += 1;
    }
    Some(text)
}

/// A count, its part of all, and a bar.
fn side(number: u64, total: u64) -> String {
    if number == 0 {
        return format!("{:>COUNT$}", "-");
    }
    let part = number as f64 / total as f64;
    let bar = "█".repeat((part * BAR as f64).round() as usize);
    format!("{:>COUNT$} {:3.0} % {bar}", short(number), part * 100.0)
}

/// A count in seven places at most.
fn short(number: u64) -> String {
    match number {
        0..10_000_000 => number.to_string(),
        10_000_000..10_000_000_000 => format!("{:.1}M", number as f64 / 1e6),
        _ => format!("{:.0}G", number as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna_console::output::WIDTH;

    fn buckets(ends: &[i64], counts: &[u64]) -> Vec<Bucket> {
        let ends = ends.iter().copied().map(Some).chain([None]);
        ends.zip(counts).map(|(to, &count)| Bucket { to, count }).collect()
    }

    fn example() -> DiskStats {
        let times = Times {
            mean_us: 800.0,
            p50_us: 700.0,
            p95_us: 2_000.0,
            p99_us: 6_000.0,
            p999_us: 30_000.0,
            max_us: 99_000_000.0,
        };
        let pattern = Pattern {
            length: buckets(&[512, 4095, 4096, 524_288], &[0, 7, 12_345_678_901, 0, 3]),
            distance: buckets(&[-500_000, 0, 500_000], &[1 << 46, 2, 0, 1]),
            nearest: buckets(&[-500_000, 0, 500_000], &[1, 2, 0, 1]),
            outstanding: buckets(&[1, 2], &[9, 0, 0]),
            interval: buckets(&[1, 10_000, 1_000_000], &[0, 1, 0, 1]),
            response: buckets(&[1, 10_000, 1_000_000], &[0, 1, 0, 1]),
        };
        let busy = RequestStats {
            operations: 1 << 50,
            bytes: 1 << 60,
            response: Some(times),
            queue: Some(times),
            service: Some(times),
            pattern: Some(pattern),
        };
        DiskStats {
            name: "db".into(),
            datastore: "fast".into(),
            connections: 1,
            in_flight: 32,
            recent: Load { window_s: 10.0, ..Load::default() },
            read: busy.clone(),
            write: busy,
            flushes: 1,
            zeroes: 0,
            errors: 2,
        }
    }

    #[test]
    fn all_of_it_fits_a_terminal() {
        let text = show(&example(), true, Output::new(false));
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{}: {line}", line.chars().count());
        }
        assert!(text.contains("1 flush, 0 zeroings, 2 errors"), "{text}");
        assert!(text.contains("in order"), "{text}");
    }

    #[test]
    fn only_the_buckets_between_the_first_and_the_last_are_shown() {
        let one = buckets(&[1, 2, 4], &[0, 3, 0, 0]);
        let two = buckets(&[1, 2, 4], &[0, 0, 0, 1]);
        let text = rows(Unit::Plain, [&one, &two]).unwrap();
        let names: Vec<&str> = text.lines().map(|line| line[..NAME].trim()).collect();
        assert_eq!(names, ["2", "4", "> 4"]);
        assert!(text.lines().next().unwrap().contains("3 100 % ███"), "{text}");
        assert_eq!(rows(Unit::Plain, [&[], &[]]), None);
        let far = buckets(&[1, 2, 4, 6, 8], &[1, 0, 0, 0, 1, 0]);
        let text = rows(Unit::Plain, [&far, &[]]).unwrap();
        let names: Vec<&str> = text.lines().map(|line| line[..NAME].trim()).collect();
        assert_eq!(names, ["1", "...", "8"]);
    }

    #[test]
    fn a_disk_nobody_has_used_has_no_histogram() {
        let idle = DiskStats {
            read: RequestStats::default(),
            write: RequestStats::default(),
            ..example()
        };
        let text = show(&idle, true, Output::new(false));
        assert!(!text.contains("LENGTH") && !text.contains("p99"), "{text}");
    }

    #[test]
    fn lengths_that_are_not_aligned_are_told_from_those_that_are() {
        assert_eq!(Unit::Bytes.value(4095), "4095 B");
        assert_eq!(Unit::Bytes.value(4096), "4 KiB");
        assert_eq!(Unit::Micros.name(None, Some(1_000_000)), "> 1 s");
    }
}
