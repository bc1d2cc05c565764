//! How fast a copy goes from one datastore to another by itself, learned from moves.
//!
//! Of each move is known what it did, beside which application, and what was promised to
//! that. So much follows from only one speed, as a faster copy does more under any
//! promise ([`Share`](super::Share)): that is its lesson. The less of its speed a copy
//! had, and the less it copied, the less its lesson counts; and so does an old one, as
//! devices change.
//!
//! How fast a source can be read is known from the fastest copy from it, whatever that
//! went to: it is what copies share with applications.
//!
//! Moves from and to the same two datastores tell most. Without any, a copy is taken to
//! go no faster than the slower of its ends was seen to go with others.

use super::Move;
use super::habit::{self, Habit};
use super::likeness::Known;
use super::share::{LEAST, Share, Terms, Work};
use crate::Nanos;
use crate::guard::Experience;

/// A lesson counts for half after so many others of weight 1.
pub(super) const HALF_LIFE: f64 = 8.0;

/// A move of so many bytes counts for half of a large one: it is over before the copier
/// has found its pace.
const SHORT: f64 = (64 << 20) as f64;

/// Before anything is learned, speeds between two datastores are taken to differ by
/// about a quarter from move to move...
const PRIOR_DOUBT: f64 = 0.25;

/// ... and that counts as much as so many lessons.
const PRIOR_WEIGHT: f64 = 2.0;

/// Fewer moves between two datastores are no more than a guess: nothing shows how far they
/// lie apart.
const ENOUGH: usize = 2;

/// How far off a single move is at least ...
const DOUBT_ONE: f64 = 0.5;

/// ... and one that says nearly nothing, as it was short, or beside an application that had
/// most of the source.
const DOUBT_THIN: f64 = 1.2;

/// How far off the slower of two ends is that were never used together.
const DOUBT_ENDS: f64 = 0.5;

/// The same if only one of them is known.
const DOUBT_END: f64 = 0.8;

/// A move whose copy, once its guard had seen enough, took a smaller part of the time says
/// nothing of that.
const SHORTEST: f64 = 0.5;

/// A copy with a smaller part of its speed says too little of how fast its source can be
/// read: the larger the part that has to be guessed, the larger the error.
const MOST_OF_IT: f64 = 0.8;

/// What a copy says that is so many times as fast ...
const FASTER: f64 = 4.0;

/// ... and would not have done so many times as much, is too little: beside applications
/// copies differ by nearly as much from move to move.
const TELLS: f64 = 2.0;

/// What a copy did beside somebody who was there all the time counts for so little: what it
/// would have done by itself is a guess then. (What came of that somebody is not lost: it
/// is a habit.)
const BESIDE: f64 = 0.05;

/// Halvings in which the speed of a copy that had but a thousandth of it is found to a
/// millionth.
const HALVINGS: u32 = 24;

/// Which ends of the move in question a past one had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// It went from the one to the other, too.
    Both,
    /// It went from the same source.
    Source,
    /// It went to the same destination.
    Destination,
}

/// What a past move says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lesson {
    /// What it had in common with the move in question.
    pub ends: Ends,
    /// Bytes per second of copying.
    pub rate: f64,
    /// Bytes that it copied.
    pub bytes: u64,
    /// What the application did before.
    pub work: Work,
    /// What was promised to it.
    pub terms: Terms,
    /// The part of its requests that it kept, if it had any.
    pub kept: Option<f64>,
    /// Its guard began with what an earlier one had found out.
    pub experienced: bool,
    /// What its guard has found out.
    pub experience: Option<Experience>,
}

/// What a lesson comes to.
#[derive(Clone, Copy, Debug)]
struct Learned {
    /// Bytes per second that the copy would have done by itself.
    speed: f64,
    /// The part of that which it had.
    had: f64,
    /// How much it counts.
    weight: f64,
}

/// What a speed was learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// So many moves from the one to the other.
    Moves(usize),
    /// Moves from the source, and others to the destination.
    Ends,
    /// Moves from the source or to the destination, and none with the other end.
    OneEnd,
    /// No moves: what the devices have shown of reading and writing ([`Shown`]).
    Devices,
}

impl Source {
    /// Whether it says too little for a range that nine of ten end in.
    pub fn is_guess(self) -> bool {
        !matches!(self, Source::Moves(ENOUGH..))
    }
}

/// Bytes per second that a copy does by itself, and what applications made of that.
#[derive(Clone, Debug, PartialEq)]
pub struct Speed {
    /// Most likely; above zero.
    pub likely: f64,
    /// The deviation of its logarithm.
    pub doubt: f64,
    /// At which the source can be read, at least: no less than the likely one.
    pub read: f64,
    /// What it was learned from.
    pub source: Source,
    /// What came of moves beside applications, the latest first.
    pub(super) habits: Vec<Habit>,
    /// What their guards have found out, the latest first.
    pub(super) known: Vec<Known>,
}

/// What a copy has beside an application.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    pub(super) share: Share,
    /// The part of its requests that the application keeps, by what such ones have kept.
    pub(super) kept: f64,
    /// Bytes per second that would be said, if there were no habits and no limit.
    told: f64,
    /// How many times as long as that comes to it takes, by what came of those before it.
    times: f64,
    /// Its guard begins with what an earlier one has found out.
    experienced: bool,
}

impl Beside {
    /// Bytes per second without a limit.
    pub(super) fn free(&self) -> f64 {
        self.told / self.times
    }

    /// How much longer a move takes that begins beside this application because its guard
    /// has to learn first.
    pub(super) fn learning(&self, one: &Move, begins: &Work) -> Nanos {
        let learning =
            one.terms.learning(begins, one.terms.limited(self.told), self.experienced);
        Nanos((learning.0 as f64 * self.times) as u64)
    }
}

/// Bytes per second at which the source can be read: as fast as the fastest copy was that
/// had most of its speed, whatever it went to; zero if there was none.
fn readable(lessons: &[Lesson]) -> f64 {
    let from_here = lessons.iter().filter(|one| one.ends != Ends::Destination);
    let learned = from_here.filter_map(|one| one.learned(0.0));
    learned.filter(|one| one.had >= MOST_OF_IT).map(|one| one.speed).fold(0.0, f64::max)
}

impl Lesson {
    /// A move of which no more is known than how it went, beside what, under which promise.
    pub fn plain(ends: Ends, rate: f64, bytes: u64, work: Work, terms: Terms) -> Lesson {
        let (kept, experienced, experience) = (None, false, None);
        Lesson { ends, rate, bytes, work, terms, kept, experienced, experience }
    }

    /// How much later than at once its guard had the copy at this rate.
    pub(super) fn learning(&self, rate: f64) -> Nanos {
        self.terms.learning(&self.work, rate, self.experienced)
    }

    /// What it comes to, if it says anything, from a source that can be read at so many
    /// bytes per second at least.
    fn learned(&self, source: f64) -> Option<Learned> {
        if !(self.rate.is_finite() && self.rate > 0.0 && self.bytes > 0) {
            return None;
        }
        // Of a move that was over when the guard had just seen enough, nothing is known.
        let bytes = self.bytes as f64;
        let learning = self.learning(self.rate);
        let took = bytes / self.rate;
        let copying = took - learning.as_secs_f64();
        if copying < SHORTEST * took {
            return None;
        }
        let rate = bytes / copying;
        let beside =
            |speed| speed * Share::of(&self.work, &self.terms, (speed, source)).likely;
        // Above the speed that would do less, below the one that would do more.
        let (mut low, mut high) = (rate, rate / LEAST);
        for _ in 0..HALVINGS {
            let middle = (low * high).sqrt();
            if beside(middle) < rate {
                low = middle;
            } else {
                high = middle;
            }
        }
        // Where a faster copy would have done hardly more, it was the application that
        // held it back: how fast it is by itself, that does not say.
        let tells = beside(low * FASTER) / beside(low);
        if tells < TELLS {
            return None;
        }
        let had = rate / low;
        let (work, guarded) = (&self.work, !self.terms.is_none());
        let beside = if guarded { work.there() } else { work.busy() };
        let counts = (1.0 - beside * (1.0 - BESIDE)) * tells / FASTER;
        let weight = had * bytes / (bytes + SHORT) * counts;
        Some(Learned { speed: low, had, weight })
    }
}

impl Speed {
    /// What a copy has of it beside such an application, under such terms.
    pub(super) fn beside(&self, work: &Work, terms: &Terms) -> Beside {
        let share = Share::of(work, terms, self.both());
        let (times, kept) = habit::seen(&self.habits, work, terms, share.kept);
        let known = Known::for_next(&self.known, work, terms);
        let experienced = terms.are_known(known.as_ref());
        Beside { told: self.likely * share.likely, share, kept, times, experienced }
    }

    /// What a copy does by itself, and what its source can be read at.
    fn both(&self) -> (f64, f64) {
        (self.likely, self.read)
    }

    /// What these say, the latest first; nothing if none says anything.
    pub fn learned(lessons: &[Lesson]) -> Option<Speed> {
        let speed = Speed::by_itself(lessons)?;
        let habits = lessons.iter().filter_map(|one| Habit::of(one, speed.both()));
        Some(Speed { habits: habits.collect(), known: Known::of(lessons), ..speed })
    }

    /// The same with what the guards of these moves have found out, the latest first.
    #[must_use]
    pub fn knowing(self, lessons: &[Lesson]) -> Speed {
        Speed { known: Known::of(lessons), ..self }
    }

    /// The same where one of the ends lets no more than so many bytes per second through,
    /// whatever others did with the other end.
    pub fn at_most(self, most: f64) -> Speed {
        let likely = self.likely.min(most);
        Speed { likely, read: self.read.min(most).max(likely), ..self }
    }

    fn by_itself(lessons: &[Lesson]) -> Option<Speed> {
        let read = readable(lessons);
        let of = |ends: Ends, source: f64| -> Vec<Learned> {
            let those = lessons.iter().filter(|one| one.ends == ends);
            those.filter_map(|one| one.learned(source)).collect()
        };
        let both = of(Ends::Both, read);
        if !both.is_empty() {
            return Some(Speed::of_moves(&both, read));
        }
        // Of where those came from that went to the destination, nothing is known.
        let (source, destination) = (of(Ends::Source, read), of(Ends::Destination, 0.0));
        let fastest =
            |those: &[Learned]| those.iter().map(|one| one.speed).reduce(f64::max);
        let (likely, doubt, source) = match (fastest(&source), fastest(&destination)) {
            (Some(from), Some(to)) => (from.min(to), DOUBT_ENDS, Source::Ends),
            (Some(one), None) | (None, Some(one)) => (one, DOUBT_END, Source::OneEnd),
            (None, None) => return None,
        };
        let (habits, known) = (Vec::new(), Vec::new());
        Some(Speed { likely, doubt, read: read.max(likely), source, habits, known })
    }

    /// The weighted mean of the logarithms, and how far a next one will lie from it.
    fn of_moves(those: &[Learned], read: f64) -> Speed {
        // A lesson grows old by what those after it weigh.
        let weighed = |age: &mut f64, one: &Learned| {
            let weight = one.weight * (-*age / HALF_LIFE).exp2();
            *age += one.weight;
            Some((weight, one.speed.ln()))
        };
        let weighed: Vec<(f64, f64)> = those.iter().scan(0.0, weighed).collect();
        let total: f64 = weighed.iter().map(|(weight, _)| weight).sum();
        let mean = weighed.iter().map(|(weight, it)| weight * it).sum::<f64>() / total;
        let apart: f64 =
            weighed.iter().map(|(weight, it)| weight * (it - mean).powi(2)).sum();
        let prior = PRIOR_WEIGHT * PRIOR_DOUBT.powi(2);
        let variance = (prior + apart) / (PRIOR_WEIGHT + total);
        // Of the next one, and of the mean.
        let doubt = (variance * (1.0 + 1.0 / (1.0 + total))).sqrt();
        let source = Source::Moves(those.len());
        let thin = DOUBT_THIN * (1.0 - total).max(0.0);
        let guess = if source.is_guess() { DOUBT_ONE.hypot(thin) } else { 0.0 };
        Speed {
            likely: mean.exp(),
            read: read.max(mean.exp()),
            doubt: doubt.hypot(guess),
            source,
            habits: Vec::new(),
            known: Vec::new(),
        }
    }
}
