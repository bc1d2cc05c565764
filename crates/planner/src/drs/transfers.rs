//! Transfers, as the API's requests see them: machines that go to the hosts which are
//! recommended for them.
//!
//! `fit` says whether a machine can go to a QEMU, `program` starts one, `stream` is the
//! socket over which the guest goes there. `mover` carries out what `core::transfer`
//! decides: it asks both QEMUs (`asking`, `qemu`), makes steps durable (`ends`) and has the
//! words for people (`words`); `stranded` has those without a thread; `session` is what is known of it meanwhile.
//!
//! **Never two.** A transfer is entered in the registry before anything is done, and a machine
//! has one at most: so is said to all who would move the machine or its disks. From the
//! commit on the machine is reached at the other QEMU; before that, only the old one may
//! run it, and after that, only the new one. QEMU itself starts nothing
//! ([`sterna_qemu::Direct::receive`]).

mod asking;
mod ends;
mod fit;
mod mover;
mod program;
mod qemu;
mod session;
mod stranded;
mod stream;
mod view;
mod words;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sterna_api::{Error, Result, StartTransfer, Transfer};
use sterna_core::DiskId;
use sterna_core::place::hosts::{Recommended, waits};
use sterna_machines::claim_of;
use sterna_moves::check_rate;
use sterna_os::clock;
use sterna_state::{Entry, TransferDesign, TransferRecord, TransferStep};

use self::fit::socket_of;
pub(super) use self::session::Sessions;
use self::stream::Stream;
use super::hold;
use super::scene::Scene;
use crate::Planner;

/// How fast memory is copied unless somebody says otherwise: what moves are weighed with.
const RATE: u64 = 1_100_000_000;

/// What is asked of the transfers of a recommendation.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// The socket of the QEMU that waits, if somebody has started it.
    pub(super) qmp: Option<PathBuf>,
    pub(super) rate: Option<u64>,
    /// Whether nobody has asked for it.
    pub(super) automatic: bool,
}

/// A machine that goes from one host to another, and why.
#[derive(Clone, Debug)]
struct SwapHalf {
    vm: String,
    from: String,
    to: String,
    reason: String,
    priority: u8,
}

/// Both machines of a recommendation, or the one.
fn halves(scene: &Scene, one: &Recommended) -> Vec<SwapHalf> {
    let half = |vm: usize, from: usize, to: usize| SwapHalf {
        vm: scene.vms[vm].clone(),
        from: scene.hosts[from].clone(),
        to: scene.hosts[to].clone(),
        reason: scene.aim(one.goal, one.from),
        priority: one.priority,
    };
    let back = one.back.map(|back| half(back, one.to, one.from));
    [half(one.vm, one.from, one.to)].into_iter().chain(back).collect()
}

impl Planner {
    /// Carries out what is recommended for a machine now.
    pub fn start_transfer(
        self: &Arc<Self>,
        request: &StartTransfer,
    ) -> Result<Vec<Transfer>> {
        check_rate(request.rate)?;
        let vm = &request.vm;
        self.machines.vm_record(vm)?;
        self.check_no_transfer(vm)?;
        let found = self.with_drs(|registry, state| {
            let (scene, advice) = state.advice(registry, super::round::now());
            let named = |at: usize| scene.vms[at] == *vm;
            let of_it = |one: &&Recommended| named(one.vm) || one.back.is_some_and(named);
            let one = advice.moves.iter().find(of_it)?;
            let held =
                state.cooldowns.is_held(&hold(&registry.settings)) || !waits(one.goal);
            Some((halves(&scene, one), held))
        })?;
        let Some((halves, held)) = found else {
            let message = format!("DRS recommends nothing for VM {vm}");
            return Err(Error::invalid(message)
                .hint(format!("`sterna drs explain {vm}` gives the reason")));
        };
        if !held {
            let message = format!("the recommendation for VM {vm} may still disappear");
            let hint = "a recommendation must last for some checks in a row: `sterna \
                        drs recommend` shows how many";
            return Err(Error::invalid(message).hint(hint));
        }
        let asked = Asked {
            qmp: request.qmp.as_deref().map(socket_of).transpose()?,
            rate: request.rate,
            automatic: false,
        };
        if asked.qmp.is_some() && halves.len() > 1 {
            let [one, other] = [&halves[0].vm, &halves[1].vm];
            let message = format!("{one} and {other} change places, and one QEMU waits");
            return Err(Error::invalid(message).hint(
                "set a program that starts VMs for both hosts: `sterna host program`",
            ));
        }
        self.begin_transfers(&halves, &asked)
    }

    /// Carries out a recommendation.
    pub(super) fn transfer_recommended(
        self: &Arc<Self>,
        scene: &Scene,
        one: &Recommended,
        asked: &Asked,
    ) -> Result<Vec<Transfer>> {
        self.begin_transfers(&halves(scene, one), asked)
    }

    /// Enters the transfers of all legs, or of none, and has them begin.
    fn begin_transfers(
        self: &Arc<Self>,
        halves: &[SwapHalf],
        asked: &Asked,
    ) -> Result<Vec<Transfer>> {
        let claim = |half: &SwapHalf| self.storage.claims.alone(claim_of(&half.vm));
        let _claims = halves.iter().map(claim).collect::<Result<Vec<_>>>()?;
        let record = |half: &SwapHalf| {
            Ok(TransferRecord {
                id: 0,
                vm: half.vm.clone(),
                step: TransferStep::Created,
                design: self.design(half, asked)?,
                cancel: false,
                started: clock::now(),
                end: None,
            })
        };
        let records = halves.iter().map(record).collect::<Result<Vec<_>>>()?;
        let registry = self.drs.ledger.change(&mut |registry| {
            for one in &records {
                no_transfer(&registry.transfers, &one.vm)?;
            }
            Ok(records.iter().cloned().map(Entry::Transfer).collect())
        })?;
        let mut entered = registry.transfers;
        entered.retain(|one| halves.iter().any(|half| half.vm == one.vm));
        self.start_entered(&entered)?;
        Ok(entered.iter().map(|one| self.view_transfer(one)).collect())
    }

    /// What is to be done, if it can be.
    fn design(&self, half: &SwapHalf, asked: &Asked) -> Result<TransferDesign> {
        let (source, disks) = self.sendable(&half.vm)?;
        let (destination, program) = match &asked.qmp {
            Some(socket) => {
                self.check_receiver(&half.vm, &source, socket)?;
                (socket.clone(), None)
            }
            None => {
                let program = self.program_of(&half.to, &half.vm)?;
                let name = format!("{}-{:x}.qmp", half.vm, clock::now());
                (source.with_file_name(name), Some(program))
            }
        };
        Stream::to(&destination, false).check()?;
        Ok(TransferDesign {
            from: half.from.clone(),
            to: half.to.clone(),
            source,
            destination,
            program,
            disks: disks.iter().map(DiskId::to_string).collect(),
            rate: asked.rate,
            reason: half.reason.clone(),
            priority: half.priority,
            automatic: asked.automatic,
            receiver: None,
        })
    }

    /// All transfers, oldest first.
    pub fn list_transfers(&self) -> Result<Vec<Transfer>> {
        let all = self.storage.store.transfers()?;
        Ok(all.iter().map(|one| self.view_transfer(one)).collect())
    }

    /// One transfer.
    pub fn show_transfer(&self, id: u64) -> Result<Transfer> {
        let found = self.storage.store.transfers()?.into_iter().find(|one| one.id == id);
        let known = found.map(|one| self.view_transfer(&one));
        known.ok_or_else(|| no_such(id))
    }

    /// Gives a transfer up, while the guest runs where it was.
    pub fn cancel_transfer(&self, id: u64) -> Result<Transfer> {
        let ended = self.show_transfer(id)?;
        self.drs.ledger.change(&mut |registry| {
            let Some(one) = registry.transfers.iter().find(|one| one.id == id) else {
                let message = format!("transfer {id} of {} has ended", ended.vm);
                return Err(
                    Error::invalid(message).hint("see `sterna drs migration list`")
                );
            };
            if one.step == TransferStep::Committed {
                let message = format!("transfer {id} of {} is switching over", one.vm);
                return Err(
                    Error::in_use(message).hint("see `sterna drs migration list`")
                );
            }
            Ok(vec![Entry::Transfer(TransferRecord { cancel: true, ..one.clone() })])
        })?;
        if let Some(session) = self.drs.sessions.get(id) {
            session.cancel();
        }
        self.show_transfer(id)
    }

    /// Gives up what is under way: nobody would have the guest run at its end.
    pub fn leave_transfers(&self) {
        self.drs.sessions.stopping.store(true, Ordering::SeqCst);
        self.drs.sessions.all().iter().for_each(|session| session.wake());
    }

    /// Refuses a machine that is on its way.
    pub fn check_no_transfer(&self, vm: &str) -> Result<()> {
        no_transfer(&self.drs.ledger.read()?.transfers, vm)
    }

    /// Refuses a disk whose machine is on its way.
    pub(crate) fn check_disk_rests(&self, disk: DiskId) -> Result<()> {
        let id = disk.to_string();
        let registry = self.drs.ledger.read()?;
        let of_it = |one: &&TransferRecord| one.design.disks.contains(&id);
        match registry.transfers.iter().find(of_it) {
            Some(one) => no_transfer(&registry.transfers, &one.vm),
            None => Ok(()),
        }
    }
}

fn no_such(id: u64) -> Error {
    Error::not_found("transfer", id).hint("see `sterna drs migration list`")
}

/// Refuses a machine that is on its way.
fn no_transfer(open: &[TransferRecord], vm: &str) -> Result<()> {
    let Some(one) = open.iter().find(|one| one.vm == vm) else { return Ok(()) };
    let (id, to) = (one.id, &one.design.to);
    let message = format!("VM {vm} is being migrated to host {to}: transfer {id}");
    let hint =
        format!("wait for the VM migration, or `sterna drs migration cancel {id}`");
    Err(Error::in_use(message).hint(hint))
}
