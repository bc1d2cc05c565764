//! A disk's images: the one that is the truth, and during a migration the other.

use std::sync::Arc;

use sterna_core::Nanos;
use sterna_core::durability::{Keeper, Lack, Loss};
use sterna_core::mirror::Fault;
use sterna_core::qos::{Cost, Pool};

use super::Core;
use crate::account::Line;
use crate::image::{Cx, Image, ImageOp, Opened};
use crate::io::{Completion, ImageId};
use crate::qos::{Flow, Item};
use crate::stats::Reach;

/// An image of a disk.
pub(super) struct Held {
    pub(super) number: u16,
    pub(super) image: Box<dyn Image>,
    /// Of its datastore.
    pool: Arc<Pool>,
    pub(super) copies: Flow,
    keeps_room: bool,
    closing: bool,
    /// When it came.
    pub(super) since: Nanos,
}

/// An image that was opened, and where it is.
pub(crate) struct Placed {
    pub(crate) image: Box<dyn Opened>,
    /// Of its datastore.
    pub(crate) pool: Arc<Pool>,
    /// Whether no room is given up in it.
    pub(crate) keeps_room: bool,
}

impl Held {
    /// An operation as this image is asked for it. Where room was promised, a discard
    /// only makes zeroes: others would have taken the room before it is written again.
    pub(super) fn asked(&self, op: ImageOp) -> ImageOp {
        match op {
            ImageOp::Zero { offset, len, unmap: true, fua, fast } if self.keeps_room => {
                ImageOp::Zero { offset, len, unmap: false, fua, fast }
            }
            op => op,
        }
    }
}

impl Core {
    /// The image that is the truth.
    pub(crate) fn current(&self) -> u16 {
        self.current
    }

    /// The datastore of the image that is the truth.
    pub(crate) fn datastore(&self) -> Option<&Arc<Pool>> {
        let held = self.images.iter().find(|held| held.number == self.current)?;
        Some(&held.pool)
    }

    /// Makes another image the truth. Nothing is in flight on the old one that
    /// the new one does not have; what waits for admission waits at the new one's
    /// datastore from now on.
    pub(crate) fn set_current(&mut self, cx: &mut Cx, image: u16) {
        self.current = image;
        let Core { images, promise, failures, .. } = self;
        let Some(held) = images.iter_mut().find(|held| held.number == image) else {
            return;
        };
        promise.moved();
        failures.moved();
        // What failed while it was a copy was written anew.
        let _ = held.image.has_lost();
        let flow = cx.qos.add_guest(&held.pool, &self.class);
        let waiting = self.flow.take().map(|old| cx.qos.remove(&old));
        for item in waiting.into_iter().flatten() {
            let Item::Guest { request, .. } = item else { continue };
            let Some(op) = self.requests.get(request).map(|one| &one.op) else {
                continue;
            };
            // What need not wait here has waited for long enough.
            let cost = self.cost(image, op).unwrap_or(Cost { bytes: 0 });
            cx.qos.arrive_again(cx.now, &flow, cost, item);
        }
        self.holds.move_to(cx.qos.held(&flow));
        self.flow = Some(flow);
    }

    pub(crate) fn image(&self, number: u16) -> Option<&dyn Image> {
        let held = self.images.iter().find(|held| held.number == number)?;
        Some(&*held.image)
    }

    /// Adds an opened image and says its number.
    pub(crate) fn add_image(&mut self, cx: &mut Cx, placed: Placed) -> u16 {
        // Numbers wrap; an image that is still there keeps its own.
        while self.images.iter().any(|held| held.number == self.next_image) {
            self.next_image = self.next_image.wrapping_add(1);
        }
        let number = self.next_image;
        self.next_image = number.wrapping_add(1);
        let Placed { image, pool, keeps_room } = placed;
        let image = image.start(cx, ImageId { disk: self.index, image: number });
        let copies = cx.qos.add_copies(&pool);
        let closing = false;
        let since = cx.now;
        self.images.push(Held {
            number,
            image,
            pool,
            copies,
            keeps_room,
            closing,
            since,
        });
        number
    }

    /// Lets an image go: it is dropped as soon as nothing of it is in flight.
    /// Operations in flight are still answered.
    pub(crate) fn close_image(&mut self, cx: &mut Cx, number: u16) {
        if let Some(held) = self.held(number)
            && !std::mem::replace(&mut held.closing, true)
        {
            held.image.close(cx);
        }
        self.drop_idle_images(cx);
    }

    /// Lets all images go with the disk. What clients were answered in the one that is the
    /// truth is made durable, if that can be had soon.
    pub(super) fn leave_images(&mut self, cx: &mut Cx) {
        let current = self.current;
        for held in &mut self.images {
            if !std::mem::replace(&mut held.closing, true) {
                match held.number == current {
                    true => held.image.take_leave(cx),
                    false => held.image.close(cx),
                }
            }
        }
        self.drop_idle_images(cx);
    }

    /// Ends an image's operations early, where they wait for a server.
    pub(crate) fn abort_image(&mut self, cx: &mut Cx, number: u16) {
        if let Some(held) = self.held(number) {
            held.image.abort(cx);
        }
    }

    /// The images that are to have a line in the disk's account, and have none.
    pub(crate) fn without_line(&self) -> impl Iterator<Item = (u16, Keeper)> {
        let open =
            self.images.iter().filter(|held| self.promise.is_kept() && !held.closing);
        open.filter_map(|held| Some((held.number, held.image.lacks_line()?)))
    }

    /// Since when the image that is the truth is without a line.
    pub(super) fn without_account(&self) -> Option<Nanos> {
        self.without_line().find(|(number, _)| *number == self.current)?;
        Some(self.images.iter().find(|held| held.number == self.current)?.since)
    }

    /// An image's line, which comes late.
    pub(crate) fn keep_late(&mut self, cx: &mut Cx, number: u16, line: Line) {
        let held = self.held(number).filter(|held| !held.closing);
        if let Some(held) = held.filter(|held| held.image.lacks_line().is_some()) {
            held.image.keep_late(cx, line);
            self.promise.note(cx.now);
        }
    }

    /// Why an image may have lost writes that it had answered, if so; asked once. Of the
    /// image that is the truth, clients are told.
    pub(crate) fn has_forgotten(&mut self, cx: &Cx, number: u16) -> Option<Loss> {
        let forgot = self.held(number).and_then(|held| held.image.has_forgotten());
        if let Some(why) = forgot.filter(|_| number == self.current) {
            self.promise.lose(cx.now, &self.name, why);
        }
        forgot
    }

    /// Has clients told if a flush of the image has failed for which there is no second try.
    /// If the disk has left the image, nothing is told: its last flush before the commit began
    /// after all that was copied, and what was written since then the new image has, too.
    ///
    /// The image says it once. Whoever looks first keeps it for the migration, which hears of
    /// it before the flush's own answer.
    pub(crate) fn look_for_loss(&mut self, cx: &Cx, number: u16) {
        let has_lost = self.held(number).is_some_and(|held| held.image.has_lost());
        if has_lost && number == self.current {
            self.promise.lost(cx.now, &self.name);
            self.unheard_loss = true;
        }
    }

    /// Whether such a flush has failed, which a migration is to hear of; asked once.
    pub(crate) fn hears_loss(&mut self) -> bool {
        std::mem::take(&mut self.unheard_loss)
    }

    /// Whether a flush of the disk is acknowledged if its image carries it out.
    pub(crate) fn acknowledges_flushes(&self) -> bool {
        !self.promise.is_broken()
    }

    /// Has clients told that what they were answered may be lost.
    pub(crate) fn tell_of_loss(&mut self, cx: &Cx, why: Loss) {
        self.promise.lose(cx.now, &self.name, why);
    }

    /// Whether clients will have lost writes if a commit that is under way becomes durable.
    pub(crate) fn foresees_loss(&mut self, cx: &Cx, why: Option<Loss>) {
        self.promise.foresees(cx.now, why);
    }

    /// Whether the server of an image came back in an older state; asked once. Of the image
    /// that is the truth, clients are told.
    pub(crate) fn has_gone_back(&mut self, cx: &Cx, number: u16) -> bool {
        let went = self.held(number).is_some_and(|held| held.image.has_gone_back());
        if went && number == self.current {
            self.promise.lose(cx.now, &self.name, Loss::WentBack);
        }
        went
    }

    /// How its image is reached, or the copy that a move makes of it; nothing if that is not
    /// reached, or let go of.
    pub(crate) fn reach(&self, copy: bool) -> Option<Reach> {
        let is_it = |held: &&Held| (held.number != self.current) == copy && !held.closing;
        let held = self.images.iter().find(is_it)?;
        let reach = Reach { image: held.number, ways_lost: held.image.ways_lost() };
        held.image.is_in_reach().then_some(reach)
    }

    /// Why what answers where an image was is not used.
    pub(crate) fn unfit(&self, number: u16) -> Option<Fault> {
        let image = self.image(number)?;
        let lacks = image.lacks().map(|(_, lack)| Fault::Lacks(lack));
        image.another_since().map(|_| Fault::Another).or(lacks)
    }

    /// What the images cannot do without any more that nobody reaches for this reason, since
    /// when, and of each whether it is the copy that a move makes.
    pub(super) fn lacks(&self) -> impl Iterator<Item = (Nanos, Lack, bool)> {
        let open = self.images.iter().filter(|held| !held.closing);
        let away = open.filter(|held| !held.image.is_in_reach());
        away.filter_map(|held| {
            let (since, lack) = held.image.lacks()?;
            Some((since, lack, held.number != self.current))
        })
    }

    /// Whether there is a way to an image.
    pub(crate) fn is_in_reach(&self, number: u16) -> bool {
        self.image(number).is_none_or(Image::is_in_reach)
    }

    /// An operation of an image is done.
    pub(crate) fn image_completed(
        &mut self,
        cx: &mut Cx,
        number: u16,
        completion: Completion,
    ) {
        if let Some(held) = self.held(number) {
            held.image.completed(cx, completion);
            if held.closing {
                self.drop_idle_images(cx);
            }
        }
    }

    /// A timer of an image has fired.
    pub(crate) fn image_timer(&mut self, cx: &mut Cx, number: u16, tag: u32) {
        if let Some(held) = self.held(number) {
            held.image.timer(cx, tag);
            if held.closing {
                self.drop_idle_images(cx);
            }
        }
    }

    fn drop_idle_images(&mut self, cx: &mut Cx) {
        self.images.retain(|held| {
            let over = held.closing && held.image.idle();
            if over {
                cx.qos.remove(&held.copies);
            }
            !over
        });
    }

    pub(super) fn held(&mut self, number: u16) -> Option<&mut Held> {
        self.images.iter_mut().find(|held| held.number == number)
    }
}
