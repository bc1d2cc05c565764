//! What is made durable of a move: its steps, its end with its figures, and that nothing
//! is left of it at its VM.

use sterna_api::Report;
use sterna_core::mover::{MoverStep as At, Rest, Tidied, Verdict, Wishes, Words};
use sterna_os::{clock, lock};
use sterna_state::{Ending, KnownFile, Leaves, Step, StoreError, VmMoveKind};

use super::{Driver, wishes_of};

/// How a move has ended, to be recorded.
#[derive(Clone, Debug)]
pub(super) struct Closing {
    step: Step,
    ending: Ending,
    /// Whether a disk of ours that it has to do with may be the truth.
    opens: bool,
    leaves: Leaves,
}

impl Driver {
    /// What is wanted by now; nothing, if the state does not say.
    pub(super) fn read_wishes(&mut self) -> Option<Wishes> {
        let id = self.record.id;
        match self.machines.storage.store.vm_move(id) {
            Ok(found) => {
                self.is_deaf = false;
                self.record = found.unwrap_or_else(|| self.record.clone());
                Some(wishes_of(&self.record))
            }
            Err(error) => {
                // Each tick asks again, and once is worth knowing.
                if !std::mem::replace(&mut self.is_deaf, true) {
                    tracing::warn!(migration = id, %error, "cannot read the commands for \
                                                            a migration; Sterna tries \
                                                            again");
                }
                None
            }
        }
    }

    pub(super) fn record_step(&mut self, step: At) -> Result<(), Words> {
        let step = match step {
            At::Created => Step::Created,
            At::Copying => Step::Copying,
            At::Switching => Step::Switching,
            At::Committed => Step::Committed,
            At::Ended => return Err("the end of a move has more than a step".into()),
        };
        if step == Step::Copying {
            // What libvirt has made is known by now.
            self.record_file()?;
        }
        let stored = self.machines.storage.store.vm_move_advances(self.record.id, step);
        stored.map_err(|error| self.not_recorded(&error))
    }

    pub(super) fn record_switching(&mut self) -> Result<bool, Words> {
        let stored = self.machines.storage.store.vm_move_switches(self.record.id);
        stored.map_err(|error| self.not_recorded(&error))
    }

    pub(super) fn not_recorded(&self, error: &StoreError) -> Words {
        let (migration, error) = (self.record.id, error.with_cause());
        tracing::error!(migration, error, "cannot record a move");
        error
    }

    /// Records how it has ended.
    pub(super) fn close(&mut self, verdict: &Verdict) -> Result<(), Words> {
        let new = self.closing.take().unwrap_or_else(|| self.closing_of(verdict));
        let Closing { step, ending, opens, leaves } = self.closing.insert(new).clone();
        let id = self.record.id;
        let note = ending.note.clone().unwrap_or_default();
        let recorded = self.machines.storage.store.vm_move_ends(id, step, ending, leaves);
        recorded.map_err(|error| self.not_recorded(&error))?;
        match leaves.unclear {
            true => tracing::warn!(migration = id, note, "the move's end is unclear"),
            false => tracing::info!(migration = id, note, "move {step}"),
        }
        // What may be the truth is for all at once.
        if opens || !leaves.untidy {
            self.settle(opens);
        }
        lock(&self.machines.vms.moves).remove(&id);
        if leaves.untidy {
            self.tidies();
        }
        // Policies may end with it.
        self.machines.moves.tell_changed();
        Ok(())
    }

    fn closing_of(&self, verdict: &Verdict) -> Closing {
        let (step, opens) = match verdict {
            Verdict::Moved { .. } => (Step::Completed, true),
            Verdict::Stays { rest, .. } => {
                (Step::Cancelled, *rest != Rest::Gone && self.is_sealed())
            }
            Verdict::Unclear(_) => (Step::Cancelled, true),
        };
        let ending = self.ending(self.note_of(verdict));
        let is_left = matches!(verdict, Verdict::Moved { .. });
        let leaves = Leaves {
            untidy: verdict.is_untidy(),
            unclear: verdict.is_unclear(),
            source_file: is_left.then(|| self.file_left()).flatten(),
        };
        Closing { step, ending, opens, leaves }
    }

    /// The file that the disk has left, if it is the one that it was on when the move was
    /// asked for: another one that has its name by now is nobody's old copy.
    fn file_left(&self) -> Option<KnownFile> {
        let before = self.record.source_file?;
        let now = self.machines.look_at_source(&self.record.source)?;
        (!before.is_another(&now)).then_some(now)
    }

    fn ending(&self, note: Option<String>) -> Ending {
        let at = clock::now();
        let duration_s = at.saturating_sub(self.record.started) as f64;
        let report = Report {
            duration_s,
            copied: self.done,
            // What was seen of it may be a part. Of less than a second nothing is known.
            average_rate: match duration_s {
                0.0 => self.pace.average(),
                _ => self.done as f64 / duration_s,
            },
            allocated: self.allocated(),
            ..Report::default()
        };
        let application = self.watch.application();
        Ending { at, note, application, report: Some(report) }
    }

    /// The disk of an adoption that has ended, if there is one, is like any other from now
    /// on, or nobody's.
    fn settle(&self, opens: bool) {
        let VmMoveKind::Adopt(disk) = &self.record.kind else { return };
        match opens {
            true => self.machines.open_adopted(disk),
            false => self.put_aside(disk),
        }
    }

    /// From now on whoever removes its VM ends it.
    pub(super) fn tidies(&mut self) {
        self.tidies = true;
        let tidying = &self.machines.vms.tidying;
        lock(tidying).insert(self.record.id, self.one.clone());
    }

    /// Whether nobody wants to know any more what its VM still has of it: that was
    /// removed. A VM that answers later keeps what it has, and its files.
    pub(super) fn is_let_go(&self) -> bool {
        let id = self.record.id;
        // A state that cannot be read says nothing of it.
        let is_let_go =
            !self.machines.storage.store.vm_move_is_untidy(id).unwrap_or(true);
        if is_let_go {
            let vm = &self.record.vm;
            tracing::info!(
                migration = id,
                vm,
                "the VM was removed: its QEMU keeps the rest of the copy"
            );
            self.settle(self.is_sealed());
        }
        is_let_go
    }

    pub(super) fn record_tidy(&mut self, tidied: &Tidied) -> Result<(), Words> {
        let id = self.record.id;
        let store = &self.machines.storage.store;
        let recorded = match tidied {
            Tidied::Unclear(doubt) => store.vm_move_is_unclear(id, self.unclear(doubt)),
            Tidied::Stays(rest) => store.vm_move(id).and_then(|found| {
                let noted = found.and_then(|record| record.note);
                store.vm_move_is_tidy(id, self.noted_when_tidy(noted, rest))
            }),
        };
        recorded.map_err(|error| self.not_recorded(&error))?;
        match tidied {
            Tidied::Unclear(doubt) => tracing::warn!(
                migration = id,
                ?doubt,
                "it is unclear which image has the last writes"
            ),
            Tidied::Stays(_) => {
                tracing::info!(
                    migration = id,
                    "the VM's QEMU has nothing of the copy any more"
                );
            }
        }
        self.tidies = false;
        self.settle(matches!(tidied, Tidied::Unclear(_)) || self.is_sealed());
        Ok(())
    }
}
