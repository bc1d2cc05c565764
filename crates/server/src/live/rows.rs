//! The order of rows, and which of them are shown.

use std::cmp::Ordering;
use std::str::FromStr;

use sterna_api::TopRow;
use sterna_core::Nanos;

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Key {
    #[default]
    Name,
    Iops,
    Rate,
    P99,
    Max,
    Queue,
    Outstanding,
}

/// The order of rows: `p99`, or backwards `-p99`. Equal rows go by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    key: Key,
    backwards: bool,
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Order, String> {
        let (backwards, name) = match text.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, text),
        };
        let key = match name {
            "name" => Key::Name,
            "iops" => Key::Iops,
            "rate" => Key::Rate,
            "p99" => Key::P99,
            "max" => Key::Max,
            "queue" => Key::Queue,
            "outstanding" => Key::Outstanding,
            _ => {
                return Err(format!(
                    "`{text}` is no order: give name, iops, rate, p99, max, queue or \
                     outstanding, and `-` before it for the highest first"
                ));
            }
        };
        Ok(Order { key, backwards })
    }
}

impl Order {
    /// Sorts rows. What has no figure comes last, either way.
    pub(crate) fn sort(self, rows: &mut [TopRow]) {
        let figure = |row: &TopRow| match self.key {
            Key::Name => None,
            Key::Iops => Some(row.load.iops()),
            Key::Rate => Some(row.load.bytes_per_second()),
            Key::P99 => row.load.p99_us,
            Key::Max => row.load.max_us,
            Key::Queue => row.load.queue_us,
            Key::Outstanding => Some(row.load.outstanding),
        };
        rows.sort_by(|a, b| {
            let by_figure = match (figure(a), figure(b)) {
                (Some(a), Some(b)) if self.backwards => b.total_cmp(&a),
                (Some(a), Some(b)) => a.total_cmp(&b),
                (a, b) => b.is_some().cmp(&a.is_some()),
            };
            let by_name = a.name.cmp(&b.name);
            let by_name = match self.key == Key::Name && self.backwards {
                true => by_name.reverse(),
                false => by_name,
            };
            by_figure.then(by_name)
        });
    }
}

/// Which rows are shown: all words must hold. `db` is part of the name, `on:fast` the
/// datastore, `class:gold` the class, `slow:5ms` a 99th percentile of that at least,
/// `busy:100` so many requests per second at least.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filter {
    parts: Vec<String>,
    on: Option<String>,
    class: Option<String>,
    slow: Option<Nanos>,
    busy: Option<f64>,
}

/// The longest filter, in bytes: a few names.
const LONGEST: usize = 500;

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Filter, String> {
        if text.len() > LONGEST {
            return Err(format!("a filter has {LONGEST} bytes at most"));
        }
        let mut filter = Filter::default();
        for word in text.split_whitespace() {
            match word.split_once(':') {
                None => filter.parts.push(word.into()),
                Some(("on", name)) => filter.on = Some(name.into()),
                Some(("class", name)) => filter.class = Some(name.into()),
                Some(("slow", span)) => {
                    let span =
                        span.parse().map_err(|error| format!("{word}: {error}"))?;
                    filter.slow = Some(span);
                }
                Some(("busy", rate)) => {
                    let rate: f64 =
                        rate.parse().map_err(|_| format!("{word}: no number"))?;
                    filter.busy = Some(rate);
                }
                Some((key, _)) => {
                    return Err(format!(
                        "`{key}:` is no filter: give a part of the name, on:DATASTORE, \
                         class:CLASS, slow:5ms or busy:100"
                    ));
                }
            }
        }
        Ok(filter)
    }
}

impl Filter {
    /// Whether datastore or class of a disk matter.
    pub(crate) fn needs_disks(&self) -> bool {
        self.on.is_some() || self.class.is_some()
    }

    /// Whether a disk that is there, and in that class, is let through.
    pub(crate) fn is_there(&self, datastore: &str, class: Option<&str>) -> bool {
        self.on.as_deref().is_none_or(|on| on == datastore)
            && self.class.as_deref().is_none_or(|wanted| Some(wanted) == class)
    }

    /// Whether a row is let through, by its name and its figures.
    pub(crate) fn lets_through(&self, row: &TopRow) -> bool {
        let slow = |bound: Nanos| {
            let p99 = row.load.p99_us.unwrap_or(0.0);
            p99.total_cmp(&(bound.0 as f64 / 1e3)) != Ordering::Less
        };
        self.parts.iter().all(|part| row.name.contains(part.as_str()))
            && self.slow.is_none_or(slow)
            && self.busy.is_none_or(|least| row.load.iops() >= least)
    }
}

#[cfg(test)]
mod tests {
    use sterna_api::{Load, SideLoad};

    use super::*;

    fn row(name: &str, iops: f64, p99_us: Option<f64>) -> TopRow {
        let read = SideLoad { iops, ..SideLoad::default() };
        TopRow {
            name: name.into(),
            load: Load { read, p99_us, ..Load::default() },
            device: None,
        }
    }

    fn names(rows: &[TopRow]) -> Vec<&str> {
        rows.iter().map(|row| row.name.as_str()).collect()
    }

    #[test]
    fn rows_without_a_figure_come_last_and_equal_ones_go_by_name() {
        let mut rows = [
            row("c", 1.0, Some(5.0)),
            row("b", 9.0, None),
            row("a", 1.0, Some(5.0)),
            row("d", 2.0, Some(8.0)),
        ];
        let mut sorted = |order: &str| {
            order.parse::<Order>().unwrap().sort(&mut rows);
            names(&rows).join("")
        };
        assert_eq!(sorted("p99"), "acdb");
        assert_eq!(sorted("-p99"), "dacb");
        assert_eq!(sorted("-iops"), "bdac");
        assert_eq!(sorted("-name"), "dcba");
        assert!("size".parse::<Order>().unwrap_err().contains("p99"));
    }

    #[test]
    fn all_words_of_a_filter_must_hold() {
        let filter: Filter = "db slow:5ms busy:10".parse().unwrap();
        assert!(filter.lets_through(&row("my-db", 10.0, Some(5000.0))));
        assert!(!filter.lets_through(&row("my-db", 9.0, Some(5000.0))));
        assert!(!filter.lets_through(&row("my-db", 10.0, None)));
        assert!(!filter.lets_through(&row("web", 10.0, Some(5000.0))));
        let filter: Filter = "on:fast class:gold".parse().unwrap();
        assert!(filter.needs_disks() && filter.is_there("fast", Some("gold")));
        assert!(!filter.is_there("fast", None) && !filter.is_there("slow", Some("gold")));
    }

    #[test]
    fn what_is_no_filter_is_refused_with_what_is_one() {
        for bad in ["size:5", "slow:soon", "busy:much"] {
            assert!(bad.parse::<Filter>().is_err(), "{bad}");
        }
        assert!("x".repeat(LONGEST + 1).parse::<Filter>().is_err());
    }
}
