//! How much more or less the others may have.
//!
//! # Rule
//!
//! Nobody knows how much the others slow a class down before it was tried. So the first
//! cut is a guess, and from then on two points tell: what the others got, and how easily
//! the class had what it had. Between them two laws are common:
//!
//! - *shared*: others that are held to a rate take so much of the device's time, and
//!   the class has the rest. Its ease is `alone - b * others`.
//! - *queued*: requests of the class wait behind those of the others. Its time, one
//!   over the ease, is `own + slope * others`.
//!
//! Both are drawn through the two points, and the more careful answer counts: of two
//! cuts the smaller, and of two raises the smaller.
//!
//! # Special cases
//!
//! A device that is full all at once follows neither: up to an *edge* the others cost
//! the class next to nothing, and beyond it everything. So the least that was too much
//! is remembered, and the most that was not. What is given back is a part of the way to
//! the edge, which is not approached closer than [`CLOSE`]; what is cut goes back at
//! once to where it was well. What was too much once need not be for ever: the edge
//! moves up, the quicker the longer it was not met. Each time that it is met again
//! where it was, it becomes twice as sure, and moves half as quickly.
//!
//! A device that stood still for a second looks like one that is full, at whatever the
//! others got in it, and a device that fills up shows that before it is full, or not at
//! all. So an edge is *doubted* if the class has far more than it needs right at it: then
//! it is forgotten, and they go on. If it was one, they are a second beyond it, and the
//! next doubt takes four times as long: a device that is full all at once is found full in
//! a second of a minute at most. (Lines that were drawn in such a second are dropped as
//! soon as the class is quicker beside the others than they have it alone.) And while the
//! class has far more than it needs, nobody waits for twentieths: what the others have
//! grows by up to the root of that, as neither law makes the class slower by more than the
//! factor by which the others grow.

/// The first cut, of which nothing is known.
const CUT_FIRST: f64 = 0.7;

/// The most that the others are cut by in a period: from all there is to a percent in
/// five of them.
const CUT_MAX: f64 = 0.4;

/// The least that is cut, and what it becomes in a row: what is too slow is not left as
/// it is, and what did not help is not tried again.
const CUT_MIN: f64 = 0.03;
/// The least where it is felt: a cache that is full has to drain, too.
const CUT_FELT: f64 = 0.12;
const CUT_GROWS: f64 = 2.0;

/// The most that they are let go by.
pub(super) const RAISE_MAX: f64 = 1.05;

/// An ease with which nobody need yield: the class has so many times what it needs.
const FAR: f64 = 2.0;

/// The most that the others are let go by while it is there: from a percent to all that
/// there is in five periods.
const RAISE_FAR: f64 = 3.0;

/// What is given back of the way to the edge at once while it is there.
const PART_FAR: f64 = 0.3;

/// Within this factor of the edge, what is seen speaks of the edge itself.
const NEAR: f64 = 1.25;

/// Periods with so much to spare near the edge after which it counts as a moment's; each
/// time that it is met all the same, it takes so many times as long.
const DOUBT: u32 = 3;
const DOUBT_GROWS: u32 = 4;

/// Two points of the line tell something if the others differ by this factor.
const APART: f64 = 1.1;

/// A line is wrong by which the class would take so many times as long all alone as it does
/// now, beside the others: it was drawn while the device stood still.
const REFUTED: f64 = 1.05;

/// Bytes per second that others have to differ by, to tell anything.
const APART_RATE: f64 = (1 << 20) as f64;

/// A cut by `APART` or more that changes the ease, or what is under way, by less than
/// this did nothing.
const EFFECT: f64 = 0.03;

/// The edge is not approached closer than that.
const CLOSE: f64 = 1.05;

/// What is given back at once of the way to the edge. A cache that fills up shows only
/// after seconds that it was too much.
const PART: f64 = 0.15;

/// What the edge moves by in a period, for each period since it was met: by a twentieth
/// in half a minute, to twice in two.
const FADES: f64 = 1e-4;

/// Met again within this factor, it is the same edge.
const SAME: f64 = 1.25;

/// So often an edge can become surer: then it moves by a twentieth in four minutes.
const SURE_MAX: i32 = 6;

/// Fewer requests under way on average than this are no queue.
const QUEUE: f64 = 1.0;

/// What the others got, and what the class had meanwhile.
#[derive(Clone, Copy, Debug)]
struct Point {
    got: f64,
    ease: f64,
    outstanding: f64,
}

/// The least of the others that was too much.
#[derive(Clone, Copy, Debug)]
struct Edge {
    got: f64,
    /// Periods since it was met.
    age: u32,
    /// How often it was met again.
    sure: i32,
}

/// Two points as lines.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Shared: ease lost for each byte per second of the others.
    shared: f64,
    /// Queued: the time that the class takes alone.
    own: f64,
}

/// What is known of the device.
#[derive(Debug, Default)]
pub(super) struct Law {
    last: Option<Point>,
    line: Option<Line>,
    edge: Option<Edge>,
    /// The most that was not.
    good: Option<f64>,
    idle_cuts: u32,
    /// For how many periods the class had far more than it needs, near the edge.
    far: u32,
    /// How often the edge was doubted, and met all the same.
    doubts: u32,
    /// The least that is cut next.
    step: f64,
}

impl Law {
    /// Learns from a period: what the others got, and what the class had. It was well if
    /// its ease was `least`.
    pub(super) fn learn(&mut self, got: f64, ease: f64, outstanding: f64, least: f64) {
        let here = Point { got, ease, outstanding };
        self.line = self.line.filter(|line| line.own * ease <= REFUTED);
        self.mark(here, least);
        let Some(before) = self.last else {
            self.last = Some(here);
            return;
        };
        let (less, more) = (before.got.min(got), before.got.max(got));
        if more < less * APART || more < APART_RATE {
            return; // Too close to each other to tell anything.
        }
        self.last = Some(here);
        self.count_idle(before, here);
        // A class that is quicker the more the others get says nothing of this.
        if (ease - before.ease) * (before.got - got) > 0.0 {
            let (time, then) = (1.0 / ease, 1.0 / before.ease);
            let shared = (ease - before.ease) / (before.got - got);
            let own = time - (then - time) / (before.got - got) * got;
            self.line = Some(Line { shared, own: own.clamp(0.0, 0.98 * time) });
        }
    }

    /// Remembers where it was too much, and where not.
    fn mark(&mut self, here: Point, least: f64) {
        if let Some(edge) = &mut self.edge {
            edge.age += 1;
            edge.got *= 1.0 + FADES * f64::from(edge.age) * 0.5_f64.powi(edge.sure);
        }
        self.doubt(here);
        if here.ease < least {
            self.meet(here.got);
            self.good = self.good.filter(|good| *good < here.got);
        } else if here.ease >= 1.0 {
            self.edge = self.edge.filter(|edge| edge.got > here.got);
            self.good = Some(self.good.map_or(here.got, |good| good.max(here.got)));
        }
    }

    /// Forgets an edge of which nothing is to be seen.
    fn doubt(&mut self, here: Point) {
        let near = self.edge.is_some_and(|edge| here.got * NEAR >= edge.got);
        self.far = if near && here.ease >= FAR { self.far + 1 } else { 0 };
        let wait = DOUBT.saturating_mul(DOUBT_GROWS.saturating_pow(self.doubts));
        if self.far >= wait {
            (self.edge, self.far) = (None, 0);
            self.doubts += 1;
        }
    }

    /// So much was too much.
    fn meet(&mut self, got: f64) {
        let again = |edge: &Edge| edge.age > 1 && got * SAME >= edge.got;
        self.edge = match self.edge {
            Some(edge) if edge.got < got => Some(edge),
            Some(edge) if again(&edge) => {
                Some(Edge { got, age: 0, sure: (edge.sure + 1).min(SURE_MAX) })
            }
            Some(Edge { sure, .. }) => Some(Edge { got, age: 0, sure }),
            None => Some(Edge { got, age: 0, sure: 0 }),
        };
    }

    /// A cut that changed neither what the class gets nor how much of it is under way is
    /// no proof; one that left less under way and got the class no more is.
    fn count_idle(&mut self, before: Point, here: Point) {
        if (here.ease / before.ease - 1.0).abs() >= EFFECT {
            self.idle_cuts = 0;
        } else if here.got < before.got {
            let fewer = here.outstanding < (1.0 - EFFECT) * before.outstanding;
            self.idle_cuts += u32::from(fewer || here.outstanding < QUEUE);
        }
    }

    /// Cuts in a row that showed that the class asks for no more.
    pub(super) fn idle_cuts(&self) -> u32 {
        self.idle_cuts
    }

    /// What the others, who got so much while the class had this ease, have to be
    /// multiplied with so that it has `aim`, which is more.
    pub(super) fn cut(&mut self, got: f64, ease: f64, aim: f64) -> f64 {
        let felt = self.edge.is_some_and(|edge| edge.got <= got * SAME && edge.age == 0);
        let least = 1.0 - self.step.max(if felt { CUT_FELT } else { CUT_MIN });
        self.step = (1.0 - least) * CUT_GROWS;
        let by_line = self.line.map_or(CUT_FIRST, |line| {
            let (shared, queued) = line.factors(got, ease, aim);
            shared.max(queued)
        });
        let back = self.good.map_or(1.0, |good| good / got.max(1.0));
        by_line.min(back).min(least).max(CUT_MAX)
    }

    /// The same, where `aim` is less.
    pub(super) fn raise(&self, got: f64, ease: f64, aim: f64) -> f64 {
        let (most, part) = match ease >= FAR {
            true => ((ease / aim).sqrt().min(RAISE_FAR), PART_FAR),
            false => (RAISE_MAX, PART),
        };
        let by_line = self.line.map_or(most, |line| {
            let (shared, queued) = line.factors(got, ease, aim);
            shared.min(queued).sqrt()
        });
        let to_edge = self.edge.map_or(most, |edge| {
            let way = edge.got / CLOSE / got.max(1.0);
            way.max(1.0).powf(part)
        });
        by_line.min(to_edge).clamp(1.0, most)
    }

    /// What was cut was enough.
    pub(super) fn enough(&mut self) {
        self.step = CUT_MIN;
    }

    /// The others do all that they would, and the class is well: to doubt was right.
    pub(super) fn nobody_is_held(&mut self) {
        self.doubts = 0;
    }

    /// Nothing is true any more but where it was well.
    pub(super) fn forget(&mut self) {
        *self = Law { good: self.good, ..Law::default() };
    }
}

impl Line {
    /// What the others have to be multiplied with, by either law.
    fn factors(self, got: f64, ease: f64, aim: f64) -> (f64, f64) {
        let more = (aim - ease) / self.shared.max(f64::MIN_POSITIVE);
        let shared = (got - more) / got.max(1.0);
        // Of a class that is slower alone than its target, nothing is enough.
        let (time, wanted) = (1.0 / ease, 1.0 / aim);
        let queued = (wanted - self.own).max(0.0) / (time - self.own).max(wanted * 1e-3);
        (shared, queued)
    }
}
