//! `sterna predict`: what a move would take.

use clap::Args;
use sterna_api::{
    AskGuard, Guard, LearnedFrom, Predict, Predicted, Prediction, PredictionScores,
    Weakest,
};
use sterna_console::connect::Link;
use sterna_console::format::{bytes, iops, moment, moment_ahead, rate, response, span};
use sterna_console::output::{Output, prose};
use sterna_console::table::Pairs;
use sterna_core::Bytes;

use crate::common::guard::{self, PromiseArgs, parse_moment, percent};
use crate::common::rate::parse_rate;
use crate::common::verification::VerifyArgs;

/// What would be moved, where to, and how.
#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    /// The disk
    disk: String,
    /// The destination
    #[arg(long, value_name = "DATASTORE")]
    to: String,
    /// Limit copying to this many bytes per second (200M)
    #[arg(long, value_name = "BYTES", value_parser = parse_rate)]
    rate: Option<Bytes>,
    #[command(flatten)]
    verification: VerifyArgs,
    #[command(flatten)]
    promise: PromiseArgs,
    /// Predict a move that begins at this time (22:00, "2027-01-31 22:00", 8h), from
    /// the load at this hour in the last week
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    at: Option<String>,
}

/// Carries out the command.
pub(crate) fn run(args: PredictArgs, link: &Link, output: Output) -> anyhow::Result<()> {
    let AskGuard { keep, p99_us, idle_only, .. } = args.promise.request();
    let request = Predict {
        disk: args.disk,
        to: args.to,
        rate: args.rate.map(|rate| rate.0),
        verify: args.verification.verify(),
        keep,
        p99_us,
        idle_only,
        at: args.at,
    };
    let told = link.ask(async |client| Ok(client.predict(&request).await?))?;
    output.answer(&told, |told| show(told, output))
}

fn show(one: &Prediction, output: Output) -> String {
    let it = &one.predicted;
    let mut pairs = Pairs::new();
    pairs.maybe("begins", one.at.map(moment));
    pairs.add("takes", took(it));
    pairs.add("to copy", format!("{} at {}", bytes(it.bytes), rate(it.rate)));
    pairs.add("held back by", held_back(one));
    if one.guard != Guard::default() {
        pairs.add("guard", guard::asked(&one.guard));
    }
    if let Some(kept) = it.kept.filter(|kept| *kept < 1.0) {
        pairs.add("it keeps", format!("about {} of its IO/s meanwhile", whole(kept)));
    }
    let busy = one.application.filter(|application| application.iops > 0.0);
    pairs.add(
        "application",
        match busy {
            None => "no requests now".to_owned(),
            Some(now) => format!(
                "{} IO/s now, p99 {}, {:.1} under way",
                iops(now.iops),
                response(now.p99_us),
                one.outstanding
            ),
        },
    );
    pairs.add("learned from", learned_from(one));
    if let Some(best) = &one.best {
        let at = moment_ahead(best.at);
        pairs.add("best hour", format!("{at}: {}", span(best.likely_s)));
    }
    for what in &one.unasked {
        pairs.add("not known", what.as_str());
    }
    let head = format!("{} from {} to {}:", one.disk, one.from, one.to);
    format!("{}\n{}", prose(&head), output.pairs_below(&pairs))
}

/// The time, and its range.
pub(crate) fn took(it: &Predicted) -> String {
    let [likely, least, most] = [it.likely_s, it.least_s, it.most_s].map(span);
    if it.guess {
        return format!("a guess: {likely} ({least} to {most})");
    }
    format!("{likely}, and 9 of 10 times {least} to {most}")
}

/// What was predicted of a move that took so many seconds.
pub(crate) fn compared(it: &Predicted, seconds: f64) -> String {
    let times = seconds / it.likely_s.max(1e-3);
    let off = match (times - 1.0) * 100.0 {
        // Hundreds of percent are no figure that anybody sees through.
        100.0.. => format!("it took {}, {times:.1} times as long", span(seconds)),
        longer if longer >= 0.5 => format!("it took {longer:.0}% longer"),
        less if less <= -0.5 => format!("it took {:.0}% less", -less),
        _ => "as predicted".into(),
    };
    format!("{} ({} to {}); {off}", span(it.likely_s), span(it.least_s), span(it.most_s))
}

/// How right predictions were.
pub(crate) fn scores(scores: &PredictionScores) -> String {
    let Some(median) = scores.median_error else {
        return "no prediction was tested yet".into();
    };
    let tenths = |part: f64| percent((part * 1000.0).round() / 1000.0);
    let (moves, within) = (scores.moves, scores.within);
    let median = tenths(median);
    let times = match moves {
        // Of one there is no half.
        1 => format!("1 move predicted: {median} off"),
        _ => format!(
            "half of {moves} predicted times were at most {median} off; {within} were in \
             their range"
        ),
    };
    match scores.kept_error {
        None => times,
        Some(error) => format!(
            "{times}; half of {} predictions of kept IO/s were at most {} off",
            scores.beside,
            tenths(error)
        ),
    }
}

/// Nobody knows it better than by the percent.
fn whole(part: f64) -> String {
    format!("{:.0}%", (part * 100.0).max(1.0))
}

fn held_back(one: &Prediction) -> String {
    let it = &one.predicted;
    let share = whole(it.share);
    match it.weakest {
        Weakest::Storage => "the storage itself".into(),
        Weakest::Limit => one.copies_held_to.map_or("--rate".into(), |most| {
            format!(
                "the limit on all copies, {} of this disk: see `sterna policy explain \
                 migration`",
                rate(most as f64)
            )
        }),
        Weakest::Promise => format!("the guard: the copy has {share} of its speed"),
        Weakest::Application => {
            format!("the application at the source: the copy has {share} of its speed")
        }
    }
}

fn learned_from(one: &Prediction) -> String {
    let (from, to) = (&one.from, &one.to);
    match (one.predicted.learned_from, one.predicted.moves) {
        (LearnedFrom::Moves, Some(1)) => format!("one move from {from} to {to}"),
        (LearnedFrom::Moves, moves) => {
            format!("{} moves from {from} to {to}", moves.unwrap_or_default())
        }
        (LearnedFrom::Ends, _) => {
            format!("moves from {from}, and moves to {to}, but no move between them")
        }
        (LearnedFrom::OneEnd, _) => {
            format!("moves from {from}, or moves to {to}, but not both")
        }
        (LearnedFrom::Devices, _) => {
            format!("reads and writes on {from} and {to}; no move seen yet")
        }
    }
}

#[cfg(test)]
mod tests {
    use sterna_api::{BestHour, Figures};

    use super::*;

    fn predicted() -> Predicted {
        Predicted {
            bytes: 5 << 30,
            likely_s: 720.0,
            least_s: 480.0,
            most_s: 1080.0,
            rate: 7.4e6,
            share: 0.12,
            kept: Some(0.97),
            weakest: Weakest::Promise,
            learned_from: LearnedFrom::Moves,
            moves: Some(3),
            guess: false,
        }
    }

    #[test]
    fn what_a_move_will_take_fits_on_a_screen() {
        let one = Prediction {
            disk: "db".into(),
            size: 10 << 30,
            from: "fast".into(),
            to: "slow".into(),
            guard: Guard { keep: Some(0.97), ..Guard::default() },
            application: Some(Figures {
                window_s: 10.0,
                iops: 993.0,
                bytes_per_second: 0.0,
                p99_us: Some(4200.0),
            }),
            outstanding: 2.13,
            at: None,
            predicted: predicted(),
            best: Some(BestHour { at: 4_000_000_000, likely_s: 95.0 }),
            copies_held_to: None,
            unasked: vec!["how much of the disk has data".into()],
        };
        let text = show(&one, Output::new(false));
        for part in [
            "db from fast to slow:\n",
            "12 min",
            "5.00 GiB",
            "the guard: the copy has 12% of its speed",
            "993 IO/s now, p99 4.2 ms, 2.1 under way",
            "3 moves from fast to slow",
            "about 97% of its IO/s",
            "best hour",
            "not known     how much",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let weakest = Weakest::Limit;
        let limited =
            Prediction { predicted: Predicted { weakest, ..predicted() }, ..one };
        assert_eq!(held_back(&limited), "--rate");
        let held = held_back(&Prediction { copies_held_to: Some(512 << 10), ..limited });
        let begins = "the limit on all copies, 512 KiB/s of this disk";
        assert!(held.starts_with(begins), "{held}");
    }

    #[test]
    fn a_guess_is_called_one() {
        let guess = Predicted { guess: true, ..predicted() };
        assert_eq!(took(&guess), "a guess: 12 min 00 s (8 min 00 s to 18 min 00 s)");
        assert!(took(&predicted()).contains("9 of 10 times"));
    }

    #[test]
    fn what_was_predicted_is_held_against_what_it_took() {
        let told = |seconds| compared(&predicted(), seconds);
        assert!(told(792.0).ends_with("it took 10% longer"), "{}", told(792.0));
        assert!(told(540.0).ends_with("it took 25% less"), "{}", told(540.0));
        assert!(told(720.0).ends_with("as predicted"), "{}", told(720.0));
        let slow = told(4608.0);
        assert!(slow.ends_with("it took 1 h 16 min, 6.4 times as long"), "{slow}");
    }

    #[test]
    fn scores_are_said_only_where_there_are_any() {
        assert_eq!(scores(&PredictionScores::default()), "no prediction was tested yet");
        let some = PredictionScores {
            moves: 12,
            median_error: Some(0.071),
            within: 11,
            ..Default::default()
        };
        let said =
            "half of 12 predicted times were at most 7.1% off; 11 were in their range";
        assert_eq!(scores(&some), said);
        let beside = PredictionScores { beside: 8, kept_error: Some(0.0149), ..some };
        let more = "; half of 8 predictions of kept IO/s were at most 1.5% off";
        assert_eq!(scores(&beside), format!("{said}{more}"));
    }
}
