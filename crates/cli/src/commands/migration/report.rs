//! A migration in words: as it stands, and what it came to.

use sterna_api::{
    Application, Figures, Guarding, Migration, MigrationState, Progress, Report,
};
use sterna_console::format::{
    bytes, count, iops, moment, moment_ago, rate, response, span,
};
use sterna_console::output::{Output, prose};
use sterna_console::table::{Cell, Pairs, Style};
use sterna_console::terms::binding;

use crate::commands::disk::provision;
use crate::commands::predict;
use crate::commands::storage_drs::add_balanced;
use crate::common::guard;

/// By how much an average may exceed the limit that was kept: a second's worth at the end.
const LIMIT_MARGIN: f64 = 1.1;

/// Places of a disk that are shown one by one: about half a screen.
const PLACES_SHOWN: usize = 12;

/// A state in its colour.
pub(crate) fn state(state: MigrationState) -> Cell {
    let style = match state {
        MigrationState::Completed => Style::Good,
        MigrationState::Paused | MigrationState::Cancelled => Style::Warn,
        _ => Style::Plain,
    };
    Cell::styled(state.to_string(), style)
}

/// Everything about a migration.
pub(crate) fn show(one: &Migration, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("migration", one.id.to_string());
    pairs.add("disk", format!("{} ({})", one.disk, bytes(one.size)));
    pairs.add("from", one.from.as_str());
    pairs.add("to", format!("{} ({})", one.to, provision(one.provision)));
    pairs.add("options", options(one));
    pairs.add("state", state(one.state));
    if let Some(guarding) = &one.guard {
        pairs.add("guard", guard::asked(&guarding.asked));
        pairs.maybe(
            "",
            match one.state.ended() {
                true => fared(guarding, done(one)),
                false => guard::fares(guarding),
            },
        );
    }
    // What there is to say of one that is there is no reason for anything.
    let is_there = one.state == MigrationState::Completed;
    let said = if is_there { "note" } else { "reason" };
    pairs.maybe(said, one.reason.as_deref());
    if let Some(by) = &one.held {
        pairs.add("held back", format!("with all copies together, {}", binding(by)));
    }
    pairs.maybe("what to do", one.hint.as_deref());
    pairs.add("started", moment_ago(one.started));
    pairs.maybe("ended", one.ended.map(moment));
    if let Some(progress) = one.progress.as_ref().filter(|_| !one.state.ended()) {
        add_progress(&mut pairs, progress, one.state);
    }
    pairs.maybe("predicted", predicted(one));
    if let Some(report) = &one.report {
        add_report(&mut pairs, report, one.size, one.rate);
    }
    add_found(&mut pairs, one);
    add_application(&mut pairs, &one.application, one.state.ended());
    if let Some(balanced) = &one.balanced {
        add_balanced(&mut pairs, balanced);
    }
    output.pairs(&pairs)
}

/// What it was predicted to take; once it is done, against what it took.
fn predicted(one: &Migration) -> Option<String> {
    let it = one.predicted.as_ref()?;
    match (one.state, one.report) {
        (MigrationState::Completed, Some(report)) => {
            Some(predict::compared(it, report.duration_s))
        }
        (MigrationState::Cancelled, _) => None,
        _ => Some(predict::took(it)),
    }
}

/// When it was done, if it is.
fn done(one: &Migration) -> Option<u64> {
    one.ended.filter(|_| one.state == MigrationState::Completed)
}

/// What came of a guard: `kept 98.7% of 993 IO/s (97% asked), p99 4.20 ms of 5.00 ms,
/// 14 s late`. It was done at this second.
fn fared(guarding: &Guarding, done: Option<u64>) -> Option<String> {
    let asked = &guarding.asked;
    let kept = guarding.kept.zip(guarding.baseline_iops);
    let kept = kept.map(|(kept, before)| {
        let asked = asked.keep.map(|part| format!(" ({} asked)", guard::percent(part)));
        let asked = asked.unwrap_or_default();
        format!("kept {:.1}% of {} IO/s{asked}", kept * 100.0, iops(before))
    });
    let p99 = guarding.p99_us.zip(asked.p99_us).map(|both| {
        let (was, bound) = (both.0 as f64, both.1 as f64);
        format!("p99 {} of {}", response(Some(was)), response(Some(bound)))
    });
    let late =
        asked.finish_by.zip(done).map(|(by, done)| match done.saturating_sub(by) {
            0 => "in time".to_owned(),
            late => format!("{} late", span(late as f64)),
        });
    let parts: Vec<String> = kept.into_iter().chain(p99).chain(late).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What a migration came to, for the end of a wait.
pub(crate) fn summary(one: &Migration, output: Output) -> String {
    let duration = one.report.map_or(0.0, |report| report.duration_s);
    let (disk, took) = (&one.disk, span(duration));
    let head = match one.state {
        MigrationState::Completed => {
            format!("{disk} moved from {} to {} in {took}.\n", one.from, one.to)
        }
        _ => {
            let copied = bytes(one.report.map_or(0, |report| report.copied));
            let (from, to) = (&one.from, &one.to);
            match one.unclear {
                true => format!(
                    "{disk} may be on {from} or on {to}: the end of the move is unknown \
                     ({took}, {copied} copied).\n"
                ),
                false => format!(
                    "{disk} stays on {from}: cancelled after {took}, {copied} copied.\n"
                ),
            }
        }
    };
    let mut pairs = Pairs::new();
    if one.state == MigrationState::Completed {
        pairs.maybe("predicted", predicted(one));
        if let Some(report) = &one.report {
            add_report(&mut pairs, report, one.size, one.rate);
        }
        add_found(&mut pairs, one);
        pairs.maybe("guard", one.guard.as_ref().and_then(|it| fared(it, done(one))));
        add_application(&mut pairs, &one.application, true);
        let kept = if one.keep_source { "kept" } else { "removed" };
        pairs.add("source image", one.reason.clone().unwrap_or(kept.into()));
    } else {
        pairs.maybe("reason", one.reason.as_deref());
    }
    pairs.maybe("what to do", one.hint.as_deref());
    format!("{}\n{}", prose(&head), output.pairs_below(&pairs))
}

fn options(one: &Migration) -> String {
    let mut options = Vec::new();
    if let Some(limit) = one.rate {
        options.push(format!("rate {}", rate(limit as f64)));
    }
    // What QEMU copies, `web/vda`, is never compared, and the old image always stays:
    // nobody has asked for that.
    let is_ours = !one.disk.contains('/');
    if is_ours && !one.verify {
        options.push("no verify".into());
    }
    if is_ours && one.keep_source {
        options.push("keep the source".into());
    }
    if one.skip_bad_sectors {
        options.push("skip bad sectors".into());
    }
    if options.is_empty() { "none".into() } else { options.join(", ") }
}

fn add_progress(pairs: &mut Pairs, progress: &Progress, state: MigrationState) {
    let (synced, total) = (bytes(progress.synced), bytes(progress.total));
    pairs.add("synced", format!("{synced} of {total}"));
    let now = match state {
        MigrationState::Paused => "-".into(),
        _ => rate(progress.rate),
    };
    pairs.add("copied", format!("{}, now {now}", bytes(progress.copied)));
    pairs.maybe("verified", progress.verified.map(bytes));
    if progress.late_regions > 0 {
        pairs.add("behind", count(progress.late_regions, "region"));
    }
    let left = bytes(progress.to_copy + progress.to_compare);
    pairs.maybe(
        "left",
        progress.eta_s.map(|eta| format!("{}, {left} of work", span(eta))),
    );
    if progress.undone > 0 {
        pairs.add("switch-over", format!("{} times undone", progress.undone));
    }
}

fn add_report(pairs: &mut Pairs, report: &Report, size: u64, limit: Option<u64>) {
    let undone = match report.undone {
        0 => String::new(),
        count => format!(", {count} undone before"),
    };
    let held = report.switch_over_ms.map(|ms| format!("guest held {ms:.1} ms{undone}"));
    pairs.maybe("switch-over", held);
    let average = match report.average_rate {
        0.0 => String::new(),
        average => format!(", on average {}", rate(average)),
    };
    let compared = report.compared.map(|size| format!("{}: an old copy", bytes(size)));
    pairs.maybe("compared", compared);
    pairs.add("copied", format!("{}{average}", bytes(report.copied)));
    if report.copied > size {
        pairs.add("", "(data that was written during the copy was copied again)");
    }
    if limit.is_some_and(|limit| report.average_rate > limit as f64 * LIMIT_MARGIN) {
        pairs.add("", "(holes count as copied; they cost no time)");
    }
    pairs.maybe("verified", report.verified.map(bytes));
    pairs.maybe("allocated", report.allocated.map(bytes));
}

/// What cannot be read, or was left behind because of that, and what differs.
fn add_found(pairs: &mut Pairs, one: &Migration) {
    let left = one.state == MigrationState::Completed;
    let word = if left { "skipped" } else { "unreadable" };
    for (word, places) in [(word, &one.bad_sectors), ("differing", &one.differing)] {
        let Some(places) = places else { continue };
        let all = count(places.places, "place");
        pairs.add(word, format!("{} bytes in {all}", places.bytes));
        for span in places.listed.iter().take(PLACES_SHOWN) {
            pairs.add("", format!("{} bytes at {}", span.length, span.offset));
        }
        if places.places > PLACES_SHOWN as u64 {
            pairs.add("", "more: see --json");
        }
    }
}

fn add_application(pairs: &mut Pairs, application: &Application, ended: bool) {
    let ios = |figures: Option<Figures>| Some(iops(figures?.iops));
    let p99 = |figures: Option<Figures>| Some(response(Some(figures?.p99_us?)));
    let (then, word) =
        if ended { (application.during, "during") } else { (application.now, "now") };
    let before = application.before;
    let idle = |figures: Option<Figures>| figures.is_none_or(|it| it.p99_us.is_none());
    if idle(before) && idle(then) {
        return;
    }
    let worst = application.worst_p99_us.map(|us| response(Some(us)));
    pairs.maybe("IO/s", known([(ios(before), "before"), (ios(then), word)]));
    let p99 = [(p99(before), "before"), (p99(then), word), (worst, "at worst")];
    pairs.maybe("p99", known(p99));
    // The worst window looks like a broken promise where the bound was kept but for a moment.
    if let Some(above) = application.above_p99_s {
        let during = application.during.map_or(0.0, |during| during.window_s);
        let text = match above > 0.0 {
            true => format!("above its bound for {} of {}", span(above), span(during)),
            false => format!("never above its bound in {}", span(during)),
        };
        pairs.add("", text);
    }
}

/// Figures with when they were, as far as they are known: of a move of a second there may
/// be none.
fn known<const N: usize>(figures: [(Option<String>, &str); N]) -> Option<String> {
    let told = figures.into_iter();
    let told = told.filter_map(|(figure, when)| Some(format!("{} {when}", figure?)));
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// A migration to try words on.
#[cfg(test)]
pub(crate) fn sample(state: MigrationState) -> Migration {
    Migration {
        id: 4,
        disk: "db".into(),
        size: 10 << 30,
        from: "fast".into(),
        to: "slow".into(),
        provision: sterna_api::Provision::Thin,
        rate: None,
        verify: true,
        keep_source: false,
        skip_bad_sectors: false,
        bad_sectors: None,
        differing: None,
        guard: None,
        state,
        reason: None,
        hint: None,
        started: 0,
        ended: state.ended().then_some(47),
        predicted: None,
        balanced: None,
        progress: None,
        application: Application::default(),
        report: None,
        unclear: false,
        held: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_a_policy_holds_back_names_the_policy() {
        let by = |target_of| sterna_api::BindingLimit {
            policy: 2,
            target_of,
            limit: sterna_api::Goal::BytesPerSecond(1 << 20),
        };
        let shown = |by| {
            let held = Some(by);
            let one = Migration { held, ..sample(MigrationState::Copying) };
            let text = show(&one, Output::new(false));
            // Lines are wrapped.
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let text = shown(by(Some("gold".into())));
        let wanted = "held back with all copies together, to 1.00 MiB/s, for policy 2 of class gold";
        assert!(text.contains(wanted), "{text}");
        assert!(shown(by(None)).contains("to 1.00 MiB/s, by policy 2"));
    }

    #[test]
    fn the_summary_has_the_figures_that_matter() {
        let figures = |iops, p99_us| {
            Some(Figures { window_s: 5.0, iops, bytes_per_second: 0.0, p99_us })
        };
        let guarding = Guarding {
            asked: sterna_api::Guard {
                keep: Some(0.97),
                p99_us: Some(5000),
                ..Default::default()
            },
            baseline_iops: Some(1250.0),
            kept: Some(0.9632),
            p99_us: Some(1200),
            ..Guarding::default()
        };
        let one = Migration {
            guard: Some(guarding),
            application: Application {
                before: figures(1250.0, Some(1100.0)),
                now: None,
                during: figures(1204.0, Some(1200.0)),
                worst_p99_us: Some(2000.0),
                above_p99_s: None,
            },
            report: Some(Report {
                duration_s: 47.0,
                copied: 10 << 30,
                average_rate: 218.0 * 1_048_576.0,
                switch_over_ms: Some(3.12),
                ..Report::default()
            }),
            ..sample(MigrationState::Completed)
        };
        let text = summary(&one, Output::new(false));
        for part in [
            "db moved from fast to slow in 47 s.",
            "guest held 3.1 ms",
            "10.0 GiB, on average 218 MiB/s",
            "guard         kept 96.3% of 1250 IO/s (97% asked), p99 1.2 ms of 5.0 ms\n",
            "1250 before, 1204 during",
            "1.1 ms before, 1.2 ms during, 2.0 ms at worst",
            "removed",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn of_a_move_too_short_to_be_measured_only_what_is_known_is_told() {
        let application = Application {
            before: Some(Figures {
                window_s: 5.0,
                iops: 1061.0,
                bytes_per_second: 0.0,
                p99_us: Some(1100.0),
            }),
            ..Application::default()
        };
        let mut pairs = Pairs::new();
        add_application(&mut pairs, &application, true);
        let text = Output::new(false).pairs(&pairs);
        assert!(text.contains("1061 before\n"), "{text}");
        assert!(text.contains("1.1 ms before\n"), "{text}");
    }

    #[test]
    fn a_deadline_that_was_missed_is_told_and_one_that_was_not() {
        let asked = sterna_api::Guard { finish_by: Some(1000), ..Default::default() };
        let guarding = Guarding { asked, ..Guarding::default() };
        let told = |ended| fared(&guarding, Some(ended)).expect("how it fared");
        assert_eq!(told(999), "in time");
        assert_eq!(told(1014), "14 s late");
    }

    #[test]
    fn a_cancelled_one_says_so_and_how_far_it_came() {
        let report = Report { duration_s: 12.0, copied: 5 << 20, ..Report::default() };
        let mut one = sample(MigrationState::Cancelled);
        one.report = Some(report);
        let text = summary(&one, Output::new(false));
        assert_eq!(text, "db stays on fast: cancelled after 12 s, 5.00 MiB copied.\n");
    }

    #[test]
    fn one_whose_end_was_not_seen_stays_nowhere() {
        let one = Migration { unclear: true, ..sample(MigrationState::Cancelled) };
        let text = summary(&one, Output::new(false));
        assert!(text.starts_with("db may be on fast or on slow: "), "{text}");
    }

    #[test]
    fn more_than_the_disk_is_copied_for_a_reason() {
        let mut one = sample(MigrationState::Completed);
        one.report = Some(Report { copied: 11 << 30, ..Report::default() });
        assert!(summary(&one, Output::new(false)).contains("copied again"));
        one.report = Some(Report { copied: 10 << 30, ..Report::default() });
        assert!(!summary(&one, Output::new(false)).contains("copied again"));
    }

    #[test]
    fn what_was_left_behind_is_listed() {
        let span = |at: u64| sterna_api::Span { offset: at * 4096, length: 512 };
        let places = sterna_api::Places {
            places: 20,
            bytes: 20 * 512,
            listed: (0..20).map(span).collect(),
        };
        let mut one = sample(MigrationState::Completed);
        one.bad_sectors = Some(places);
        let text = summary(&one, Output::new(false));
        assert!(text.contains("skipped       10240 bytes in 20 places\n"), "{text}");
        assert!(text.contains("512 bytes at 45056\n"), "{text}");
        assert!(!text.contains("49152") && text.contains("--json"), "{text}");
        one.state = MigrationState::Paused;
        let text = show(&one, Output::new(false));
        assert!(text.contains("unreadable  10240 bytes in 20 places\n"), "{text}");
    }

    #[test]
    fn an_old_copy_is_compared() {
        let report = Report { compared: Some(8 << 20), ..Report::default() };
        let mut one = sample(MigrationState::Completed);
        one.report = Some(report);
        let text = summary(&one, Output::new(false));
        assert!(text.contains("compared      8.00 MiB: an old copy\n"), "{text}");
        assert!(text.contains("copied        0 B\n"), "{text}");
    }
}
