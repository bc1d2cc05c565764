//! Rows for scripts and pipes: a block each time, or with `--json` a line.
//!
//! It goes on until it has been done often enough or nobody reads any more. A row is as wide
//! as the environment variable `COLUMNS` says, or [`WIDTH`] if it says nothing; a name that is
//! longer loses its beginning. Each width has the same columns, so that scripts know where they
//! are.

use std::env;
use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use sterna_console::connect::Link;
use sterna_console::format::moment;
use sterna_console::output::{Output, WIDTH};
use sterna_console::table::shorten;
use tokio::time::MissedTickBehavior;

use super::column::{Column, GAP, LOADS, MEMORY, NAME_MIN, Named, that_fit};
use super::view::{Rows, View};

/// Prints rows `count` times, or for ever.
pub(super) fn run(
    by: Rows,
    every: Duration,
    count: Option<u64>,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    let columns = env::var("COLUMNS").ok();
    let width = columns.and_then(|text| text.parse().ok()).unwrap_or(WIDTH);
    link.ask(async |client| {
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut left = count.unwrap_or(u64::MAX);
        while left > 0 {
            ticks.tick().await;
            let text = match by {
                Rows::Loads(loads) => {
                    let top = client.top(loads, every.as_secs_f64()).await?;
                    text(&top, output, || {
                        block(&moment(top.at_ms / 1000), by, &top.rows, &LOADS, width)
                    })?
                }
                Rows::Vms => {
                    let top = client.memory_top().await?;
                    text(&top, output, || {
                        block(&moment(top.at_ms / 1000), by, &top.vms, &MEMORY, width)
                    })?
                }
            };
            if !is_read(&text)? {
                return Ok(());
            }
            left -= 1;
        }
        Ok(())
    })
}

/// An answer as a line of JSON, or as a block.
fn text(
    answer: &impl Serialize,
    output: Output,
    block: impl FnOnce() -> String,
) -> serde_json::Result<String> {
    match output.is_json() {
        true => Ok(format!("{}\n", serde_json::to_string(answer)?)),
        false => Ok(block()),
    }
}

/// Prints it; whether somebody reads.
fn is_read(text: &str) -> io::Result<bool> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        printed => printed.map(|()| true),
    }
}

/// A moment's rows, the busiest first. Names have what columns leave of the width.
fn block<R: Named>(
    at: &str,
    by: Rows,
    rows: &[R],
    columns: &'static [Column<R>],
    width: usize,
) -> String {
    let columns = that_fit(columns, WIDTH);
    let taken: usize = columns.iter().map(|column| column.width + GAP).sum();
    let width = width.saturating_sub(taken).max(NAME_MIN);
    let mut text = format!("# {at}\n");
    let mut line = |name: &str, cell: &dyn Fn(&Column<R>) -> String| {
        text.push_str(&format!("{name:<width$}"));
        for column in columns {
            text.push_str(&format!(" {:>width$}", cell(column), width = column.width));
        }
        text.push('\n');
    };
    line(&by.as_str().to_uppercase(), &|column| column.head.into());
    for row in View::new(by).rows(rows, columns) {
        line(&shorten(row.name(), width), &|column| column.text(row));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use sterna_api::{Load, SideLoad, TopBy, TopRow};

    use super::*;

    #[test]
    fn a_block_has_a_moment_a_heading_and_rows_of_nine_fields() {
        let busy =
            SideLoad { iops: 12_345.0, response_us: Some(850.0), ..SideLoad::default() };
        let load = Load { read: busy, p99_us: Some(4_200_000.0), ..Load::default() };
        let row = |name: &str, load| TopRow { name: name.into(), load, device: None };
        let long = "x".repeat(63);
        let rows = [row(&long, Load::default()), row("db", load)];
        let block = |width| {
            let by = Rows::Loads(TopBy::Disk);
            block("2026-11-20 20:12:38 UTC", by, &rows, &LOADS, width)
        };
        let text = block(WIDTH);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "# 2026-11-20 20:12:38 UTC");
        assert!(lines[1].starts_with("DISK ") && lines[1].chars().count() <= WIDTH);
        assert!(lines[2].starts_with("db ") && lines[2].contains("12.3k"), "{text}");
        assert!(lines[2].chars().count() <= WIDTH, "{text}");
        assert!(lines[3].starts_with("…xxx"), "{text}");
        assert!(lines[3].chars().count() <= WIDTH, "{text}");
        let fields = |line: &str| line.split_whitespace().count();
        assert_eq!((fields(lines[2]), fields(lines[3])), (9, 9));
        assert_eq!(lines[4], "");
        let wide = block(130);
        let row = wide.lines().nth(3).unwrap_or_default();
        assert!(row.starts_with(&long) && fields(row) == 9, "{wide}");
        assert!(row.chars().count() <= 130, "{wide}");
    }
}
