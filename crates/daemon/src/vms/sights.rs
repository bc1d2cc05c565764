//! What machines were seen with, so that somebody is told who has to know.
//!
//! A machine that QEMU's owner starts by hand can be started with the image that its disk
//! has left; one that ended in a switch-over has to be started with one of two; and one
//! that hangs is found out only when it is asked. So all machines are looked at now and
//! then, and whenever somebody looks at them: how they answer, and which images they use.
//! It costs QEMU two questions, and its monitor is left alone in between.
//!
//! What was seen is not kept: a daemon that starts looks first.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use sterna_api::Warning;
use sterna_qemu::{Drive, QemuError};
use tokio::task::JoinSet;

use super::mover::both;
use super::view::decide;
use crate::clock;
use crate::daemon::{Daemon, lock};
use crate::error::Result;
use crate::store::{Step, VmMoveRecord};

/// How often machines are looked at: somebody who has started one with the wrong image is
/// told before much is written to it.
const EVERY: Duration = Duration::from_secs(15);

/// How a machine was, when it was last looked at.
#[derive(Debug)]
pub(super) enum Sight {
    /// It is off, or nobody answers in its place.
    Off,
    /// It does not answer, though it may be there; why.
    Silent(String),
    /// It is on, with these images, by the names of its disks.
    On(BTreeMap<String, String>),
}

impl Sight {
    /// What a look has found.
    pub(super) fn of(seen: &std::result::Result<(bool, Vec<Drive>), QemuError>) -> Sight {
        match seen {
            Ok((true, drives)) => {
                let image = |drive: &Drive| (drive.device.clone(), drive.image.clone());
                Sight::On(drives.iter().map(image).collect())
            }
            Err(error) if error.is_silent() => Sight::Silent(error.to_string()),
            _ => Sight::Off,
        }
    }

    /// The image of one of its disks.
    fn image(&self, device: &str) -> Option<&String> {
        match self {
            Sight::On(images) => images.get(device),
            Sight::Off | Sight::Silent(_) => None,
        }
    }
}

/// Starts looking at machines. It ends with the daemon.
pub(crate) fn start(daemon: &Arc<Daemon>) -> std::io::Result<()> {
    let daemon = Arc::downgrade(daemon);
    let thread = thread::Builder::new().name("sterna-sights".into());
    thread.spawn(move || look_for_ever(&daemon)).map(drop)
}

fn look_for_ever(daemon: &Weak<Daemon>) {
    loop {
        {
            let Some(daemon) = daemon.upgrade() else { return };
            if let Err(error) = daemon.look_at_vms() {
                tracing::warn!(%error, "cannot look at the virtual machines");
            }
        }
        thread::sleep(EVERY);
    }
}

impl Daemon {
    /// Looks at all machines.
    fn look_at_vms(&self) -> Result<()> {
        let records = self.store.vms()?;
        lock(&self.vms.sights)
            .retain(|name, _| records.iter().any(|vm| vm.name == *name));
        let mut looks = JoinSet::new();
        for vm in records {
            let link = self.vms.link(&vm.reach);
            let look = async move {
                let machine = link.machine().await?;
                Ok((machine.run().await?.on, machine.drives().await?))
            };
            let look = async move { (vm.name, look.await) };
            looks.spawn_on(look, &self.vms.runtime);
        }
        for (name, seen) in self.vms.runtime.block_on(looks.join_all()) {
            self.note_sight(&name, Sight::of(&seen));
        }
        Ok(())
    }

    /// Takes note of what a machine was seen with. One that runs with the destination of
    /// a move whose end was unclear has been given that by somebody who knows of it; with
    /// the source it may have been started as always.
    pub(super) fn note_sight(&self, vm: &str, sight: Sight) {
        for last in self.store.last_vm_moves().unwrap_or_default() {
            let is_of = last.unclear && last.vm == vm;
            let image = sight.image(&last.device).filter(|_| is_of);
            let Some(image) = image.filter(|image| **image == last.destination) else {
                continue;
            };
            tracing::info!(migration = last.id, vm, image, "somebody has decided");
            if let Err(error) = self.store.vm_move_is_clear(last.id) {
                tracing::warn!(migration = last.id, %error, "not recorded");
            }
        }
        lock(&self.vms.sights).insert(vm.to_owned(), (clock::now(), sight));
    }

    /// What somebody should know of machines.
    pub(crate) fn vm_warnings(&self) -> Result<Vec<Warning>> {
        let mut warnings: Vec<Warning> =
            self.store.untidy_vm_moves()?.iter().map(untidy).collect();
        let known = self.store.vms()?;
        let sights = lock(&self.vms.sights);
        for (vm, (_, sight)) in sights.iter() {
            let Sight::Silent(why) = sight else { continue };
            warnings.push(Warning {
                about: format!("vm {vm}"),
                message: why.clone(),
                hint: "see what its QEMU does; nothing of it can be moved meanwhile"
                    .into(),
            });
        }
        for last in self.store.last_vm_moves()? {
            // One by that name that was added since is another.
            let is_known = |vm: &&crate::store::VmRecord| {
                vm.name == last.vm && last.ended.is_some_and(|ended| vm.added <= ended)
            };
            if known.iter().find(is_known).is_none() {
                continue;
            }
            // What was seen before its end says nothing; nor in the second of a
            // switch-over.
            let least = last.ended.map(|ended| ended + u64::from(!last.unclear));
            let since = sights.get(&last.vm).filter(|(at, _)| Some(*at) >= least);
            let image = since.and_then(|(_, sight)| sight.image(&last.device));
            if last.unclear {
                warnings.push(unclear(&last, image == Some(&last.source)));
            } else if last.step == Step::Completed && image == Some(&last.source) {
                warnings.push(went_back(&last));
            }
        }
        Ok(warnings)
    }
}

/// Its machine has not let go of a move that has ended.
fn untidy(last: &VmMoveRecord) -> Warning {
    Warning {
        about: format!("vm {}", last.vm),
        message: format!(
            "its QEMU may still have something of the copy of migration {}, which has ended",
            last.id
        ),
        hint: format!("it is given up once {} answers", last.vm),
    }
}

/// Nobody has seen in which image the last writes are; it may run with the old one.
fn unclear(last: &VmMoveRecord, runs: bool) -> Warning {
    let (source, destination) = both(last);
    let VmMoveRecord { vm, device, id, .. } = last;
    let where_it_is = match runs {
        true => format!("; it runs with {source}"),
        false => String::new(),
    };
    Warning {
        about: format!("vm {vm}"),
        message: format!(
            "the last writes of its disk {device} may be in {source} or in {destination} \
             (migration {id}){where_it_is}"
        ),
        hint: match runs {
            true => format!("stop {vm}; {}; {}", decide(last), settled(vm)),
            false => decide(last),
        },
    }
}

/// What ends a warning that is none.
fn settled(vm: &str) -> String {
    format!("if it is as it should be: `sterna vm remove {vm}`, and add it again")
}

fn went_back(last: &VmMoveRecord) -> Warning {
    let (source, destination) = both(last);
    let VmMoveRecord { vm, device, id, .. } = last;
    Warning {
        about: format!("vm {vm}"),
        message: format!(
            "its disk {device} is {source}, which it had left with migration {id}: what was \
             written since then is in {destination}"
        ),
        hint: format!("stop {vm} and start it with {destination}; {}", settled(vm)),
    }
}
