//! What would help a disk that is hurt: the ways that there are, of which `core` chooses one.
//!
//! A policy that has helped before and was removed is a way, a limit on the neighbour is one,
//! and so is the move that Storage DRS would recommend if its bound for response times were
//! lower. All else is the same as for Storage DRS: a disk that rests does not move, and none
//! goes where Storage DRS would not want it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sterna_api::{AskStorageDrs, HurtHelp, RecommendedMove, StorageDrsSettings};
use sterna_core::hurt::{
    Again, Cause, Choice, Destination, Given, Help, Hurt, Neighbour, Offer, STEP, Shared,
    SteadyLimit, choose, help, help_at,
};
use sterna_core::measure::{LqFit, Summary};
use sterna_core::{DiskId, Nanos};
use sterna_os::lock;

use super::words::{self, Around};
use crate::Planner;

/// What Storage DRS recommends is asked by the load of so many seconds: the disk is hurt now.
const RECOMMENDED_BY_S: f64 = 60.0;
/// How long a recommendation counts before it is asked for anew.
const RECOMMENDED_FOR: Duration = Duration::from_secs(30);
/// Where it cannot be asked for anew, it counts for so long: other datastores come first.
const RECOMMENDED_STILL: Duration = Duration::from_secs(120);

/// A disk that is hurt, and what is known around it.
pub(super) struct Case<'a> {
    pub(super) disk: DiskId,
    pub(super) hurt: &'a Hurt,
    pub(super) found: Cause,
    pub(super) shared: &'a Shared,
    pub(super) neighbour: Option<DiskId>,
    pub(super) around: &'a Around,
    pub(super) device: &'a Summary,
}

/// A way to help a disk.
#[derive(Clone, Debug, PartialEq)]
enum Way {
    /// These policies again.
    Again(Vec<u64>),
    /// A limit on this disk.
    Limit(DiskId),
    /// A disk to a datastore.
    Move(String, String),
}

/// What was advised last, and what Storage DRS said last.
#[derive(Debug, Default)]
pub(super) struct Remedies {
    given: HashMap<DiskId, (Given<Way>, HurtHelp)>,
    /// To what each class is to be held, or each disk in none: the same for all whom it hurts.
    limits: HashMap<String, SteadyLimit>,
    /// The move away from each datastore, if there is one.
    moves: HashMap<String, (Instant, Option<RecommendedMove>)>,
}

impl Remedies {
    /// Forgets all advice: a policy was made or removed, and what was said may be done by that.
    pub(super) fn forget(&mut self) {
        self.given.clear();
        self.limits.clear();
    }

    /// Forgets what was said of disks that do not ail any more.
    pub(super) fn forget_others(&mut self, ailing: impl Fn(DiskId) -> bool) {
        self.given.retain(|disk, _| ailing(*disk));
        if self.given.is_empty() {
            self.limits.clear();
        }
        self.moves.retain(|_, (at, _)| at.elapsed() < RECOMMENDED_STILL);
    }
}

impl Planner {
    /// What would help.
    pub(super) fn help(&self, case: &Case<'_>) -> HurtHelp {
        let Case { disk, hurt, found, around, .. } = case;
        if hurt.recovers {
            return words::help_recovers();
        }
        if let Cause::Hangs | Cause::Queued { .. } | Cause::Copies { .. } = found {
            return words::help_without(found, around);
        }
        let limit = self.limit(case);
        let (mut offers, mut texts) = (Vec::new(), Vec::new());
        let took = hurt.took.unwrap_or_default().0.max(1) as f64;
        let now = self.hurt.now();
        // What does less harm comes first: a policy is taken back at once.
        let would_hold = |again: &Again| {
            let most = self.levels.most_bytes(&again.class);
            most.is_none_or(|most| again.bytes_per_second < most)
        };
        let deeds = lock(&self.hurt.deeds);
        let proven = deeds.taken_back(now, *disk, hurt.took, would_hold);
        drop(deeds);
        if let Some(proven) = proven {
            let way = Way::Again(proven.limits.iter().map(|one| one.policy).collect());
            offers.push(Offer { way, left: proven.took.0 as f64 / took });
            texts.push(words::help_again(proven));
        }
        if let (Some(neighbour), Help::Limit { then, .. }) = (case.neighbour, limit) {
            let left = then.0 as f64 / took;
            offers.push(Offer { way: Way::Limit(neighbour), left });
            texts.push(words::help_by_limit(hurt, limit, around));
        }
        // A disk that is moving already cannot be moved.
        let moves = |one: &RecommendedMove| {
            around.copies.iter().any(|(_, disk)| *disk == one.disk)
        };
        if let Some(one) = self.would_move(around, case.device).filter(|it| !moves(it))
            && let Some([before, then]) = words::brings(&one, &around.disk)
        {
            let left = then.0 as f64 / before.0.max(1) as f64;
            texts.push(words::help_by_move(&one, &around.disk));
            offers.push(Offer { way: Way::Move(one.disk, one.to), left });
        }
        let mut remedies = lock(&self.hurt.remedies);
        let before = remedies.given.get(disk);
        match choose(now, &offers, before.map(|(given, _)| given)) {
            Choice::Offer(at) => {
                let way = offers.swap_remove(at).way;
                let text = texts.swap_remove(at);
                let given = Given { way, found: now };
                remedies.given.insert(*disk, (given, text.clone()));
                text
            }
            Choice::AsBefore if let Some((_, text)) = before => text.clone(),
            _ => match limit {
                Help::Unforeseen { .. } => words::help_by_limit(hurt, limit, around),
                _ => words::help_without(found, around),
            },
        }
    }

    /// What a limit on the neighbour would do.
    fn limit(&self, case: &Case<'_>) -> Help {
        let Cause::Neighbour { at, .. } = case.found else { return Help::InVain };
        let service = case.device.service.unwrap_or_default();
        let line = self.storage.samples.device(&case.around.datastore);
        let line = line.unwrap_or(LqFit::TooFew { points: 0 });
        let neighbour = Neighbour { at, service };
        let found = help(case.hurt, case.shared, neighbour, &line);
        let (Help::Limit { bytes_per_second, .. }
        | Help::Unforeseen { bytes_per_second }) = found
        else {
            return found;
        };
        let Some((name, class)) = &case.around.neighbour else { return found };
        // A neighbour of the same class leaves it for the limit.
        let others =
            class.as_ref().filter(|class| case.around.class.as_ref() != Some(class));
        let most = others.and_then(|class| self.levels.most_bytes(class));
        let limits = &mut lock(&self.hurt.remedies).limits;
        let of = others.unwrap_or(name);
        let before = limits.get(of).copied();
        let now = self.hurt.now();
        let helps = |limit: f64| match most {
            Some(most) if limit >= most as f64 => Help::InVain,
            _ => help_at(case.hurt, case.shared, neighbour, &line, limit),
        };
        let (steady, help) = steady_or_found(now, bytes_per_second, before, helps);
        limits.insert(of.clone(), steady);
        help
    }

    /// The first move away from a datastore that Storage DRS would recommend if the bound for
    /// response times were half of what its requests take now. In a step it is asked for one
    /// datastore, that of the worst disk; the others wait for theirs.
    fn would_move(&self, around: &Around, device: &Summary) -> Option<RecommendedMove> {
        let mut remedies = lock(&self.hurt.remedies);
        let moves = &mut remedies.moves;
        let step = Duration::from_nanos(STEP.0) / 2;
        let is_busy = moves.values().any(|(at, _)| at.elapsed() < step);
        let kept = moves.get(&around.datastore);
        if let Some((_, found)) =
            kept.filter(|(at, _)| is_busy || at.elapsed() < RECOMMENDED_FOR)
        {
            return found.clone();
        }
        if is_busy {
            return None;
        }
        let found = self.ask_for_move(&around.datastore, device);
        moves.insert(around.datastore.clone(), (Instant::now(), found.clone()));
        found
    }

    fn ask_for_move(&self, from: &str, device: &Summary) -> Option<RecommendedMove> {
        let bound = device.at_device().p95?.0 / 2_000;
        let asked = AskStorageDrs {
            window_s: Some(RECOMMENDED_BY_S),
            latency_us: Some(bound.max(1)),
            ..AskStorageDrs::default()
        };
        let full_in = |name: &str| {
            let full_in_s = self.space_trend(name)?.full_in_s?;
            Some(Nanos((full_in_s * 1e9) as u64))
        };
        let settings = self.balancer.settings();
        // How full and how slow it would be is known once there is a move to it.
        let may_take = |name: &str| {
            let end = Destination { taken: 0.0, response: None, full_in: full_in(name) };
            takes(&settings, &end)
        };
        let found = self.recommend_to(&asked, may_take).ok()?;
        let is_well = |one: &&RecommendedMove| {
            let there = &one.destination[1];
            let end = Destination {
                taken: there.taken.unwrap_or(1.0),
                response: there.p95_us.map(|micros| Nanos((micros * 1e3) as u64)),
                full_in: None,
            };
            takes(&settings, &end)
        };
        let mut first =
            found.moves.iter().filter(|one| one.from == from && one.step <= 1);
        first.find(is_well).cloned()
    }
}

/// The figure that stays, with what it does; or, if that one is in vain, what was found now: a
/// figure of before must not take the advice away while another one helps.
fn steady_or_found(
    now: Nanos,
    found: f64,
    before: Option<SteadyLimit>,
    helps: impl Fn(f64) -> Help,
) -> (SteadyLimit, Help) {
    let steady = SteadyLimit::next(now, found, before);
    match helps(steady.bytes_per_second) {
        Help::InVain => {
            let new = SteadyLimit::next(now, found, None);
            let help = helps(found);
            (if help == Help::InVain { steady } else { new }, help)
        }
        help => (steady, help),
    }
}

/// Whether Storage DRS would have a disk there.
fn takes(settings: &StorageDrsSettings, there: &Destination) -> bool {
    there.takes(settings.space, Nanos(settings.latency_us.saturating_mul(1_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_stays_takes_no_advice_away() {
        let helps_below = |most: f64| {
            move |limit: f64| match limit < most {
                true => Help::Unforeseen { bytes_per_second: limit },
                false => Help::InVain,
            }
        };
        let now = Nanos::from_secs(5);
        let before = SteadyLimit::next(Nanos(0), 20.0, None);
        let advised = |most: f64| {
            let (steady, help) =
                steady_or_found(now, 12.0, Some(before), helps_below(most));
            (steady.bytes_per_second, help)
        };
        let at = |bytes_per_second| Help::Unforeseen { bytes_per_second };
        assert_eq!(advised(30.0), (20.0, at(20.0)), "it stays");
        assert_eq!(advised(20.0), (12.0, at(12.0)), "it is in force already");
        assert_eq!(advised(10.0), (20.0, Help::InVain));
    }
}
