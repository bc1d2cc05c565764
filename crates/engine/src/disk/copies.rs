//! The copier's operations: each waits for admission at the datastore of the image it
//! is for, before it goes there.

use super::Core;
use crate::image::{Cx, ImageOp, Ticket};
use crate::io::Errno;
use crate::qos::{Admission, Copied, Item};

/// An operation of the copier.
pub(super) enum Copying {
    /// It waits for admission.
    Waiting(ImageOp, Copied),
    Started(Admission, Copied),
}

impl Core {
    /// Starts an operation of the copier on an image as soon as it is admitted there;
    /// whether it has to wait for it. The answer comes under `ticket`, and
    /// `copy_done` is to be called with it.
    pub(crate) fn copy(
        &mut self,
        cx: &mut Cx,
        image: u16,
        ticket: u64,
        op: ImageOp,
    ) -> bool {
        let disk = self.index;
        if let (Some(cost), Some(held)) = (self.cost(image, &op), self.held(image)) {
            let item = Item::Copy { disk, image, ticket };
            let copied = op.copied(cx.now);
            let Some(admission) = cx.qos.arrive(cx.now, &held.copies, cost, item) else {
                self.copies.insert(ticket, Copying::Waiting(op, copied));
                return true;
            };
            self.copies.insert(ticket, Copying::Started(admission, copied));
        }
        self.submit(cx, image, ticket, op);
        false
    }

    pub(super) fn start_copy(
        &mut self,
        cx: &mut Cx,
        image: u16,
        ticket: u64,
        admission: Admission,
    ) -> bool {
        let Some(Copying::Waiting(op, copied)) = self.copies.remove(&ticket) else {
            cx.qos.done(cx.now, admission);
            return false;
        };
        self.copies.insert(ticket, Copying::Started(admission, copied));
        self.submit(cx, image, ticket, op);
        true
    }

    /// An operation of the copier has ended; whether it was given up while it waited
    /// for admission.
    pub(crate) fn copy_done(&mut self, cx: &mut Cx, ticket: u64) -> bool {
        match self.copies.remove(&ticket) {
            Some(Copying::Started(admission, copied)) => {
                cx.qos.copied(cx.now, admission, copied);
                false
            }
            Some(Copying::Waiting(..)) => true,
            None => false,
        }
    }

    /// The destination's part of a guest's write has ended.
    pub(crate) fn mirrored(&mut self, cx: &mut Cx, image: u16, copied: Copied) {
        if let Some(held) = self.images.iter().find(|held| held.number == image) {
            cx.qos.mirrored(cx.now, &held.copies, copied);
        }
    }

    /// Answers an operation of the copier that is not to begin any more.
    pub(crate) fn refuse(&self, cx: &mut Cx, ticket: u64) {
        let refused = Ticket { disk: self.index, id: ticket };
        cx.finished.push((refused, Err(Errno(libc::ECANCELED))));
    }

    /// Ends the copier's operations that wait for admission.
    pub(crate) fn give_up_copies(&mut self, cx: &mut Cx) {
        for held in &self.images {
            for item in cx.qos.give_up(cx.now, &held.copies, |_| true) {
                if let Item::Copy { ticket, .. } = item {
                    self.refuse(cx, ticket);
                }
            }
        }
    }
}
