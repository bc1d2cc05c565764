//! The guest's requests on their way through both images.
//!
//! **Names.** A request's number on its disk is free again when the guest has
//! its answer, but the mirror may know the request for longer (an overdue write
//! on the destination). So a `RequestId` is the number with a count above it.
//!
//! **The start.** Requests that are in flight when the migration begins are told
//! to a paused mirror (which sends nothing to the destination), as if they had
//! just come; only then it resumes.

use sterna_core::mirror::{Event, Request, RequestId, RequestKind};

use super::{MirrorDriver, Own};
use crate::disk::Core;
use crate::image::{Cx, ImageOp, ImageResult};
use crate::mirror::buffer_loans::BufferLoan;
use crate::mirror::translate::{describe, number};

/// What is known of a guest's request that has been told to the mirror.
pub(super) struct Told {
    id: RequestId,
    kind: RequestKind,
    /// Its connection uses the buffer again as soon as the disk lets go of it.
    reused: bool,
    /// The loan pool keeps it until there is memory for it.
    postponed: bool,
    /// The source's answer, until the mirror says that the guest may have it.
    result: Option<ImageResult>,
}

impl Told {
    /// Whether it changes the disk.
    pub(super) fn is_write(&self) -> bool {
        self.kind == RequestKind::Write
    }

    /// Whether it may still change the source: it may have ended, and its error be told later.
    pub(super) fn is_being_written(&self) -> bool {
        self.is_write() && self.result.is_none()
    }
}

impl MirrorDriver {
    /// Tells the mirror of the requests that are in flight already.
    pub(super) fn adopt(&mut self, core: &mut Core, cx: &mut Cx) {
        for number in core.started() {
            let Some(request) = self.name(core, number) else { continue };
            self.adopted.push(request.id);
            self.tell(core, cx, Event::Arrived(request));
        }
    }

    /// Gives a request of the disk its name here.
    pub(super) fn name(&mut self, core: &Core, number: u32) -> Option<Request> {
        let op = &core.request(number)?.op;
        let (kind, range) = describe(op);
        self.count = self.count.wrapping_add(1);
        let id = RequestId(u64::from(self.count) << 32 | u64::from(number));
        let reused = matches!(op, ImageOp::Write { buf, .. } if !buf.is_unique());
        let told = Told { id, kind, reused, postponed: false, result: None };
        if told.is_write() {
            self.source_file.is_written();
        }
        self.told.insert(number, told);
        Some(Request { id, kind, range })
    }

    pub(super) fn ask_source(&mut self, core: &mut Core, cx: &mut Cx, id: RequestId) {
        if let Some(at) = self.adopted.iter().position(|adopted| *adopted == id) {
            self.adopted.swap_remove(at); // It is there already.
            return;
        }
        let number = number(id);
        core.carry_out(cx, number, self.source, u64::from(number));
    }

    pub(super) fn ask_destination(
        &mut self,
        core: &mut Core,
        cx: &mut Cx,
        id: RequestId,
    ) {
        // In order: one that comes later does not take the memory away.
        if self.loans.is_busy() || !self.mirrored(core, cx, id) {
            self.loans.postpone(id);
            if let Some(told) = self.told.get_mut(&number(id)) {
                told.postponed = true;
            }
        }
    }

    /// Starts the destination's part of a request; false if there is no memory.
    pub(super) fn mirrored(
        &mut self,
        core: &mut Core,
        cx: &mut Cx,
        id: RequestId,
    ) -> bool {
        let number = number(id);
        let (Some(request), Some(told)) = (core.request(number), self.told.get(&number))
        else {
            return true;
        };
        let mut loan = BufferLoan::default();
        let op = match &request.op {
            // Durability is the source's matter until the switch-over's flush.
            ImageOp::Write { offset, buf, .. } => {
                let Some((buf, lent)) = self.loans.lend(cx, buf, told.reused) else {
                    return false;
                };
                loan = lent;
                ImageOp::Write { offset: *offset, buf, fua: false }
            }
            ImageOp::Zero { offset, len, unmap, .. } => ImageOp::Zero {
                offset: *offset,
                len: *len,
                unmap: *unmap && self.jobs.style().unmap,
                fua: false,
                fast: false,
            },
            other => other.clone(),
        };
        let copied = op.copied(cx.now);
        self.own(core, cx, Own::Mirrored(id, loan, copied), self.destination, op);
        true
    }

    /// A mirrored write has ended: there may be memory for those that wait.
    pub(super) fn start_postponed(&mut self, core: &mut Core, cx: &mut Cx) {
        while let Some(id) = self.loans.next() {
            if !self.mirror.awaits_destination(id) {
                self.later.push_back(Event::DestinationSkipped { id });
            } else if !self.mirrored(core, cx, id) {
                return;
            }
            self.loans.forget(id);
        }
    }

    pub(super) fn answer(&mut self, core: &mut Core, cx: &mut Cx, id: RequestId) {
        let number = number(id);
        let Some(told) = self.told.remove(&number) else { return };
        // Its buffer leaves with the answer.
        if told.postponed && self.loans.forget(id) {
            self.later.push_back(Event::DestinationSkipped { id });
        }
        if let Some(result) = told.result {
            core.answer(cx, number, result);
        }
    }

    pub(super) fn source_done(
        &mut self,
        core: &mut Core,
        cx: &mut Cx,
        number: u32,
        result: ImageResult,
    ) {
        // Before the disk looks, which would not tell the mirror.
        self.look_for_loss(core, cx);
        // A request that went to the destination alone has no name here.
        let Some(told) = self.told.get_mut(&number) else {
            core.answer(cx, number, result);
            return;
        };
        let id = told.id;
        if told.is_write() {
            self.source_file.is_written();
        }
        // Where no flush is acknowledged any more, one that succeeds says nothing to clients.
        let ok = result.is_ok()
            && (told.kind != RequestKind::Flush || core.acknowledges_flushes());
        told.result = Some(result);
        self.tell(core, cx, Event::SourceDone { id, ok });
    }
}
