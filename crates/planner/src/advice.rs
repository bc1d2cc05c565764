//! What to do about disks and datastores: what `core` is told of them, and its findings in
//! words, with commands.

use std::collections::{HashMap, HashSet};

use sterna_api::{
    Advice, AdviceKind, Advised, Error, ErrorCode, Nature, Result, SeenDisk, Vm, VmDisk,
    VmState,
};
use sterna_core::advise::{
    self, About, Datastore, Disk, Facts, Finding, Requests, Way, advise,
};
use sterna_core::measure::{LqFit, Side, Summary};
use sterna_core::{Bytes, Nanos, Percent};
use sterna_service_levels::PolicySnapshot;
use sterna_state::DiskRecord;
use sterna_storage::handle::{DatastoreHandle, SpaceAnswer};
use sterna_telemetry::samples::window;

use crate::Planner;

/// The shortest window, in seconds: means of less are chance.
const WINDOW_LEAST_S: f64 = 1.0;

/// The longest: so much is kept.
const WINDOW_MOST_S: f64 = 3600.0;

/// The facts, and what they are of.
struct Scene {
    facts: Facts,
    datastores: Vec<String>,
    disks: Vec<DiskRecord>,
    /// The classes of the disks, by their place.
    classes: Vec<Option<String>>,
}

impl Planner {
    /// Advice about the disk, the datastore or the VM of that name, or about all of them.
    pub fn advise(&self, about: Option<&str>, window_s: f64) -> Result<Advised> {
        let scene = self.seen(window(window_s, WINDOW_LEAST_S, WINDOW_MOST_S)?)?;
        let vm = match about {
            Some(name) => self.vm_asked_about(name, scene.knows(name))?,
            None => None,
        };
        let asked = |at: About| {
            let is_named = about.is_none_or(|name| scene.name(at) == name);
            let of_vm = |vm: &Vm| has_disk(vm, scene.name(at));
            is_named || matches!(at, About::Disk(_)) && vm.as_ref().is_some_and(of_vm)
        };
        let is_asked = |at: usize| {
            let there = scene.facts.disks[at].datastore;
            asked(About::Disk(at)) || asked(About::Datastore(there))
        };
        let found = advise(&scene.facts).into_iter();
        let wanted = found.filter(|one| match one.about {
            About::Disk(at) => is_asked(at),
            datastore @ About::Datastore(_) => asked(datastore),
        });
        Ok(Advised {
            window_s,
            disks: (0..scene.disks.len())
                .filter(|at| is_asked(*at))
                .map(|at| scene.seen(at))
                .collect(),
            advice: wanted
                .map(|one| scene.in_words(one))
                .chain(vm.iter().flat_map(of_vm))
                .collect(),
        })
    }

    /// The VM of that name, with its disks. If there is none, the name is that of a disk or a
    /// datastore, or nothing's; if there are both, the answer is about both.
    fn vm_asked_about(&self, name: &str, is_other: bool) -> Result<Option<Vm>> {
        if self.storage.store.vms()?.iter().any(|vm| vm.name == name) {
            return self.machines.show_vm(name).map(Some);
        }
        if is_other {
            return Ok(None);
        }
        let message = format!("there is no disk, no datastore and no VM {name}");
        let hint = "see `sterna disk list`, `sterna datastore list` and `sterna vm list`";
        Err(Error::new(ErrorCode::NotFound, message).hint(hint))
    }

    /// What was measured of everything.
    fn seen(&self, window: Nanos) -> Result<Scene> {
        let (mut names, mut datastores) = (Vec::new(), Vec::new());
        for (handle, found) in self.storage.look_at_handles() {
            datastores.push(self.seen_datastore(&handle, &found, window));
            names.push(handle.name().to_owned());
        }
        let known: HashMap<&str, usize> =
            names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let snapshot = self.levels.snapshot();
        let under_way = self.moves.list_recent(u64::MAX)?.into_iter();
        let under_way = under_way.filter(|one| !one.state.ended());
        let moving: HashSet<String> = under_way.map(|one| one.disk).collect();
        let (mut records, mut disks, mut classes) = (Vec::new(), Vec::new(), Vec::new());
        for record in self.storage.store.disks()? {
            let Some(at) = known.get(record.datastore.as_str()) else { continue };
            let moves = moving.contains(&record.name);
            disks.push(self.seen_disk(&record, *at, &snapshot, window, moves));
            let class = snapshot.class_of(record.id);
            classes.push(class.map(|entry| entry.record.name.clone()));
            records.push(record);
        }
        let facts = Facts { datastores, disks };
        Ok(Scene { facts, datastores: names, disks: records, classes })
    }

    fn seen_datastore(
        &self,
        handle: &DatastoreHandle,
        found: &SpaceAnswer,
        window: Nanos,
    ) -> Datastore {
        let name = handle.name();
        let space = found.as_ref().ok();
        Datastore {
            taken: space.and_then(|space| handle.taken(space)),
            shared_room: space.and_then(|space| space.room),
            device: self
                .storage
                .samples
                .device(name)
                .unwrap_or(LqFit::TooFew { points: 0 }),
            iops: self.storage.samples.of_datastore(name, window).iops(),
        }
    }

    fn seen_disk(
        &self,
        record: &DiskRecord,
        datastore: usize,
        snapshot: &PolicySnapshot,
        window: Nanos,
        moving: bool,
    ) -> Disk {
        let summary = self.storage.samples.of_disk(record.id, window);
        let orders = self.storage.orders(record.id);
        let requests = |side: &Side, in_order| Requests {
            iops: summary.per_second(side.operations as f64),
            bytes_per_second: summary.per_second(side.bytes),
            in_order,
        };
        let governed = snapshot.class_of(record.id).is_some_and(|entry| {
            !entry.policies.is_empty() || entry.record.reservation.is_some()
        });
        let Summary { queue, service, there, .. } = summary;
        Disk {
            datastore,
            read: requests(&summary.read, orders[0]),
            write: requests(&summary.write, orders[1]),
            outstanding: summary.outstanding(),
            queue,
            service,
            there,
            way: if record.vhost_user.is_some() { Way::VhostUser } else { Way::Nbd },
            governed,
            moving,
        }
    }
}

/// Whether a disk of ours is one of a VM's.
fn has_disk(vm: &Vm, name: &str) -> bool {
    vm.disks.iter().any(|disk| disk.disk.as_deref() == Some(name))
}

/// What there is to say of a VM: that it cannot be asked, or that disks of its are not
/// ours.
fn of_vm(vm: &Vm) -> Vec<Advice> {
    let name = &vm.name;
    if vm.disks.is_empty() && matches!(vm.state, VmState::Running | VmState::Paused) {
        return vec![Advice {
            about: format!("VM {name}"),
            kind: AdviceKind::Unasked,
            message:
                "QEMU serves no disks for this VM; the VM may have vhost-user disks, \
                 which QEMU does not list"
                    .into(),
            hint: "see `sterna disk list`, and `sterna advise DISK`".into(),
        }];
    }
    if vm.disks.is_empty() {
        let why = vm.detail.as_deref().unwrap_or("the VM has no disks");
        return vec![Advice {
            about: format!("VM {name}"),
            kind: AdviceKind::Unasked,
            message: format!("the disks of the VM are unknown: {why}"),
            hint: format!("start the VM, and see `sterna vm show {name}`"),
        }];
    }
    let others = vm.disks.iter().filter(|disk| disk.disk.is_none() && !disk.read_only);
    let unserved = |disk: &VmDisk| {
        let device = &disk.device;
        Advice {
            about: format!("disk {device} of {name}"),
            kind: AdviceKind::Unserved,
            message: "QEMU serves this disk: no service level applies to it, and Sterna \
                      knows only the number of its requests"
                .into(),
            hint: match &disk.unmovable {
                Some(why) => {
                    format!("this disk can be neither adopted nor moved: {why}")
                }
                None => format!(
                    "`sterna vm adopt {name} {device} --on …` turns it into a Sterna \
                     disk, without a reboot; `sterna vm move {name} {device} --to …` \
                     moves it as it is, under a guard"
                ),
            },
        }
    };
    others.map(unserved).collect()
}

impl Scene {
    /// Whether there is a disk or a datastore of that name.
    fn knows(&self, name: &str) -> bool {
        self.datastores.iter().any(|known| known == name)
            || self.disks.iter().any(|known| known.name == name)
    }

    fn name(&self, about: About) -> &str {
        match about {
            About::Datastore(at) => &self.datastores[at],
            About::Disk(at) => &self.disks[at].name,
        }
    }

    fn seen(&self, at: usize) -> SeenDisk {
        let disk = &self.facts.disks[at];
        SeenDisk {
            disk: self.disks[at].name.clone(),
            datastore: self.datastores[disk.datastore].clone(),
            nature: match advise::Nature::of(disk) {
                advise::Nature::Idle => Nature::Idle,
                advise::Nature::Random => Nature::Random,
                advise::Nature::Log => Nature::Log,
                advise::Nature::Stream => Nature::Stream,
                advise::Nature::Mixed => Nature::Mixed,
            },
            iops: disk.iops(),
            length: (disk.iops() > 0.0).then(|| disk.length()),
            in_order: disk.in_order(),
            there: disk.there,
        }
    }

    fn in_words(&self, one: advise::Advice) -> Advice {
        let name = self.name(one.about);
        let about = match one.about {
            About::Datastore(_) => format!("datastore {name}"),
            About::Disk(_) => format!("disk {name}"),
        };
        let (kind, message, hint) = match one.about {
            About::Datastore(at) => self.of_datastore(at, one.finding),
            About::Disk(at) => self
                .of_disk(at, one.finding)
                .unwrap_or_else(|| self.of_its_move(at, one.finding)),
        };
        Advice { about, kind, message, hint }
    }

    fn of_datastore(&self, at: usize, finding: Finding) -> (AdviceKind, String, String) {
        let name = &self.datastores[at];
        match finding {
            Finding::Full { taken } => (
                AdviceKind::Full,
                format!("{} of its space is used", Percent(taken)),
                "`sterna storage-drs recommend` lists the disks that could move away"
                    .into(),
            ),
            Finding::NearPeak { part, peak } => (
                AdviceKind::NearPeak,
                format!(
                    "it does {} of the {peak:.0} IO/s that its device can do, and \
                     limits every move from it or to it",
                    Percent(part)
                ),
                "`sterna storage-drs recommend` lists the disks that should move away; \
                 move with --keep or --idle-only"
                    .into(),
            ),
            _ => (
                AdviceKind::Unmeasured,
                "the limits of its device are unknown yet".into(),
                format!("`sterna datastore probe {name}` measures them"),
            ),
        }
    }

    /// What is wrong with a disk; nothing if the finding is of another kind.
    fn of_disk(
        &self,
        at: usize,
        finding: Finding,
    ) -> Option<(AdviceKind, String, String)> {
        let name = &self.disks[at].name;
        let there = &self.datastores[self.facts.disks[at].datastore];
        Some(match finding {
            Finding::Queued { part } => (
                AdviceKind::Queued,
                format!("{} of its response time is waiting for a turn", Percent(part)),
                match &self.classes[at] {
                    Some(class) => {
                        format!("`sterna policy explain {class}` shows what limits it")
                    }
                    None => {
                        format!("`sterna top --by class` shows the other load on {there}")
                    }
                },
            ),
            Finding::Narrow { outstanding } => (
                AdviceKind::Narrow,
                format!(
                    "it has {outstanding:.1} requests under way, and QEMU's NBD client \
                     permits 16"
                ),
                format!("`sterna disk attach {name} --vhost-user PATH` permits more"),
            ),
            Finding::Broken { by } => (
                AdviceKind::Broken,
                format!(
                    "it works sequentially, but {} on the same spindles does not, and \
                     makes it seek",
                    self.disks[by].name
                ),
                format!("give it a separate datastore: `sterna migrate {name} --to …`"),
            ),
            Finding::Ungoverned { part, beside } => (
                AdviceKind::Ungoverned,
                format!(
                    "it transfers {} of the bytes on {there}, beside {}, and no policy \
                     limits it",
                    Percent(part),
                    self.disks[beside].name
                ),
                "give it a class and a limit, for some hours if need be: `sterna class \
                 create`, `sterna policy limit … --schedule …`; or the others a target: \
                 `sterna policy cruise`"
                    .into(),
            ),
            _ => return None,
        })
    }

    /// How a disk is best moved.
    fn of_its_move(&self, at: usize, finding: Finding) -> (AdviceKind, String, String) {
        let name = &self.disks[at].name;
        match finding {
            Finding::MoveWhenQuiet { random, there, flash } => (
                AdviceKind::MoveWhenQuiet,
                format!(
                    "{} of its requests are random, and it is in use {} of the time: the \
                     disk and a copy would slow each other down",
                    Percent(random),
                    Percent(there)
                ),
                match flash {
                    Some(flash) => format!(
                        "move it when it is quiet, or with a promise; on flash the \
                         effect is smallest: `sterna migrate {name} --to {} --keep 97%`",
                        self.datastores[flash]
                    ),
                    None => format!(
                        "move it when it is quiet, or with a promise: `sterna migrate \
                         {name} --to … --keep 97%`"
                    ),
                },
            ),
            Finding::MoveWithBound { length, response } => (
                AdviceKind::MoveWithBound,
                format!(
                    "the application waits for each of its requests ({}, {response})",
                    Bytes(length as u64)
                ),
                format!(
                    "move it with a bound on response times: `sterna migrate {name} \
                     --to … --p99 …`"
                ),
            ),
            Finding::MoveAnyTime { in_order } => (
                AdviceKind::MoveAnyTime,
                format!("{} of its requests are sequential", Percent(in_order)),
                format!("you can move it at any time: `sterna migrate {name} --to …`"),
            ),
            _ => unreachable!("{finding:?} is not about a move"),
        }
    }
}
