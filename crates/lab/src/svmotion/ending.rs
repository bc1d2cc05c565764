//! What comes of the wish that the experiment should end before its time.
//!
//! What was measured is not thrown away, unless that is asked for by a second wish. So
//! before the first migration, when nothing was, the first wish ends all of it at once;
//! from then on nothing more begins, the guest is checked, and there is a report. Pure.

use std::cell::Cell;

/// How far an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// No migration has begun.
    Preparing,
    /// A migration goes on.
    Moving,
    /// One has ended, and others may follow.
    Between,
    /// All have ended, and the guest is asked how it is.
    Checking,
}

/// The end of an experiment.
#[derive(Debug)]
pub(super) struct Ending {
    point: Cell<Point>,
    wanted: Cell<bool>,
}

impl Ending {
    /// Of an experiment in which nothing has been done, and which nobody wants to end.
    pub(super) fn new() -> Ending {
        Ending { point: Cell::new(Point::Preparing), wanted: Cell::new(false) }
    }

    /// The experiment is this far.
    pub(super) fn reached(&self, point: Point) {
        self.point.set(point);
    }

    /// Whether somebody wants it to end: nothing more is to begin.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.get()
    }

    /// Somebody wants it to end: what happens until then, in words; nothing if it is to
    /// end at once.
    pub(super) fn wish(&self) -> Option<&'static str> {
        if self.wanted.replace(true) {
            return None;
        }
        match self.point.get() {
            Point::Preparing => None,
            Point::Moving => Some(
                "the experiment ends after this migration, with a check and a report;\n\
                 Ctrl-C again: at once, without a report",
            ),
            Point::Between => Some(
                "no more migrations begin; Sterna checks the guest and writes a \
                 report;\nCtrl-C again: at once, without a report",
            ),
            Point::Checking => Some(
                "the experiment is about to end: Sterna checks the guest and writes a \
                 report;\nCtrl-C again: at once, without a report",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna_console::output::WIDTH;

    #[test]
    fn where_nothing_was_measured_it_ends_at_once() {
        let ending = Ending::new();
        assert_eq!(ending.wish(), None);
        assert!(ending.is_wanted());
    }

    #[test]
    fn what_was_measured_is_thrown_away_only_at_the_second_wish() {
        for (point, said) in [
            (Point::Moving, "after this migration"),
            (Point::Between, "no more migrations"),
            (Point::Checking, "about to end"),
        ] {
            let ending = Ending::new();
            ending.reached(point);
            let words = ending.wish().expect("words");
            assert!(words.contains(said), "{point:?}: {words}");
            assert!(words.lines().all(|line| line.len() <= WIDTH), "{words}");
            assert_eq!(ending.wish(), None);
        }
    }
}
