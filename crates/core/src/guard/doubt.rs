//! Whether a rate was too much: whose doing it was that requests were slow beside it.
//!
//! What ends when the copy stops was the copy's doing. What goes on may have been the
//! guest's, or that of a device which still writes down what it was given. So nothing is
//! copied for a while. If it comes back meanwhile, it was not the copy: the rate is as
//! good as it was, and for some minutes that needs not be asked again. If it does not, it
//! was, as far as is known. But it may come back more seldom than that: so when it does,
//! it is asked once more, for longer.
//!
//! Who is copied in the gaps of is not asked: then nothing is never copied for long.

/// Windows in a row above the bound with nothing copied, that are more than chance.
const GOES_ON: u32 = 3;

/// Windows within it after which it is over: half a second.
const OVER: u32 = 5;

/// How long nothing is copied to see whether it comes back, in windows: 20 s.
const WAIT: u32 = 200;

/// How long at most when it is asked once more: two minutes. What comes more seldom leaves
/// the guest within its bound in 99 of 100 seconds.
const WAIT_MOST: u32 = 1200;

/// How long an answer is good, in windows: five minutes.
const GOOD: u32 = 3000;

/// The rate that was too much, as it seems, and the ceiling that it had.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fall {
    pub(super) rate: f64,
    pub(super) ceiling: f64,
}

/// What is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    /// It was slow at that rate.
    Slow,
    /// And with nothing copied.
    GoesOn,
    /// It was over; so many windows are left to see whether it comes back.
    Waits(u32),
    /// It came back with nothing copied.
    CameBack,
}

/// What comes of a doubt.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    /// It was not the copy.
    NotTheCopy(Fall),
    /// It was, as far as is known.
    TheCopy,
}

/// A doubt about a rate.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    about: Option<(Fall, Known)>,
    /// Windows above the bound in a row with nothing copied, and windows within it.
    slow: u32,
    calm: u32,
    answer: Option<Answer>,
}

/// What was found when it was asked.
#[derive(Clone, Copy, Debug)]
struct Answer {
    the_copy: bool,
    /// Windows since.
    ago: u32,
    /// Whether it was asked once more.
    again: bool,
}

impl Doubt {
    /// Requests are slow at this rate. Says whether they were already at a higher one.
    pub(super) fn begin(&mut self, rate: f64, ceiling: f64) -> bool {
        let doubted = self.about.is_some();
        self.about.get_or_insert((Fall { rate, ceiling }, Known::Slow));
        doubted
    }

    /// Requests are not slow any more, at some lower rate.
    pub(super) fn end(&mut self) {
        self.about = None;
    }

    /// Whether nothing is to be copied, to see whether it goes on or comes back.
    pub(super) fn is_open(&self) -> bool {
        self.about.is_some_and(|(_, known)| known != Known::Slow)
    }

    /// Whether it was the copy when that was last asked.
    pub(super) fn was_the_copy(&self) -> bool {
        self.answer.is_some_and(|it| it.the_copy)
    }

    /// Looks at a window: whether it was above the bound, and whether nothing was copied.
    pub(super) fn look(&mut self, above: bool, nothing: bool) -> Option<Verdict> {
        self.slow = if above && nothing { self.slow.saturating_add(1) } else { 0 };
        self.calm = if above { 0 } else { self.calm.saturating_add(1) };
        if let Some(answer) = &mut self.answer {
            answer.ago += 1;
        }
        self.answer = self.answer.filter(|it| it.ago < GOOD);
        let (goes_on, over) = (self.slow >= GOES_ON, self.calm >= OVER);
        let (fall, known) = self.about.as_mut()?;
        let the_copy = match *known {
            Known::GoesOn if over => match self.answer {
                Some(Answer { the_copy: true, ago, again: false }) => {
                    *known = Known::Waits((2 * ago).clamp(2 * WAIT, WAIT_MOST));
                    return None;
                }
                Some(answer) => answer.the_copy,
                None => {
                    *known = Known::Waits(WAIT);
                    return None;
                }
            },
            Known::Waits(0) => {
                let again = self.answer.is_some();
                self.answer = Some(Answer { the_copy: true, ago: 0, again });
                true
            }
            Known::CameBack if over => {
                self.answer = Some(Answer { the_copy: false, ago: 0, again: false });
                false
            }
            was => {
                *known = match was {
                    Known::Slow if goes_on => Known::GoesOn,
                    Known::Waits(_) if goes_on => Known::CameBack,
                    Known::Waits(left) => Known::Waits(left - 1),
                    other => other,
                };
                return None;
            }
        };
        let verdict =
            if the_copy { Verdict::TheCopy } else { Verdict::NotTheCopy(*fall) };
        self.about = None;
        Some(verdict)
    }
}
