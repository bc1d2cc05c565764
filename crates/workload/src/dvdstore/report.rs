//! What a run came to.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::cpu::CpuCost;
use super::pace::Pace;
use super::run::RunOptions;
use super::server::Store;
use super::session::Kind;
use super::tally::{Figures, Times, Trouble, Window};

/// The report of a run. Times are in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was run on.
    pub server: ServerFacts,
    /// How it was run.
    pub run: RunFacts,
    /// How long was measured, in seconds; 0 if it was ended while it warmed up.
    pub seconds: f64,
    /// Whether it was ended before its time.
    pub interrupted: bool,
    /// Orders that were acknowledged.
    pub orders: u64,
    /// Orders a second.
    pub orders_per_s: f64,
    /// Orders a minute.
    pub opm: f64,
    /// Purchases that were rolled back.
    pub rollbacks: u64,
    /// Of all purchases, in percent.
    pub rollback_percent: f64,
    /// Errors, by their kind.
    pub errors: Vec<Trouble>,
    /// Connections that were lost and made again.
    pub reconnects: u64,
    /// The longest time without any order, in seconds.
    pub longest_pause_s: f64,
    /// For how long the oldest order under way had been waiting at the end.
    pub waiting_s: f64,
    /// Response times.
    pub times: TimesByKind,
    /// What orders cost, if the server is on this machine and did not end.
    pub cpu: Option<CpuCost>,
    /// What happened, second by second.
    pub series: Vec<Window>,
}

/// What was run on.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ServerFacts {
    /// PostgreSQL's version.
    pub version: String,
    /// Whether what it acknowledges is durable.
    pub durable: bool,
    /// Its settings that decide on that and on what it asks of its disks.
    pub settings: BTreeMap<String, String>,
}

/// How it was run.
#[derive(Clone, Debug, Serialize)]
pub struct RunFacts {
    /// The store's size in bytes.
    pub size: u64,
    /// Customers that it had at first.
    pub customers: u64,
    /// Its products.
    pub products: u64,
    /// Connections that make orders.
    pub users: usize,
    /// How long users think on average, in seconds; nothing in an open loop.
    pub think_s: Option<f64>,
    /// Orders that come a second in an open loop.
    pub rate: Option<f64>,
    /// How long it really warmed up, in seconds.
    pub warm_up_s: f64,
    /// What all chance came from.
    pub seed: u64,
}

/// Response times by what was done.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TimesByKind {
    /// Whole orders: all that a visit asks for, from the moment at which it was due.
    pub order: Times,
    /// Logins.
    pub login: Times,
    /// New customers.
    pub new_customer: Times,
    /// Searches.
    pub browse: Times,
    /// Purchases, also those that were rolled back.
    pub purchase: Times,
}

impl TimesByKind {
    /// Each with its name.
    pub fn named(&self) -> [(&'static str, Times); 5] {
        [
            ("login", self.login),
            ("new customer", self.new_customer),
            ("browse", self.browse),
            ("purchase", self.purchase),
            ("whole order", self.order),
        ]
    }
}

impl RunFacts {
    pub(crate) fn new(store: Store, options: &RunOptions, warm_up: Duration) -> RunFacts {
        let (think_s, rate) = match options.pace {
            Pace::Closed { think } => (Some(think.as_secs_f64()), None),
            Pace::Open { rate } => (None, Some(rate)),
        };
        RunFacts {
            size: store.size.bytes(),
            customers: store.size.customers(),
            products: store.size.products(),
            users: options.users,
            think_s,
            rate,
            warm_up_s: warm_up.as_secs_f64(),
            seed: options.seed,
        }
    }
}

impl Report {
    /// Puts together what a run came to.
    pub(crate) fn new(
        server: ServerFacts,
        run: RunFacts,
        figures: Figures,
        cpu: Option<CpuCost>,
        interrupted: bool,
    ) -> Report {
        let times = |kind: Kind| figures.times[kind as usize];
        let orders = times(Kind::Order).count;
        let orders_per_s = match figures.seconds {
            seconds if seconds > 0.0 => orders as f64 / seconds,
            _ => 0.0,
        };
        let purchases = (orders + figures.rollbacks).max(1);
        Report {
            server,
            run,
            seconds: figures.seconds,
            interrupted,
            orders,
            orders_per_s,
            opm: 60.0 * orders_per_s,
            rollbacks: figures.rollbacks,
            rollback_percent: 100.0 * figures.rollbacks as f64 / purchases as f64,
            errors: figures.troubles,
            reconnects: figures.reconnects,
            longest_pause_s: figures.longest_pause.as_secs_f64(),
            waiting_s: figures.waiting.as_secs_f64(),
            times: TimesByKind {
                order: times(Kind::Order),
                login: times(Kind::Login),
                new_customer: times(Kind::NewCustomer),
                browse: times(Kind::Browse),
                purchase: times(Kind::Purchase),
            },
            cpu,
            series: figures.series,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::Tally;
    use super::*;

    #[test]
    fn a_report_has_rates_and_the_part_that_was_rolled_back() {
        let s = Duration::from_secs;
        let mut tally = Tally::new(1, s(0));
        tally.begin(s(0));
        for second in 0..98 {
            tally.ordered(0, s(second), s(second + 1));
        }
        tally.rolled_back(0);
        tally.rolled_back(0);
        let store = Store { size: "small".parse().expect("a size"), seed: 1 };
        let options = RunOptions {
            users: 1,
            pace: Pace::Open { rate: 2.0 },
            warm_up: s(0),
            length: s(196),
            seed: 1,
            acknowledged: None,
        };
        let run = RunFacts::new(store, &options, options.warm_up);
        let facts = ServerFacts::default();
        let report = Report::new(facts, run, tally.end(s(196)), None, false);
        assert_eq!((report.orders, report.orders_per_s, report.opm), (98, 0.5, 30.0));
        assert_eq!((report.rollbacks, report.rollback_percent), (2, 2.0));
        assert_eq!((report.run.rate, report.run.think_s), (Some(2.0), None));
        assert_eq!(report.longest_pause_s, 98.0);
    }
}
