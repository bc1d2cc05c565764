//! How fast everything goes from now on: loads and copies become flows, and what is found
//! for those goes back to them.

use std::collections::BTreeMap;

use super::{CRUMB, Run, STEPS};
use crate::fluid::flows::Stream;
use crate::fluid::solve::{Flow, solve};

/// Copies that are alike: by source, destination, the part that is written, and host.
type Groups = BTreeMap<[usize; 4], (Stream, Vec<usize>)>;

impl Run<'_> {
    /// Finds how fast everything goes from now on.
    pub(super) fn settle(&mut self) {
        self.changed = false;
        self.outcome.settled += 1;
        let scenario = self.scenario;
        let mut flows = Vec::new();
        let mut loads = Vec::new();
        for (profile, datastore, class) in self.accounts.classes() {
            if class.disks > 0 {
                loads.push((profile, datastore));
                let it = &scenario.profiles[profile];
                let part = self.part(it.busy.as_ref(), it.idle);
                if self.stage.answers(datastore) && part * it.iops > 0.0 {
                    let disks = f64::from(class.disks);
                    flows.push(self.stage.load(it, datastore, disks, part));
                }
            }
        }
        let (groups, mirrored) = self.streams();
        flows.extend(
            groups
                .values()
                .map(|(stream, copies)| self.stage.copies(stream, copies.len() as f64)),
        );
        flows.extend(mirrored);
        let answer = solve(&self.stage.stations, &flows, &mut self.waits);
        let mut rates = answer.rates.iter().zip(&answer.responses);
        for (profile, datastore) in loads {
            let it = &scenario.profiles[profile];
            let part = self.part(it.busy.as_ref(), it.idle);
            let answers = self.stage.answers(datastore) && part * it.iops > 0.0;
            let found = if answers { rates.next() } else { None };
            let class = self.accounts.class(profile, datastore);
            (class.rate, class.response) = found.map_or((0.0, 0.0), |(a, b)| (*a, *b));
            let wanted = it.iops / f64::from(it.disks) * part;
            class.wanted = if wanted.is_finite() { wanted } else { 0.0 };
        }
        self.copies.iter_mut().for_each(|it| it.rate = 0.0);
        for (_, copies) in groups.values() {
            let Some((rate, _)) = rates.next() else { break };
            for copy in copies {
                let it = &mut self.copies[*copy];
                it.rate = rate * self.stage.chunk() / it.read.max(CRUMB);
            }
        }
        let spindles = self.stage.pools.iter().map(|it| it.spindles());
        self.utilisation = spindles.map(|at| answer.utilisation[at]).collect();
    }

    /// The copies that may go on, those that are alike together; and what running machines
    /// mirror.
    fn streams(&self) -> (Groups, Vec<Flow>) {
        let scenario = self.scenario;
        let mut groups = Groups::new();
        let mut mirrored = Vec::new();
        let wave = scenario.waves.get(self.wave);
        let open = wave.is_none_or(|it| self.part(it.window.as_ref(), 0.0) > 0.0);
        for (number, it) in self.copies.iter().enumerate() {
            let (from, to) = (it.one.from, it.one.to);
            if !open || !self.stage.answers(from) || !self.stage.answers(to) {
                continue;
            }
            // Of what is read.
            let written = (it.written / it.read.max(CRUMB)).min(1.0);
            let percent = (written * 100.0).round() as usize;
            let host = if scenario.host_link.is_some() { it.one.host } else { 0 };
            let written = percent as f64 / 100.0;
            let limit = wave.and_then(|it| it.limit);
            let stream = Stream { from, to, written, limit, host };
            let group = groups.entry([from, to, percent, host]);
            group.or_insert((stream, Vec::new())).1.push(number);
            if self.accounts.works(it.one.vm) {
                let profile = &scenario.profiles[scenario.vms[it.one.vm].profile];
                let copied = f64::from(it.step()) / STEPS;
                let classes = self.accounts.classes();
                let at = scenario.vms[it.one.vm].profile;
                let own = classes.into_iter().find(|(p, d, _)| (*p, *d) == (at, from));
                let rate = own.map_or(0.0, |(_, _, class)| class.rate);
                let rate = rate * (1.0 - profile.reads) * copied;
                if rate > 0.0 {
                    mirrored.push(self.stage.mirrored(profile, to, rate));
                }
            }
        }
        (groups, mirrored)
    }
}
