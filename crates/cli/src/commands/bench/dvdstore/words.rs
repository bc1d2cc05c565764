//! Figures of the store in words: lines while it runs, and what it came to.

use std::path::Path;

use serde::Serialize;
use sterna_api::ErrorCode;
use sterna_console::connect::Failure;
use sterna_console::format::{count, moment, response, span};
use sterna_console::output::Output;
use sterna_console::table::{Cell, Column, Pairs, Style, Table};
use sterna_core::Bytes;
use sterna_workload::dvdstore::{Acknowledged, Report, Store, Times, Verdict, Window};

/// Lines of figures, under a heading.
pub(crate) struct Lines {
    output: Output,
    headed: bool,
}

impl Lines {
    /// Nothing yet.
    pub(crate) fn new(output: Output) -> Lines {
        Lines { output, headed: false }
    }

    /// Shows what happened since the last line. With JSON, the report has it.
    pub(crate) fn tell(&mut self, window: &Window) {
        if self.output.is_json() {
            return;
        }
        let head = "       TIME  ORDERS/S      OPM       P50       P99       MAX  \
                    ROLLED  ERRORS";
        if !std::mem::replace(&mut self.headed, true) {
            // A reader who has gone is noticed at the end.
            let _ = self.output.print(&self.output.head(head));
        }
        let _ = self.output.print(&line(window));
    }
}

fn line(window: &Window) -> String {
    let time = match window.at_s {
        at if at < 0.5 => "warm-up".into(),
        // Where it is within a second says nothing.
        at => span(at.round()),
    };
    let ms = |us: u64| match window.orders {
        0 => "-".into(),
        _ => response(Some(us as f64)),
    };
    format!(
        "{time:>11}  {:>8.1}  {:>7.0}  {:>8}  {:>8}  {:>8}  {:>6}  {:>6}",
        window.orders_per_s,
        60.0 * window.orders_per_s,
        ms(window.p50_us),
        ms(window.p99_us),
        ms(window.max_us),
        window.rollbacks,
        window.errors
    )
}

/// Shows the report; fails if not one order was made while it was measured.
pub(crate) fn tell_report(report: &Report, output: Output) -> anyhow::Result<()> {
    output.answer(report, |report| format!("\n{}", words(report, output)))?;
    if report.orders + report.rollbacks > 0 {
        return Ok(());
    }
    if is_unmeasured(report) {
        return Err(Failure {
            code: ErrorCode::Interrupted,
            message: "nothing was measured: the run was interrupted while it warmed up"
                .into(),
            hint: "let it run for longer, or warm up for a shorter time: --warm-up"
                .into(),
        }
        .into());
    }
    let why = match report.errors.first() {
        Some(first) => format!("no order succeeded: {}", first.text),
        None => "no order succeeded".into(),
    };
    Err(Failure {
        code: ErrorCode::Unmet,
        message: why,
        hint: "see what the server's log says, or measure for longer".into(),
    }
    .into())
}

/// Whether the run was ended before anything was measured.
fn is_unmeasured(report: &Report) -> bool {
    report.interrupted && report.seconds <= 0.0
}

fn words(report: &Report, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("store", store_words(report));
    pairs.add("server", server(report));
    pairs.add("load", load(report));
    if is_unmeasured(report) {
        pairs.add("measured", "nothing: the run was interrupted while it warmed up");
        return output.pairs(&pairs);
    }
    let ended = if report.interrupted { " (interrupted)" } else { "" };
    pairs.add("measured", format!("{}{ended}", span(report.seconds)));
    let (rate, opm) = (report.orders_per_s, report.opm);
    pairs.add("orders", format!("{}: {rate:.1} a second, opm {opm:.0}", report.orders));
    let (rolled, percent) = (report.rollbacks, report.rollback_percent);
    pairs.add("rolled back", format!("{rolled} ({percent:.1} %): not in stock"));
    pairs.add(
        "longest pause",
        format!("{} without an order", span(report.longest_pause_s)),
    );
    if report.reconnects > 0 {
        let text = format!("{} made again", count(report.reconnects, "connection"));
        pairs.add("lost", Cell::styled(text, Style::Warn));
    }
    for error in &report.errors {
        let text = format!("{} times {}: {}", error.count, error.kind, error.text);
        pairs.add("error", Cell::styled(text, Style::Bad));
    }
    if let Some(cpu) = &report.cpu {
        let ms = 1e3 * cpu.seconds_per_order;
        let cycles = cpu.cycles_per_order.map_or(String::new(), |cycles| {
            format!(", {:.2} million cycles", cycles / 1e6)
        });
        let percent = cpu.percent;
        let text = format!("{ms:.2} ms{cycles} an order; the server used {percent:.0} %");
        pairs.add("processor", text);
    }
    format!("{}\n{}", times(report, output), output.pairs(&pairs))
}

fn times(report: &Report, output: Output) -> String {
    let right = Column::Right;
    let mut table = Table::new(&[
        ("RESPONSE TIME", Column::Left),
        ("COUNT", right),
        ("MEAN", right),
        ("P50", right),
        ("P95", right),
        ("P99", right),
        ("P99.9", right),
        ("MAX", right),
    ]);
    for (name, times) in report.times.named() {
        table.row(row(name, times));
    }
    output.table(&table)
}

fn row(name: &str, times: Times) -> Vec<Cell> {
    let ms = |us: f64| match times.count {
        0 => "-".into(),
        _ => response(Some(us)),
    };
    let us = |us: u64| ms(us as f64);
    vec![
        name.into(),
        times.count.to_string().into(),
        ms(times.mean_us).into(),
        us(times.p50_us).into(),
        us(times.p95_us).into(),
        us(times.p99_us).into(),
        us(times.p999_us).into(),
        us(times.max_us).into(),
    ]
}

fn store_words(report: &Report) -> String {
    let run = &report.run;
    let size = Bytes(run.size);
    format!("{size}: {} customers, {} products", run.customers, run.products)
}

fn server(report: &Report) -> String {
    let version = &report.server.version;
    let durable = match report.server.durable {
        true => "what it acknowledges is durable",
        false => "NOT durable: fsync or synchronous_commit is off",
    };
    format!("PostgreSQL {version}; {durable}")
}

fn load(report: &Report) -> String {
    let run = &report.run;
    let users = count(run.users as u64, "user");
    let warm = match run.warm_up_s {
        0.0 => "no warm-up".into(),
        seconds => format!("warmed up for {}", span(seconds)),
    };
    let how = match (run.rate, run.think_s) {
        (Some(rate), _) => format!("{rate} orders come a second"),
        (None, Some(think)) if think > 0.0 => format!("they think {}", span(think)),
        (None, _) => "as quickly as they can".into(),
    };
    format!("{users}, {how}; {warm}; seed {}", run.seed)
}

/// A store that was only loaded.
#[derive(Serialize)]
struct Loaded {
    size: u64,
    customers: u64,
    orders: u64,
    products: u64,
    seed: u64,
}

/// Says what is there.
pub(crate) fn tell_store(store: Store, output: Output) -> anyhow::Result<()> {
    let size = store.size;
    let loaded = Loaded {
        size: size.bytes(),
        customers: size.customers(),
        orders: size.orders(),
        products: size.products(),
        seed: store.seed,
    };
    output.answer(&loaded, |loaded| {
        let Loaded { customers, orders, products, .. } = loaded;
        format!(
            "The store exists: {customers} customers, {orders} orders, {products} \
             products."
        )
    })
}

/// Shows what the comparison came to; fails if an order is missing.
pub(crate) fn tell_verdict(
    verdict: &Verdict,
    path: &Path,
    output: Output,
) -> anyhow::Result<()> {
    let (all, missing) = (verdict.acknowledged, verdict.missing.len());
    output.answer(verdict, |verdict| {
        let orders = count(all, "acknowledged order");
        match missing {
            0 => format!("All there: {orders}."),
            _ => output.table(&missing_table(verdict)),
        }
    })?;
    if all == 0 {
        return Err(Failure {
            code: ErrorCode::Unmet,
            message: format!(
                "there is no order in {}: nothing was compared",
                path.display()
            ),
            hint: "give the file that `--acknowledged` has written".into(),
        }
        .into());
    }
    if missing == 0 {
        return Ok(());
    }
    Err(Failure {
        code: ErrorCode::Unmet,
        message: format!(
            "{missing} of {} of {} are not there as they were acknowledged",
            count(all, "order"),
            path.display()
        ),
        hint: "check that the orders were made in this database, that the store was not \
               loaded anew since, and that the server has fsync on"
            .into(),
    }
    .into())
}

fn missing_table(verdict: &Verdict) -> Table {
    let mut table = Table::new(&[
        ("ORDER", Column::Right),
        ("CUSTOMER", Column::Right),
        ("TOTAL", Column::Right),
        ("ACKNOWLEDGED", Column::Left),
        ("WHAT IS WRONG", Column::Left),
    ]);
    for one in &verdict.missing {
        let Acknowledged { order, customer, unix_ms, .. } = one.order;
        table.row(vec![
            order.to_string().into(),
            customer.to_string().into(),
            one.order.total().into(),
            moment(unix_ms / 1000).into(),
            one.why.as_str().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna_console::output::WIDTH;

    #[test]
    fn a_line_of_figures_fits_a_terminal() {
        let window = Window {
            at_s: 7199.6,
            orders: 99_999,
            orders_per_s: 9999.9,
            due: 99_999,
            rollbacks: 99_999,
            errors: 99_999,
            p50_us: 123_456,
            p95_us: 123_456,
            p99_us: 1_234_567,
            max_us: 12_345_678,
            waiting_us: 0,
            connected: 8,
        };
        let line = line(&window);
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
}
