//! Timers of a reactor: who is to be woken when.

use std::collections::BTreeMap;

use sterna_core::Nanos;

use crate::io::Token;

/// The timers that are set.
#[derive(Default)]
pub(crate) struct Timers {
    set: BTreeMap<TimerId, Token>,
    sequence: u64,
}

/// Names a timer that was set, to cancel it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerId {
    at: Nanos,
    sequence: u64,
}

impl Timers {
    /// Wakes `token` once, at `at` or soon after.
    pub(crate) fn set(&mut self, at: Nanos, token: Token) -> TimerId {
        self.sequence += 1;
        let id = TimerId { at, sequence: self.sequence };
        self.set.insert(id, token);
        id
    }

    /// Forgets a timer; nothing happens if it has fired.
    pub(crate) fn cancel(&mut self, id: TimerId) {
        self.set.remove(&id);
    }

    /// When the next timer fires.
    pub(crate) fn next(&self) -> Option<Nanos> {
        Some(self.set.first_key_value()?.0.at)
    }

    /// Takes one timer that is due at `now`, in the order of their moments.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<Token> {
        let first = self.set.first_entry()?;
        (first.key().at <= now).then(|| first.remove())
    }
}

/// A timer of somebody who wants to be woken at one moment at most: the next.
#[derive(Debug, Default)]
pub(crate) struct Alarm(Option<(Nanos, TimerId)>);

impl Alarm {
    /// Sets it to `next`, or to never. Costs nothing if it is set so already.
    pub(crate) fn set(&mut self, timers: &mut Timers, next: Option<Nanos>, token: Token) {
        if self.at() == next {
            return;
        }
        if let Some((_, timer)) = self.0.take() {
            timers.cancel(timer);
        }
        self.0 = next.map(|at| (at, timers.set(at, token)));
    }

    /// When it will fire.
    pub(crate) fn at(&self) -> Option<Nanos> {
        self.0.map(|(at, _)| at)
    }

    /// It has fired.
    pub(crate) fn fired(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Owner;

    #[test]
    fn timers_fire_in_order_and_cancelled_ones_never() {
        let token = |tag| Token { owner: Owner::Reactor, tag };
        let mut timers = Timers::default();
        timers.set(Nanos(30), token(3));
        let cancelled = timers.set(Nanos(20), token(2));
        timers.set(Nanos(10), token(1));
        timers.set(Nanos(10), token(11));
        timers.cancel(cancelled);
        assert_eq!(timers.next(), Some(Nanos(10)));
        assert_eq!(timers.due(Nanos(9)), None);
        let fired: Vec<_> =
            std::iter::from_fn(|| timers.due(Nanos(30))).map(|t| t.tag).collect();
        assert_eq!(fired, [1, 11, 3]);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn an_alarm_fires_at_the_moment_it_was_last_set_to() {
        let token = Token { owner: Owner::Reactor, tag: 1 };
        let (mut timers, mut alarm) = (Timers::default(), Alarm::default());
        for at in [Nanos(30), Nanos(10), Nanos(20), Nanos(20)] {
            alarm.set(&mut timers, Some(at), token);
        }
        assert_eq!(timers.due(Nanos(19)), None);
        assert_eq!(timers.due(Nanos(30)), Some(token));
        assert_eq!(timers.due(Nanos(30)), None, "it is one timer");
        alarm.fired();
        alarm.set(&mut timers, Some(Nanos(20)), token);
        assert_eq!(timers.next(), Some(Nanos(20)), "it can be set to the same again");
        alarm.set(&mut timers, None, token);
        assert_eq!(timers.next(), None);
    }
}
