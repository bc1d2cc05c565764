//! Fewer requests at a datastore than its latency allows, for the sake of a reservation.
//!
//! A class that is behind its reservation goes first, but only of those that wait here.
//! Where the datastore takes all that comes and is not slow by that, nobody waits, and it
//! serves everybody in an order of its own. So while a class has less than its
//! reservation, though it always has requests there, fewer are let to it at once, step by
//! step. What brought it the reservation is kept for a minute, and then let go slowly; what
//! it does not ask for, or has more than all of, sooner.
//!
//! A class may also have less because it asks for no more, however soon it is answered, or
//! because the datastore does no more. So a trial has an end: where it does not help any
//! more, or makes it worse, as disks do less in all with few requests at a time. Then what
//! was best is kept, if it was better than nothing, and it is tried again after a while,
//! each time after a longer one; or at once, if the class has much less than it had. A class
//! that does more than when it was tried has become another, and does not wait for long.
//!
//! What helps shows late where a device prefers whoever has most: it does so until they
//! have hardly more. So a trial goes on where it changes nothing.
//!
//! A class that has the datastore for itself has nobody to be preferred to: there is nothing
//! to try until somebody comes. What holds it back on purpose is no shortage, either. Nor
//! has a class a reason to have less where its requests take no longer than when it had all
//! of its reservation: then it asks for less.

use std::collections::BTreeMap;

use super::attained::{Attained, Attainment, LESS};
use super::class::ClassId;
use super::reserved::Reserved;
use super::terms::Rate;
use super::trial::{At, End, FEWER, MORE, Trial};

/// Who has fewer requests at the device on average would not have more of it if it were
/// answered at once; and does not keep others waiting.
const PRESENT: f64 = 0.5;

/// Steps in a row that tell something: one alone may be a beginning or an end.
const IN_A_ROW: u32 = 2;

/// What is left with each step: the part of its reservation that the class has, as who
/// always has requests there has the more of the device the fewer others are. No less than
/// this and no more: more than half at once might be too much, and a little is not seen.
const LEFT: (f64, f64) = (0.5, 0.8);

/// So many times what a class had is more by no chance at all.
const MUCH_MORE: f64 = 1.4;

/// A class that nothing was done for has much less than it had with less than this part of
/// it: a neighbour has come. Its own ups and downs are smaller.
const LOST: f64 = 0.6;

/// The part of a new second in what a class has.
const SMOOTHING: f64 = 0.5;

/// And in what is shown of it, unless it is more than what is shown, or less: then it is
/// another time that begins, and shall be seen in a few seconds.
const SHOWN: f64 = 0.2;

/// Fewer would leave a device idle between two requests.
const MIN: f64 = 2.0;

/// Steps for which it is kept when nothing is short any more, or nothing helps: a minute.
const KEPT: u32 = 60;

/// And so many times as fast they go by when the class does not ask for it: a quarter of a
/// minute outlasts the pauses of one that has some.
const UNASKED: u32 = 4;

/// And by how much it is let go then, with each step: twice as much in half a minute while
/// the class may need it, so that little is lost where it does; and in seven steps when it
/// asks for less.
const LET_GO: f64 = 1.02;
const LET_GO_UNASKED: f64 = 1.1;

/// Requests take longer than when it had all if they take so many times as long.
const LONGER: f64 = 1.05;

/// What is left of that time with each step: half in six minutes, as the class, too,
/// becomes another.
const REMEMBERED: f64 = 0.998;

/// Steps until it is tried again where it did not help: two minutes, as it takes seconds of
/// fewer requests than the others could have; later twice as long, up to half an hour.
const AGAIN: (u32, u32) = (120, 1920);

/// The classes that are or were short on a datastore, and how few requests it is let for
/// each.
#[derive(Clone, Debug, Default)]
pub(super) struct Shortages(BTreeMap<ClassId, Shortage>);

#[derive(Clone, Copy, Debug)]
struct Shortage {
    rate: Rate,
    /// What it has everywhere, smoothed, and why no more.
    does: f64,
    state: Attainment,
    /// Steps in a row in which it had less, and in which it asked for no more.
    short: u32,
    absent: u32,
    /// The part of its reservation that it has here, and its requests under way, smoothed.
    here: f64,
    under_way: f64,
    /// What its requests took at most, in seconds, when it had all of it.
    enough: f64,
    /// How many requests are let to the datastore, and for how many steps that is kept.
    most: Option<f64>,
    kept: u32,
    trial: Option<Trial>,
    /// What a trial came to that did not bring all of it.
    end: Option<End>,
}

impl Shortages {
    /// Looks at a period in which so many requests were at the datastore, and these classes
    /// have reservations. Gives how many may be there.
    pub(super) fn step(&mut self, at_device: f64, reserved: &[Reserved]) -> Option<f64> {
        let stays = |class: ClassId, one: &Shortage| {
            reserved.iter().any(|it| it.class == class && it.rate == one.rate)
        };
        let gone = self.0.iter().filter(|(class, one)| !stays(**class, one));
        let gone = gone.filter_map(|(_, one)| one.most).reduce(f64::min);
        self.0.retain(|class, one| stays(*class, one));
        for one in reserved {
            let shortage = self.0.entry(one.class).or_insert(Shortage::of(one));
            // What was done for one was done for all who are there: it is let go, not
            // dropped.
            if let Some(most) = gone.filter(|_| one.does > 0.0) {
                shortage.most = Some(shortage.most.map_or(most, |own| own.min(most)));
                shortage.kept = KEPT;
            }
            shortage.step(at_device, *one);
        }
        self.0.values().filter_map(|one| one.most).reduce(f64::min)
    }

    /// What the classes have of their reservations.
    pub(super) fn attained(&self) -> impl Iterator<Item = Attained> + '_ {
        let attained = |(class, one): (&ClassId, &Shortage)| Attained {
            class: *class,
            reserved: one.rate,
            has: one.does,
            state: one.state,
        };
        self.0.iter().map(attained)
    }
}

/// Whether nobody else has requests at the device.
fn is_alone(at_device: f64, reserved: &Reserved) -> bool {
    at_device - reserved.present < PRESENT
}

impl Shortage {
    fn of(reserved: &Reserved) -> Shortage {
        Shortage {
            rate: reserved.rate,
            does: reserved.does,
            state: Attainment::Idle,
            short: 0,
            absent: 0,
            here: 0.0,
            under_way: 0.0,
            enough: 0.0,
            most: None,
            kept: 0,
            trial: None,
            end: None,
        }
    }

    fn step(&mut self, at_device: f64, reserved: Reserved) {
        self.look(at_device, reserved);
        // Who asks for nothing has nothing at once.
        let near = self.does / MORE..=self.does * MORE;
        let new = match reserved.does {
            0.0 => 1.0,
            does if near.contains(&does) => SHOWN,
            _ => SMOOTHING,
        };
        self.does += new * (reserved.does - self.does);
        self.state = self.state(at_device, &reserved);
    }

    fn state(&self, at_device: f64, reserved: &Reserved) -> Attainment {
        let alone = reserved.present >= PRESENT && is_alone(at_device, reserved);
        let shown = self.does / self.rate.number().max(1) as f64;
        let tried = self.trial.is_some();
        // Answered as soon as when it had all, it does not have less than nearly all.
        let nearly = self.short == 0 && shown * LONGER >= LESS;
        // Whoever does as much as when it lacked the rest lacks it still, though its
        // requests are answered as soon as those of more at a time were.
        let lacks =
            |end: End| end.why == Attainment::Lacking && reserved.here * MORE > end.here;
        let asks = self.short > 0 || self.end.is_some_and(lacks);
        match self.end {
            _ if reserved.does == 0.0 => Attainment::Idle,
            _ if reserved.limited => Attainment::Limited,
            _ if reserved.has >= LESS || shown >= LESS || nearly => Attainment::Kept,
            _ if alone && !tried => Attainment::Alone,
            _ if !asks => Attainment::Sated,
            Some(end) if tried && end.why != Attainment::Lacking => Attainment::Sought,
            Some(end) => end.why,
            None => Attainment::Sought,
        }
    }

    fn look(&mut self, at_device: f64, reserved: Reserved) {
        let Reserved { has, here, under_way, present, took, .. } = reserved;
        self.enough *= REMEMBERED;
        if has >= LESS {
            (self.trial, self.end) = (None, None);
            // What a limit keeps back does not say how soon it would have to be answered.
            let longer = (took - self.enough).max(0.0);
            let new = if self.enough == 0.0 { 1.0 } else { SMOOTHING };
            self.enough += if reserved.limited { 0.0 } else { new * longer };
        }
        // Who has fewer under way than when it was tried, and does less, asks for less:
        // neighbours that come would leave it as many. In the end it is tried again.
        let less = self.end.is_some_and(|end| {
            let fewer = under_way < FEWER * end.under_way;
            end.left > 0 && here * MORE < end.here && fewer
        });
        let asks = present >= PRESENT && took > LONGER * self.enough && !less;
        self.absent = if asks { 0 } else { self.absent + 1 };
        if has >= LESS || self.trial.is_none() && self.absent > 0 {
            self.short = 0;
            return self.let_go(at_device, has);
        }
        let new = if self.short == 0 { 1.0 } else { SMOOTHING };
        self.here += new * (here - self.here);
        self.under_way += new * (under_way - self.under_way);
        self.short += 1;
        let lost = if self.most.is_some() { 1.0 / MORE } else { LOST };
        if let Some(end) = &mut self.end
            && self.here > end.here * MORE
        {
            // Who asked for no more, and now does, does not wait at all.
            let asks = end.why == Attainment::Sated && self.here > end.here * MUCH_MORE;
            let left = if asks { 0 } else { AGAIN.0 };
            (end.left, end.of) = (end.left.min(left), AGAIN.0);
        }
        let waits = |end: End| end.left > 0 && self.here > end.here * lost;
        if self.trial.is_none() && self.end.is_some_and(waits) {
            return self.let_go(at_device, has);
        }
        let alone = is_alone(at_device, &reserved);
        if self.short >= IN_A_ROW && alone && self.trial.is_none() {
            let of = self.end.map_or(0, |end| end.of);
            let why = Attainment::Alone;
            let (here, under_way) = (self.here, self.under_way);
            self.end = Some(End { here, under_way, why, left: 0, of });
            self.let_go(at_device, has);
        } else if self.short >= IN_A_ROW {
            self.press(at_device, alone);
        }
    }

    /// Whether a trial found that it asks for less. Who has nearly all of it, and is
    /// answered as soon as when it had all, may only have had a bad second.
    fn asks_for_less(&self) -> bool {
        let nearly_all = self.does * MORE > self.rate.number() as f64;
        !nearly_all && self.end.is_some_and(|end| end.why == Attainment::Sated)
    }

    /// Whether it has more than is reserved for it, for some seconds already, and would
    /// have with a request more of others there, too.
    fn has_more(&self) -> bool {
        let most = self.most.unwrap_or(MIN).max(MIN);
        self.does * most / (most + 1.0) > self.rate.number() as f64 * MORE
    }

    /// One step of a trial; `alone` if there is nobody else.
    fn press(&mut self, at_device: f64, alone: bool) {
        let now = At { most: self.most, here: self.here };
        let (under_way, fewest) = (self.under_way, self.under_way);
        let new = Trial { before: now, best: now, under_way, fewest, at_least: 0 };
        let mut trial = self.trial.unwrap_or(new);
        trial.fewest = trial.fewest.min(under_way);
        if now.here > trial.best.here {
            trial.best = now;
        }
        self.kept = KEPT;
        // With fewer than its own it would wait for itself. A moment in which nothing was
        // answered makes them more, and nothing makes them fewer.
        let least = trial.fewest.max(MIN);
        let most = self.most.unwrap_or(at_device).max(MIN);
        let worse = now.here < trial.best.here / MORE;
        let sated = self.absent >= IN_A_ROW;
        if sated {
            // The best of many is better than the first by chance alone.
            trial.best = now;
        }
        // What the last step brings is seen in the steps after it.
        trial.at_least = if most <= least { trial.at_least + 1 } else { 0 };
        if alone || worse || sated || trial.at_least > IN_A_ROW {
            return self.finish(trial, trial.tells(sated, self.does));
        }
        self.trial = Some(trial);
        if self.absent == 0 {
            let pressed = (most * self.here.clamp(LEFT.0, LEFT.1)).max(least);
            self.most = Some(pressed.min(most));
        }
    }

    fn finish(&mut self, trial: Trial, why: Attainment) {
        let Trial { before, best, fewest: under_way, .. } = trial;
        let helped = best.here >= before.here * MORE;
        let At { most, here } = if helped { best } else { before };
        let of = self.end.map_or(0, |end| 2 * end.of).clamp(AGAIN.0, AGAIN.1);
        (self.most, self.trial) = (most, None);
        self.end = Some(End { here, under_way, why, left: of, of });
        if self.asks_for_less() {
            self.kept = 0;
        }
    }

    /// Nothing is to be tried, with so many requests at the device, and so much of the
    /// reservation.
    fn let_go(&mut self, at_device: f64, has: f64) {
        if let Some(end) = &mut self.end {
            end.left = end.left.saturating_sub(1);
        }
        if self.kept > 0 && !self.has_more() {
            let unasked = self.absent > 0 && has < LESS;
            let step = if unasked { UNASKED } else { 1 };
            self.kept = self.kept.saturating_sub(step);
            return;
        }
        let unasked = self.absent > 0 || self.asks_for_less() || self.has_more();
        // More than twice of what comes is not what holds them back.
        let let_go = if unasked { LET_GO_UNASKED } else { LET_GO };
        let most = self.most.map(|most| most * let_go);
        self.most = most.filter(|most| *most < 2.0 * at_device.max(MIN));
    }
}
