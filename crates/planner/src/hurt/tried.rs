//! What somebody did for disks that are hurt, and whom it has helped.

use std::collections::{HashMap, HashSet};

use sterna_api::Policy;
use sterna_core::hurt::{Deed, Did, Effect, Hurt, Kind, STEP, State, harms, helps};
use sterna_core::qos::policy::Aim;
use sterna_core::qos::{ClassId, Goal};
use sterna_core::{DiskId, Nanos};
use sterna_os::lock;

use super::as_hurt;
use super::scene::SHARES_OF;
use super::words::{self, span, time};
use crate::Planner;

impl Planner {
    /// Somebody made a policy, or removed it.
    pub fn tried_policy(&self, policy: &Policy, removed: bool) {
        lock(&self.hurt.remedies).forget();
        let class = policy.class.as_str();
        let done = if removed { "removed" } else { "made" };
        let snapshot = self.levels.snapshot();
        let Ok(disks) = self.storage.store.disks() else { return };
        let mut entries = snapshot.entries();
        let Some(entry) = entries.find(|entry| entry.record.name == class) else {
            return;
        };
        let (id, is_built_in) = (entry.record.id, entry.is_built_in());
        let Ok(aim) = Aim::try_from(policy.aim) else { return };
        if let Aim::Limit(limit) = aim
            && !self.binds(id, &limit)
        {
            return;
        }
        // Copies are everywhere.
        let its = |disk: DiskId| {
            let entry = snapshot.class_of(disk);
            is_built_in || entry.is_some_and(|entry| entry.record.name == class)
        };
        let there: Vec<_> = disks.iter().filter(|disk| its(disk.id)).collect();
        let deed = Deed {
            what: format!("policy {} of class {class} was {done}", policy.id),
            kind: match removed {
                true => Kind::TakesBack(words::make_again(policy)),
                false => Kind::Makes(policy.id),
            },
            holds: match aim {
                Aim::Limit(_) | Aim::Depth(_) if !is_built_in => {
                    there.iter().map(|disk| disk.id).collect()
                }
                _ => Vec::new(),
            },
        };
        let datastores: HashSet<&str> =
            there.iter().map(|disk| disk.datastore.as_str()).collect();
        self.tried(&datastores, &deed);
    }

    /// Somebody did something about a move: `move 7 of disk db was paused`.
    pub fn tried_move(&self, ends: [&str; 2], what: String) {
        let deed = Deed { what, kind: Kind::Other, holds: Vec::new() };
        self.tried(&HashSet::from(ends), &deed);
    }

    /// Whether a limit holds a class back, or would: one that the class does not reach neither
    /// helps nor harms anybody.
    fn binds(&self, class: ClassId, limit: &Goal) -> bool {
        let did = |span| self.storage.samples.look(span).class(class);
        limit.binds(&did(STEP)) || limit.binds(&did(SHARES_OF))
    }

    /// Something was done that may help the disks of these datastores.
    fn tried(&self, datastores: &HashSet<&str>, deed: &Deed) {
        let Ok(disks) = self.storage.store.disks() else { return };
        let is_there = |id: DiskId| {
            let disk = disks.iter().find(|disk| disk.id == id);
            disk.is_some_and(|disk| datastores.contains(disk.datastore.as_str()))
        };
        let watches = lock(&self.hurt.watches);
        let (hurt, slower) = (watches.hurt(), watches.slower());
        drop(watches);
        let slower = slower.iter().map(|(disk, one)| (*disk, as_hurt(one)));
        let ailing = hurt.into_iter().chain(slower);
        let ailing = ailing.filter(|(disk, _)| is_there(*disk));
        let ailing: Vec<_> = ailing.map(|(disk, hurt)| (disk, hurt.took)).collect();
        lock(&self.hurt.deeds).note(self.hurt.now(), deed, ailing);
    }

    /// What is to be said of what was done.
    pub(super) fn effects(
        &self,
        now: Nanos,
        did: &[(DiskId, Did)],
        ailing: [&[(DiskId, Hurt)]; 2],
        slowed: &HashSet<DiskId>,
    ) -> Vec<Effect> {
        let ailing: HashSet<DiskId> =
            ailing.into_iter().flatten().map(|(disk, _)| *disk).collect();
        // What a policy makes wait was not helped, whatever the device takes.
        let free = did.iter().filter(|(disk, _)| !slowed.contains(disk));
        let takes: HashMap<DiskId, Nanos> =
            free.filter_map(|(disk, did)| Some((*disk, did.mean()?))).collect();
        lock(&self.hurt.deeds).step(now, |disk| State {
            ails: ailing.contains(&disk),
            takes: takes.get(&disk).copied(),
        })
    }
}

/// Whom something has helped that was done, or not yet, or harmed.
pub(super) fn effect(one: &Effect) -> String {
    let Effect { what, ago, before, now, helped, .. } = one;
    if !helped {
        return not_yet(what, *ago, *before, *now);
    }
    let before = before.map_or("they hung".into(), time);
    let now = time(now.unwrap_or_default());
    format!(
        "it has helped: requests take {now}, before {before}. {} ago {what}",
        span(*ago)
    )
}

/// Something was done, and the disk is still as it is.
pub(super) fn not_yet(
    what: &str,
    ago: Nanos,
    before: Option<Nanos>,
    now: Option<Nanos>,
) -> String {
    let so_far = match (helps(before, now), harms(before, now)) {
        (true, _) => "it helps",
        (_, true) => "it has become worse",
        _ => "it has not helped yet",
    };
    let now = now.map_or("hang".into(), |took| format!("take {}", time(took)));
    let before = before.map_or("they hung".into(), time);
    let ago = span(ago);
    format!("{so_far}: requests {now}, before {before}. {ago} ago {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_says_whom_it_has_helped_or_that_it_has_not_yet() {
        let helped = Effect {
            what: "policy 5 of class batch was made".into(),
            ago: Nanos::from_secs(40),
            disk: DiskId(1),
            before: Some(Nanos::from_micros(15_400)),
            now: Some(Nanos::from_micros(3_100)),
            helped: true,
        };
        assert_eq!(
            effect(&helped),
            "it has helped: requests take 3.1 ms, before 15.4 ms. 40 s ago policy 5 of class \
             batch was made"
        );
        let better = not_yet("policy 5 was made", helped.ago, helped.before, helped.now);
        assert_eq!(
            better,
            "it helps: requests take 3.1 ms, before 15.4 ms. 40 s ago policy 5 was made"
        );
        let not = Effect { now: helped.before, helped: false, ..helped };
        assert_eq!(
            effect(&not),
            "it has not helped yet: requests take 15.4 ms, before 15.4 ms. 40 s ago policy 5 \
             of class batch was made"
        );
        let worse = Effect { now: Some(Nanos::from_millis(60)), ..not.clone() };
        let said = effect(&worse);
        let begins =
            "it has become worse: requests take 60.0 ms, before 15.4 ms. 40 s ago";
        assert!(said.starts_with(begins), "{said}");
        let said = effect(&Effect { now: None, ..not });
        assert!(said.starts_with("it has not helped yet: requests hang"), "{said}");
    }
}
