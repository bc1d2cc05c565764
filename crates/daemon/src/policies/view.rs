//! Policies as the API shows them: how each stands, since when, and until when.

use sterna_api::{Explanation, Policy, Standing, Terms};
use sterna_core::qos::policy::{Aim, Stands, resolve};

use super::book::Entry;
use crate::daemon::{Daemon, lock};
use crate::error::Result;
use crate::local::Local;

impl Daemon {
    /// The policies of a class.
    pub(super) fn view_policies(&self, entry: &Entry) -> Vec<Policy> {
        let (plan, now) = (entry.plan(), Local::now());
        let resolution = resolve(&plan, now.moment());
        let force = lock(&self.service.force);
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

    /// What binds a class now, since when, and what would change that.
    pub(crate) fn explain(&self, class: &str) -> Result<Explanation> {
        let book = self.book();
        let entry = book.class(class)?;
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
