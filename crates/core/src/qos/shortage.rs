//! Fewer requests at a datastore than its latency allows, for the sake of a reservation.
//!
//! A class that is behind its reservation goes first, but only of those that wait here.
//! Where the datastore takes all that comes and is not slow by that, nobody waits, and it
//! serves everybody in an order of its own. So while a class has less than its
//! reservation, though it always has requests there, fewer are let to it at once, step by
//! step. What brought it the reservation is kept for a minute, and then let go slowly.
//!
//! A class may also have less because it asks for no more, however soon it is answered, or
//! because the datastore does no more. So what did not bring it more is taken back, and is
//! not tried again for a while. That is judged at the end: a device that prefers whoever
//! has most does so until they have hardly more.

use std::collections::BTreeMap;

use super::class::ClassId;
use super::terms::Rate;
use crate::measure::Window;

/// Less than this part of what is reserved is less: seconds vary by as much.
const LESS: f64 = 0.97;

/// With fewer of its requests at the device on average it would not have more if they were
/// answered at once.
const WAITS: f64 = 0.5;

/// Steps in a row for which it has to be short: one alone may be its beginning.
const IN_A_ROW: u32 = 2;

/// What is left with each step: the part of its reservation that the class has, as who
/// always has requests there has the more of the device the fewer others are. No less than
/// this and no more: more than half at once might be too much, and a little is not seen.
const LEFT: (f64, f64) = (0.5, 0.8);

/// It has to have brought this many times what it had before: seconds vary by less.
const PAYS: f64 = 1.2;

/// The part of a new second in what a class has.
const SMOOTHING: f64 = 0.5;

/// Fewer would leave a device idle between two requests.
const MIN: f64 = 2.0;

/// Steps for which it is kept when nothing is short any more: a minute.
const KEPT: u32 = 60;

/// And by how much it is let go then, with each step: twice as much in a quarter of a
/// minute.
const LET_GO: f64 = 1.05;

/// Steps until it is tried again where it did not help: two minutes, as it takes seconds
/// of fewer requests than the others could have.
const IN_VAIN: u32 = 120;

/// That a class has less than its reservation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lack {
    /// The class.
    pub class: ClassId,
    /// The part of its reservation that it has.
    pub has: f64,
    /// Whether it always has requests at the device, so that it might have more if they
    /// were answered sooner.
    pub waits: bool,
}

impl Lack {
    /// Whether a class has less than what is reserved for it: `here` is what it does on a
    /// datastore, `everywhere` on all of them.
    pub fn of(
        class: ClassId,
        reserved: Rate,
        everywhere: &Window,
        here: &Window,
    ) -> Option<Lack> {
        let has = match reserved {
            Rate::Requests(rate) => everywhere.iops() / rate as f64,
            Rate::Bytes(rate) => everywhere.bytes_per_second() / rate as f64,
        };
        let waits = at_device(here) >= WAITS;
        (has < LESS).then_some(Lack { class, has, waits })
    }
}

/// How many requests were at the device, on average.
pub(super) fn at_device(seen: &Window) -> f64 {
    seen.total().service.0 as f64 / seen.span.0.max(1) as f64
}

/// The classes that are or were short on a datastore, and how few requests it is let for
/// each.
#[derive(Clone, Debug, Default)]
pub(super) struct Shortages(BTreeMap<ClassId, Shortage>);

#[derive(Clone, Copy, Debug, Default)]
struct Shortage {
    /// Steps in a row.
    short: u32,
    /// The part of its reservation that it has, smoothed.
    has: f64,
    /// How many requests are let to the datastore.
    most: Option<f64>,
    /// How it was when it began to get fewer.
    before: Option<Before>,
    /// Steps for which that is left as it is, and for which nothing is tried.
    rests: u32,
    in_vain: u32,
}

#[derive(Clone, Copy, Debug)]
struct Before {
    most: Option<f64>,
    has: f64,
}

impl Shortages {
    /// Looks at a period in which so many requests were at the datastore and these classes
    /// had less than their reservations. Gives how many may be there.
    pub(super) fn step(&mut self, at_device: f64, lacks: &[Lack]) -> Option<f64> {
        for lack in lacks.iter().filter(|lack| lack.waits) {
            self.0.entry(lack.class).or_default();
        }
        for (class, one) in &mut self.0 {
            one.in_vain = one.in_vain.saturating_sub(1);
            match lacks.iter().find(|lack| lack.class == *class) {
                Some(lack) if lack.waits || one.before.is_some() => {
                    one.press(at_device, *lack);
                }
                _ => one.let_go(at_device),
            }
        }
        self.0.retain(|_, one| one.short > 0 || one.most.is_some() || one.in_vain > 0);
        self.0.values().filter_map(|one| one.most).reduce(f64::min)
    }

    /// The classes that are short though it was tried, and the part of their reservations
    /// that they have.
    pub(super) fn in_vain(&self) -> impl Iterator<Item = (ClassId, f64)> + '_ {
        let in_vain = self.0.iter().filter(|(_, one)| one.short > 0 && one.in_vain > 0);
        in_vain.map(|(class, one)| (*class, one.has))
    }
}

impl Shortage {
    /// The class has less than its reservation.
    fn press(&mut self, at_device: f64, lack: Lack) {
        let new = if self.short == 0 { 1.0 } else { SMOOTHING };
        self.has += new * (lack.has - self.has);
        self.short += 1;
        self.rests = KEPT;
        if self.short < IN_A_ROW || self.in_vain > 0 {
            return;
        }
        let before = Before { most: self.most, has: self.has };
        let before = *self.before.get_or_insert(before);
        let now = self.most.unwrap_or(at_device).max(MIN);
        if lack.waits && now > MIN {
            self.most = Some((now * self.has.clamp(LEFT.0, LEFT.1)).max(MIN));
        } else if self.has < before.has * PAYS {
            (self.most, self.before) = (before.most, None);
            self.in_vain = IN_VAIN;
        }
    }

    /// It has what is reserved for it, or asks for no more.
    fn let_go(&mut self, at_device: f64) {
        (self.short, self.before) = (0, None);
        if self.rests > 0 {
            self.rests -= 1;
            return;
        }
        // More than twice of what comes is not what holds them back.
        let most = self.most.map(|most| most * LET_GO);
        self.most = most.filter(|most| *most < 2.0 * at_device.max(MIN));
    }
}
