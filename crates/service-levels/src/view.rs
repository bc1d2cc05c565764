//! Policies as the API shows them: how each stands, since when, and until when.

use sterna_api::{Explanation, HeldFor, Policy, Result, Standing, Terms};
use sterna_core::qos::ClassId;
use sterna_core::qos::policy::{Aim, Stands, resolve};
use sterna_core::{DiskId, Nanos};
use sterna_os::{Local, lock};

use super::cruise::HeldTo;
use super::snapshot::{Entry, PolicySnapshot};
use crate::ServiceLevels;

impl ServiceLevels {
    /// The policies of a class.
    pub(super) fn view_policies(&self, entry: &Entry) -> Vec<Policy> {
        let (plan, now) = (entry.plan(), Local::now());
        let resolution = resolve(&plan, now.moment());
        let force = lock(&self.service.enforced);
        let each = entry.policies.iter().zip(&resolution.standings);
        let view = each.map(|(record, standing)| {
            let (stands, looser_than) = match standing.stands {
                Stands::Binds => (Standing::Binds, None),
                Stands::Looser(than) => (Standing::Looser, Some(than.0)),
                Stands::Closed => (Standing::Closed, None),
            };
            let (schedule, moment) = (record.schedule.as_ref(), now.moment());
            let since_change = schedule.and_then(|it| it.since_change(moment));
            let until_change = schedule.and_then(|it| it.until_change(moment));
            let changed = since_change.map_or(0, |seconds| now.back(seconds));
            let is_cruise = matches!(record.aim, Aim::Cruise(_));
            Policy {
                id: record.id.0,
                class: entry.record.name.clone(),
                aim: record.aim.into(),
                schedule: record.schedule.as_ref().map(ToString::to_string),
                until_job: record.until_job,
                created: record.created,
                standing: stands,
                looser_than,
                since: changed.max(record.created),
                until: until_change.map(|seconds| now.ahead(seconds)),
                cruise: is_cruise.then(|| force.cruise(record.id)),
            }
        });
        view.collect()
    }

    /// What a class is held to for the sake of a target, if it is.
    pub(crate) fn view_held(
        &self,
        snapshot: &PolicySnapshot,
        class: ClassId,
    ) -> Option<HeldFor> {
        let HeldTo { limit, policy } = lock(&self.service.enforced).held(class)?;
        // A policy that has just been removed holds nobody for much longer.
        let (entry, _) = snapshot.policy(policy).ok()?;
        Some(HeldFor {
            policy: policy.0,
            class: entry.record.name.clone(),
            bytes_per_second: limit.bytes,
            iops: limit.requests,
            response_ms: limit.response.map(Nanos::as_millis_f64),
        })
    }

    /// How many bytes per second a class may do at most now, by its policies and for the sake
    /// of targets.
    pub fn most_bytes(&self, class: &str) -> Option<u64> {
        let snapshot = self.snapshot();
        let entry = snapshot.class(class).ok()?;
        let held = self.view_held(&snapshot, entry.record.id);
        let held = held.and_then(|held| held.bytes_per_second);
        let own = entry.limit(Local::now().moment()).bytes;
        own.into_iter().chain(held).min()
    }

    /// What a disk is held to with its class, or with the others that are in none.
    pub fn view_held_disk(
        &self,
        snapshot: &PolicySnapshot,
        disk: DiskId,
    ) -> Option<HeldFor> {
        let alone = || lock(&self.service.enforced).holds_unclassed(disk);
        match snapshot.class_of(disk) {
            Some(entry) => self.view_held(snapshot, entry.record.id),
            None => alone().then(|| self.view_held(snapshot, ClassId::OTHERS)).flatten(),
        }
    }

    /// What binds a class now, since when, and what would change that.
    pub fn explain(&self, class: &str) -> Result<Explanation> {
        let snapshot = self.snapshot();
        let entry = snapshot.class(class)?;
        let (plan, now) = (entry.plan(), Local::now());
        let until_change = plan.until_change(now.moment());
        let then = until_change.map(|seconds| {
            Terms::from(resolve(&plan, now.moment().after(seconds)).terms)
        });
        Ok(Explanation {
            class: self.view_class(entry)?,
            policies: self.view_policies(entry),
            local_time: now.moment().to_string(),
            time_zone: now.zone(),
            next_change: until_change.map(|seconds| now.ahead(seconds)),
            then,
        })
    }
}
