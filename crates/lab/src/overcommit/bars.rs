//! What a wake must keep of the orders, and whether it does. Pure.
//!
//! Orders are parts of those of a guest that was never swapped out, second by second.

use sterna_report::Verdict;
use sterna_sim::overcommit::Medium;

/// What flash keeps without Sterna, as the study has it. From a certain second on, disks are to
/// keep it, too.
pub(super) const FLASH: f64 = 0.88;

/// The first seconds, as tables have them.
pub(super) const FIRST: usize = 10;

/// The seconds in which the kernel alone is worst.
pub(super) const EARLY: usize = 30;

/// On a disk, Sterna is to bring so many times the orders of the kernel alone in these.
const TIMES: f64 = 2.0;

/// The bar of a medium.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bar {
    medium: Medium,
    /// The mean of all seconds.
    mean: f64,
    /// The second from which on each is to have at least [`FLASH`].
    from: usize,
}

/// The media's bars: M1 to M3.
const BARS: [Bar; 3] = [
    // From the third second on.
    Bar { medium: Medium::Flash, mean: 0.95, from: 2 },
    Bar { medium: Medium::Fc, mean: 0.75, from: 20 },
    Bar { medium: Medium::Sata, mean: 0.60, from: 40 },
];

/// What a wake kept, second by second.
pub(super) type Kept = Vec<f64>;

/// The kept orders of a medium, by way.
pub(super) struct Wakes {
    pub(super) medium: Medium,
    /// The kernel alone.
    pub(super) alone: Option<Kept>,
    /// Sterna, which may hold the guest.
    pub(super) held: Option<Kept>,
}

/// The verdicts about these wakes.
pub(super) fn verdicts(all: &[Wakes]) -> Vec<Verdict> {
    let of = |bar: &Bar| {
        let wakes = all.iter().find(|wakes| wakes.medium == bar.medium)?;
        wakes.held.as_ref().map(|held| bar.verdicts(held))
    };
    let mut verdicts: Vec<Verdict> = BARS.iter().filter_map(of).flatten().collect();
    verdicts.extend(against_kernel(all));
    verdicts
}

/// The verdicts that compare with the kernel alone: M4.
pub(super) fn against_kernel(all: &[Wakes]) -> Vec<Verdict> {
    order(all).into_iter().chain(all.iter().filter_map(times)).collect()
}

impl Bar {
    fn verdicts(&self, held: &[f64]) -> [Verdict; 2] {
        let Bar { medium, mean, from } = *self;
        let kept = mean_of(held);
        let above = above_from(held, FLASH);
        let second = |from: usize| format!("{from} s");
        [
            Verdict {
                what: format!("{medium}: orders kept with Sterna, all seconds"),
                measured: percent(kept),
                bar: format!("at least {}", percent(mean)),
                value: Some(kept * 100.0),
                passed: kept >= mean,
            },
            Verdict {
                what: format!("{medium}: each second keeps {} from", percent(FLASH)),
                measured: above.map_or("never".into(), second),
                bar: format!("{} at the latest", second(from)),
                value: above.map(|from| from as f64),
                passed: above.is_some_and(|above| above <= from),
            },
        ]
    }
}

/// The kernel alone is slower on a slower medium.
fn order(all: &[Wakes]) -> Option<Verdict> {
    let alone = |wakes: &Wakes| Some((wakes.medium, mean_of(wakes.alone.as_ref()?)));
    let means: Vec<(Medium, f64)> = all.iter().filter_map(alone).collect();
    if means.len() < 2 {
        return None;
    }
    let words = means.iter().map(|(_, mean)| percent(*mean)).collect::<Vec<_>>();
    let media = means.iter().map(|(medium, _)| medium.to_string()).collect::<Vec<_>>();
    Some(Verdict {
        what: format!("kernel alone: {}", media.join(" > ")),
        measured: words.join(" > "),
        bar: "in this order".into(),
        value: None,
        passed: means.windows(2).all(|pair| pair[0].1 > pair[1].1),
    })
}

/// On a disk, Sterna brings more orders in the first seconds.
fn times(wakes: &Wakes) -> Option<Verdict> {
    let (alone, held) = (wakes.alone.as_ref()?, wakes.held.as_ref()?);
    if !wakes.medium.is_disk() {
        return None;
    }
    let early = |kept: &Kept| mean_of(&kept[..EARLY.min(kept.len())]);
    let (alone, held) = (early(alone), early(held));
    // Where the kernel brings nothing, anything is more.
    let times = (alone > 0.0).then(|| held / alone);
    Some(Verdict {
        what: format!("{}: orders of the first {EARLY} s, to kernel alone", wakes.medium),
        measured: times.map_or("-".into(), |times| format!("{times:.1} times")),
        bar: format!("at least {TIMES:.0} times"),
        value: times,
        passed: times.map_or(held > 0.0, |times| times >= TIMES),
    })
}

/// A mean; nothing of nothing is nothing.
pub(super) fn mean_of(kept: &[f64]) -> f64 {
    kept.iter().sum::<f64>() / kept.len().max(1) as f64
}

/// The second from which on none is below `least`.
pub(super) fn above_from(kept: &[f64], least: f64) -> Option<usize> {
    let from = kept.iter().rposition(|kept| *kept < least).map_or(0, |last| last + 1);
    (from < kept.len()).then_some(from)
}

/// A part in words: `88 %`. What is small has a decimal.
pub(super) fn percent(part: f64) -> String {
    let percent = part * 100.0;
    let decimals = usize::from(percent < 9.95);
    format!("{percent:.decimals$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wakes(medium: Medium, alone: f64, held: f64) -> Wakes {
        let flat = |kept: f64| Some(vec![kept; 120]);
        Wakes { medium, alone: flat(alone), held: flat(held) }
    }

    fn failing(all: &[Wakes]) -> Vec<String> {
        let failed = verdicts(all).into_iter().filter(|verdict| !verdict.passed);
        failed.map(|verdict| verdict.what).collect()
    }

    #[test]
    fn wakes_that_keep_nearly_all_meet_every_bar() {
        let all = [
            wakes(Medium::Flash, 0.88, 0.99),
            wakes(Medium::Fc, 0.07, 0.99),
            wakes(Medium::Sata, 0.06, 0.99),
        ];
        assert_eq!(verdicts(&all).len(), 9);
        assert_eq!(failing(&all), Vec::<String>::new());
    }

    #[test]
    fn a_slow_second_that_comes_late_fails() {
        let mut all = [wakes(Medium::Sata, 0.01, 0.99)];
        let slow = |all: &mut [Wakes], second: usize| {
            all[0].held.as_mut().unwrap()[second] = 0.5;
        };
        slow(&mut all, 39);
        assert_eq!(failing(&all), Vec::<String>::new());
        slow(&mut all, 40);
        assert_eq!(failing(&all), ["SATA: each second keeps 88 % from"]);
        slow(&mut all, 119);
        assert_eq!(verdicts(&all)[1].measured, "never");
    }

    #[test]
    fn media_that_swap_places_fail_and_so_does_little_gain() {
        let all = [wakes(Medium::Fc, 0.50, 0.99), wakes(Medium::Sata, 0.60, 0.99)];
        assert_eq!(
            failing(&all),
            [
                "kernel alone: FC > SATA",
                "FC: orders of the first 30 s, to kernel alone",
                "SATA: orders of the first 30 s, to kernel alone",
            ]
        );
    }

    #[test]
    fn small_parts_have_a_decimal() {
        assert_eq!((percent(0.88), percent(0.0123)), ("88 %".into(), "1.2 %".into()));
    }
}
