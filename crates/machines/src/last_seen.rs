//! What Sterna last saw of each VM, for warnings.
//!
//! Three things have to be noticed. A VM that QEMU's owner starts by hand can be started with
//! the image that its disk has left. A VM that ended in a switch-over has to be started with
//! one of two images. A VM that hangs is found out only when it is asked. So Sterna looks at
//! VMs now and then, and whenever somebody asks about them: how they answer, and which images
//! they use. A look costs QEMU three questions, and leaves its monitor alone in between. libvirt
//! keeps by itself how a VM is started, and a look at its VMs takes several processes: Sterna
//! looks at these seldom, and whenever somebody asks. What such a look finds may be out of
//! date, so it tells only which images VMs have. It warns of VMs that it cannot reach (`away`),
//! and looks at these more often.
//!
//! A VM that is off, or does not answer, has the images that it was last seen with: nobody may
//! take them for files that nothing needs.
//!
//! An observation is dated at its start, so it proves nothing about a move that ended later.
//! Observations are not kept: a daemon that starts looks first.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sterna_api::{Error, Result, Warning};
use sterna_os::{clock, lock};
use sterna_qemu::{Drive, QemuError};
use sterna_runtime::tasks::Task;
use sterna_state::{Reach, VmMoveRecord, VmRecord};

use super::away::{Away, warnings_of};
use super::images::Sight;
use super::link::Link;
use super::processes::SeenProcess;
use super::unclear::{both, decide};
use crate::Machines;

/// How often VMs are looked at: somebody who has started one with the wrong image is told
/// before much is written to it.
const EVERY: Duration = Duration::from_secs(10);

/// How often VMs of libvirt are looked at: several processes for each VM.
const EVERY_OF_LIBVIRT: Duration = Duration::from_secs(300);

/// How often VMs of libvirt that could not be asked are looked at: whoever has mended that is
/// not to wait for the next look at all, and a libvirt that is away costs hardly anything.
const EVERY_AWAY: Duration = Duration::from_secs(30);

/// How many VMs of libvirt are looked at at a time while nobody waits: all at once would be
/// hundreds of processes.
const OF_LIBVIRT_AT_ONCE: usize = 4;

/// Looks in a row that get no answer until it is said that a VM hangs: another program
/// may have had its monitor for a moment.
pub(super) const HANGS: u32 = 2;

/// How a VM was, when it was last looked at.
#[derive(Debug)]
pub(super) struct LastSeen {
    /// When that began (seconds since 1970).
    at: u64,
    /// Its images, by the names of its disks; of one that is off, or was not asked, none.
    images: BTreeMap<String, String>,
    /// What one that is off is to start with, or what one that cannot be asked had; and when
    /// that was seen.
    off: Option<(u64, BTreeMap<String, String>)>,
    /// Whether it could not be asked, for whatever reason.
    is_unasked: bool,
    /// Why it did not answer, though it may be there; and how often in a row.
    silent: Option<(String, u32)>,
    /// If so, its images when it last did, if it ever did.
    before: Option<Vec<String>>,
    /// Why it could not be asked, unless it is simply off.
    pub(super) away: Option<Away>,
}

impl LastSeen {
    /// What a look that began then has found: whether it is on, and its disks.
    pub(super) fn of<'a>(
        at: u64,
        seen: std::result::Result<(bool, impl Iterator<Item = &'a Drive>), &QemuError>,
    ) -> LastSeen {
        let mut last_seen = LastSeen {
            at,
            images: BTreeMap::new(),
            off: None,
            is_unasked: seen.is_err(),
            silent: None,
            before: None,
            away: None,
        };
        let image = |drive: &Drive| (drive.device.clone(), drive.image.clone());
        match seen {
            Ok((true, drives)) => last_seen.images = drives.map(image).collect(),
            Ok((false, drives)) => {
                last_seen.off = Some((at, drives.map(image).collect()));
            }
            Err(error) => {
                last_seen.silent = error.is_silent().then(|| (error.to_string(), 1));
                last_seen.away = Away::of(error);
            }
        }
        last_seen
    }

    /// The same, if the look before it has found `before`.
    pub(super) fn after(mut self, before: &LastSeen) -> LastSeen {
        if self.is_unasked {
            let of_one_that_is_on = || (before.at, before.images.clone());
            self.off = before
                .off
                .clone()
                .or_else(|| (!before.is_unasked).then(of_one_that_is_on));
        }
        if self.silent.is_some() {
            self.before = before.last_images();
        }
        if let (Some((_, times)), Some((_, before))) = (&mut self.silent, &before.silent)
        {
            *times = before.saturating_add(1);
        }
        self.away = self.away.map(|away| away.after(before.away.as_ref()));
        self
    }

    /// Its images, when it last answered; none if it never did.
    pub(super) fn last_images(&self) -> Option<Vec<String>> {
        match self.silent {
            None => Some(self.images.values().cloned().collect()),
            Some(_) => self.before.clone(),
        }
    }

    /// What a VM of this name was seen with.
    pub(super) fn sights(&self, vm: &str) -> impl Iterator<Item = Sight> {
        let off = self.off.iter().map(|(at, images)| (*at, images));
        let all = std::iter::once((self.at, &self.images)).chain(off);
        let all = all.flat_map(|(at, images)| images.iter().map(move |it| (at, it)));
        all.map(|(at, (device, image))| Sight {
            vm: vm.to_owned(),
            device: device.clone(),
            image: image.clone(),
            at,
        })
    }

    /// The image of one of its disks, if that was seen after a move of it had ended. (Ends
    /// are known to the second.)
    fn image_since(&self, last: &VmMoveRecord) -> Option<&String> {
        let is_later = last.ended.is_some_and(|ended| self.at > ended);
        self.images.get(&last.device).filter(|_| is_later)
    }
}

/// How a VM is, and which process.
async fn look_briefly(
    link: Arc<Link>,
    known: Arc<HashMap<String, SeenProcess>>,
) -> (LastSeen, Option<SeenProcess>) {
    let at = clock::now();
    let asked = async {
        let vm = link.vm().await?;
        let (on, drives) = (vm.run().await?.on, vm.drives().await?);
        let known = known.get(&link.reach().to_string()).copied();
        let process = if on { SeenProcess::of(&vm, known).await } else { None };
        Ok((on, drives, process))
    };
    let seen: std::result::Result<(bool, Vec<Drive>, Option<SeenProcess>), QemuError> =
        asked.await;
    let last_seen = seen.as_ref().map(|(on, drives, _)| (*on, drives.iter()));
    (LastSeen::of(at, last_seen), seen.ok().and_then(|(_, _, process)| process))
}

/// Looks at VMs.
pub fn looking(machines: &Arc<Machines>) -> Task {
    let look = |machines: &Arc<Machines>| machines.look_at_vms();
    Task::every("vms", "check the VMs", EVERY, machines, look).after(Duration::ZERO)
}

/// Looks at VMs of libvirt.
pub fn looking_at_libvirt(machines: &Arc<Machines>) -> Task {
    let (name, what) = ("vms-of-libvirt", "check the VMs of libvirt");
    let all = EVERY_OF_LIBVIRT.as_secs() / EVERY_AWAY.as_secs();
    let mut rounds = (0..all).cycle();
    let look = move |machines: &Arc<Machines>| match rounds.next() {
        Some(0) => machines.look_at_vms_of_libvirt(),
        _ => machines.look_at_vms_that_are_away(),
    };
    Task::every(name, what, EVERY_AWAY, machines, look).after(Duration::ZERO)
}

impl Machines {
    /// Looks at all VMs that nobody else keeps.
    fn look_at_vms(&self) -> Result<()> {
        self.look_at_those(|vm| matches!(vm.reach, Reach::Qmp(_)), usize::MAX)
    }

    /// Looks at all VMs that libvirt keeps.
    fn look_at_vms_of_libvirt(&self) -> Result<()> {
        let is_of_libvirt = |vm: &VmRecord| matches!(vm.reach, Reach::Libvirt { .. });
        self.look_at_those(is_of_libvirt, OF_LIBVIRT_AT_ONCE)
    }

    /// Looks once more at VMs of libvirt that could not be asked.
    fn look_at_vms_that_are_away(&self) -> Result<()> {
        let is_away = |(name, seen): (&String, &LastSeen)| {
            seen.away.is_some().then(|| name.clone())
        };
        let away: BTreeSet<String> =
            lock(&self.vms.seen_of_libvirt).iter().filter_map(is_away).collect();
        if away.is_empty() {
            return Ok(());
        }
        self.look_at_those(|vm| away.contains(&vm.name), OF_LIBVIRT_AT_ONCE)
    }

    /// Looks at all VMs, for what must not rest on an old look.
    pub(super) fn look_at_all_vms(&self) -> Result<()> {
        self.look_at_those(|_| true, usize::MAX)
    }

    /// Looks at some VMs, so many at a time.
    fn look_at_those(
        &self,
        is_one: impl Fn(&VmRecord) -> bool,
        at_once: usize,
    ) -> Result<()> {
        let records = self.storage.store.vms()?;
        for seen in [&self.vms.last_seen, &self.vms.seen_of_libvirt] {
            lock(seen).retain(|name, _| records.iter().any(|vm| vm.name == *name));
        }
        self.forget_processes(|name| !records.iter().any(|vm| vm.name == name));
        let records: Vec<VmRecord> = records.into_iter().filter(is_one).collect();
        for these in records.chunks(at_once) {
            let known = Arc::new(self.processes_by_reach(these));
            let looks = self.vms.ask_all(these, |link| look_briefly(link, known.clone()));
            let (vms, found): (Vec<VmRecord>, Vec<_>) = looks.into_iter().unzip();
            let (last_seen, processes): (Vec<LastSeen>, Vec<_>) =
                found.into_iter().unzip();
            self.note_processes(vms.iter().zip(processes));
            self.note_last_seen(vms.iter().zip(last_seen));
            // Many that hang would hold up a daemon that stops.
            if self.vms.stopping.load(Ordering::SeqCst) {
                break;
            }
        }
        Ok(())
    }

    /// Takes note of what VMs were seen with. One that runs with the destination of a
    /// move whose end was unclear has been given that by somebody who knows of it; with
    /// the source it may have been started as always.
    pub(super) fn note_last_seen<'a>(
        &self,
        last_seen: impl IntoIterator<Item = (&'a VmRecord, LastSeen)>,
    ) {
        let unclear = self.storage.store.unclear_vm_moves().unwrap_or_default();
        for (vm, last_seen) in last_seen {
            for last in unclear.iter().filter(|last| last.vm == vm.name) {
                let image = last_seen.image_since(last);
                if image.is_none_or(|image| *image != last.destination) {
                    continue;
                }
                tracing::info!(
                    migration = last.id,
                    vm = vm.name,
                    "the VM runs with the destination: the end of the move is clear now"
                );
                if let Err(error) = self.storage.store.vm_move_is_clear(last.id) {
                    tracing::warn!(migration = last.id, %error, "cannot record that a \
                                                                 move's end is clear");
                }
            }
            self.remember(vm, last_seen);
        }
    }

    /// Keeps the latest look at a VM. One that was removed and added again by another way has
    /// nothing any more of what was seen by the way before.
    fn remember(&self, vm: &VmRecord, seen: LastSeen) {
        let (qmp, libvirt) = (&self.vms.last_seen, &self.vms.seen_of_libvirt);
        let (all, others) = match vm.reach {
            Reach::Qmp(_) => (qmp, libvirt),
            Reach::Libvirt { .. } => (libvirt, qmp),
        };
        // A look by the way before may end after one by the new way.
        lock(others).retain(|name, other| *name != vm.name || other.at > seen.at);
        let mut all = lock(all);
        let seen = match all.get(&vm.name) {
            Some(before) if before.at > seen.at => return,
            Some(before) => seen.after(before),
            None => seen,
        };
        all.insert(vm.name.clone(), seen);
    }

    /// What somebody should know of VMs.
    pub fn vm_warnings(&self) -> Result<Vec<Warning>> {
        let left = self.storage.store.untidy_vm_moves()?;
        let mut warnings: Vec<Warning> = left.iter().map(untidy).collect();
        let (known, last) =
            (self.storage.store.vms()?, self.storage.store.last_vm_moves()?);
        let last_seen = lock(&self.vms.last_seen);
        for vm in &known {
            let silent = last_seen.get(&vm.name).and_then(|seen| seen.silent.as_ref());
            let Some((why, _)) = silent.filter(|(_, times)| *times >= HANGS) else {
                continue;
            };
            warnings.push(Warning {
                about: format!("vm {}", vm.name),
                message: why.clone(),
                hint:
                    "find out why the VM's QEMU does not answer; until it does, Sterna \
                     cannot move the VM's disks"
                        .into(),
            });
        }
        drop(last_seen);
        warnings.extend(warnings_of(&known, &lock(&self.vms.seen_of_libvirt)));
        let last_seen = lock(&self.vms.last_seen);
        for last in last {
            if !known.iter().any(|vm| is_of(&last, vm)) {
                continue;
            }
            let image = last_seen.get(&last.vm).and_then(|seen| seen.image_since(&last));
            if last.unclear {
                warnings.push(unclear(&last, image == Some(&last.source)));
            } else if let Some(image) = image {
                warnings.extend(self.went_back_to(&last, image)?);
            }
        }
        Ok(warnings)
    }

    /// What is to be said of a VM that runs with this image after its last move.
    fn went_back_to(&self, last: &VmMoveRecord, image: &str) -> Result<Option<Warning>> {
        if image == last.destination {
            return Ok(None);
        }
        let left = self.storage.store.left_by_vm_move(&last.vm, &last.device, image)?;
        Ok(left.map(|left| went_back(&left, last)))
    }

    /// Refuses to go on with an image that a disk of this VM has left: that would make it
    /// look like the latest.
    pub(super) fn check_latest(&self, vm: &VmRecord, drive: &Drive) -> Result<()> {
        let of_disk =
            |last: &VmMoveRecord| last.device == drive.device && is_of(last, vm);
        let Some(last) = self.storage.store.last_vm_moves()?.into_iter().find(of_disk)
        else {
            return Ok(());
        };
        let warning = match last.unclear {
            true if drive.image == last.source => Some(unclear(&last, true)),
            true => None,
            false => self.went_back_to(&last, &drive.image)?,
        };
        match warning {
            None => Ok(()),
            Some(Warning { about, message, hint }) => {
                Err(Error::in_use(format!("{about}: {message}")).hint(hint))
            }
        }
    }
}

/// Whether a move was of this VM. One by its name that was added since is another.
fn is_of(last: &VmMoveRecord, vm: &VmRecord) -> bool {
    vm.name == last.vm && last.ended.is_some_and(|ended| vm.added <= ended)
}

/// Its VM has not let go of a move that has ended.
fn untidy(last: &VmMoveRecord) -> Warning {
    Warning {
        about: format!("vm {}", last.vm),
        message: format!(
            "migration {} has ended, but the VM's QEMU may still have a part of its copy",
            last.id
        ),
        hint: format!("Sterna removes that part once {} answers", last.vm),
    }
}

/// Nobody has seen in which image the last writes are; it may run with the old one.
fn unclear(last: &VmMoveRecord, runs: bool) -> Warning {
    let (source, destination) = both(last);
    let VmMoveRecord { vm, device, id, .. } = last;
    let where_it_is = match runs {
        true => format!("; the VM runs with {source}"),
        false => String::new(),
    };
    Warning {
        about: format!("vm {vm}"),
        message: format!(
            "the last writes of the VM's disk {device} may be in {source} or in \
             {destination} (migration {id}){where_it_is}"
        ),
        hint: match runs {
            true => format!("stop {vm}; {}; {}", decide(last), settled(vm)),
            false => format!("{}; {}", decide(last), settled(vm)),
        },
    }
}

/// What ends a warning that is none.
fn settled(vm: &str) -> String {
    format!(
        "if the VM uses the right image, end this warning: `sterna vm remove {vm}`, and \
         add the VM again"
    )
}

/// It runs with what it has left by a move that is not the last, maybe.
fn went_back(left: &VmMoveRecord, last: &VmMoveRecord) -> Warning {
    let ((source, _), (_, destination)) = (both(left), both(last));
    let VmMoveRecord { vm, device, id, .. } = left;
    Warning {
        about: format!("vm {vm}"),
        message: format!(
            "the VM uses {source}, the old image of its disk {device}: migration {id} \
             moved the disk, and later writes are in {destination}"
        ),
        hint: format!("stop {vm}, and start the VM with {destination}; {}", settled(vm)),
    }
}
