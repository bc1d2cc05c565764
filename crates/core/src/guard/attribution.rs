//! Attribution: did the copy make requests slow, or did something else?
//!
//! # Rule
//!
//! If the slowness ends when the copy stops, the copy may have caused it. If it goes on,
//! the guest caused it, or a device that still writes down what it was given. So nothing
//! is copied for a while. If the slowness comes back meanwhile, it was not the copy: the
//! rate is as good as it was, and the answer holds for some minutes. If it does not come
//! back, it was the copy, as far as is known. But slowness may come back more seldom than
//! that: so the next time, the guard watches once more, for longer.
//!
//! # Special case
//!
//! Not used while the copier works in idle gaps: then the copy never pauses long enough
//! to compare.

/// Windows in a row above the bound with nothing copied, that are more than chance.
const GOES_ON: u32 = 3;

/// Windows within it after which it is over: half a second.
const OVER: u32 = 5;

/// How long nothing is copied to see whether it comes back, in windows: 20 s.
const WAIT: u32 = 200;

/// How long at most when it is asked once more: two minutes. What comes more seldom
/// leaves the guest within its bound in 99 of 100 seconds.
const WAIT_MOST: u32 = 1200;

/// How long an answer is good, in windows: five minutes.
const GOOD: u32 = 3000;

/// The rate that seems to have been too much, and the ceiling that it had.
#[derive(Clone, Copy, Debug)]
pub(super) struct SuspectRate {
    pub(super) rate: f64,
    pub(super) ceiling: f64,
}

/// What is known about a suspect rate.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Evidence {
    /// Requests were slow at that rate.
    SlowWithCopy,
    /// They stayed slow with nothing copied.
    SlowWithout,
    /// The slowness ended; so many windows are left to see whether it comes back.
    Watching(u32),
    /// It came back with nothing copied.
    CameBack,
}

/// Who made requests slow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    /// Not the copy: the suspect rate was good.
    NotTheCopy(SuspectRate),
    /// The copy, as far as is known.
    TheCopy,
}

/// A suspect rate, if there is one, and the last answer.
#[derive(Debug, Default)]
pub(super) struct Attribution {
    about: Option<(SuspectRate, Evidence)>,
    /// Windows above the bound in a row with nothing copied, and windows within it.
    slow: u32,
    within: u32,
    answer: Option<Answer>,
}

/// The last verdict.
#[derive(Clone, Copy, Debug)]
struct Answer {
    the_copy: bool,
    /// Windows since.
    ago: u32,
    /// Whether the guard has watched once more.
    again: bool,
}

impl Attribution {
    /// Requests are slow at this rate. Says whether a higher rate is a suspect already.
    pub(super) fn suspect(&mut self, rate: f64, ceiling: f64) -> bool {
        let suspected = self.about.is_some();
        self.about.get_or_insert((SuspectRate { rate, ceiling }, Evidence::SlowWithCopy));
        suspected
    }

    /// Requests are not slow any more at a lower rate, or nobody can tell.
    pub(super) fn dismiss(&mut self) {
        self.about = None;
    }

    /// Whether nothing is to be copied, to see whether the slowness goes on or comes
    /// back.
    pub(super) fn is_open(&self) -> bool {
        self.about.is_some_and(|(_, known)| known != Evidence::SlowWithCopy)
    }

    /// Whether the last verdict was the copy.
    pub(super) fn was_the_copy(&self) -> bool {
        self.answer.is_some_and(|it| it.the_copy)
    }

    /// Looks at a window: whether it was above the bound, and whether nothing was copied.
    pub(super) fn look(&mut self, above: bool, nothing: bool) -> Option<Verdict> {
        self.slow = if above && nothing { self.slow.saturating_add(1) } else { 0 };
        self.within = if above { 0 } else { self.within.saturating_add(1) };
        if let Some(answer) = &mut self.answer {
            answer.ago += 1;
        }
        self.answer = self.answer.filter(|it| it.ago < GOOD);
        let (goes_on, over) = (self.slow >= GOES_ON, self.within >= OVER);
        let (suspect, known) = self.about.as_mut()?;
        let the_copy = match *known {
            Evidence::SlowWithout if over => match self.answer {
                Some(Answer { the_copy: true, ago, again: false }) => {
                    *known = Evidence::Watching((2 * ago).clamp(2 * WAIT, WAIT_MOST));
                    return None;
                }
                Some(answer) => answer.the_copy,
                None => {
                    *known = Evidence::Watching(WAIT);
                    return None;
                }
            },
            Evidence::Watching(0) => {
                let again = self.answer.is_some();
                self.answer = Some(Answer { the_copy: true, ago: 0, again });
                true
            }
            Evidence::CameBack if over => {
                self.answer = Some(Answer { the_copy: false, ago: 0, again: false });
                false
            }
            was => {
                *known = match was {
                    Evidence::SlowWithCopy if goes_on => Evidence::SlowWithout,
                    Evidence::Watching(_) if goes_on => Evidence::CameBack,
                    Evidence::Watching(left) => Evidence::Watching(left - 1),
                    other => other,
                };
                return None;
            }
        };
        let verdict =
            if the_copy { Verdict::TheCopy } else { Verdict::NotTheCopy(*suspect) };
        self.about = None;
        Some(verdict)
    }
}
