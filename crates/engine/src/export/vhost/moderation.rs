//! When a guest is told of answers, and when it is to tell of requests.
//!
//! Each word costs the guest something: it leaves its program to tell us of a request,
//! and is interrupted to hear of an answer. To a guest under KVM that is little beside
//! what a request takes; to one that is emulated it is most of it, and the more often it
//! is told the less it can ask for.
//!
//! **Rule.** A guest that is slow at asking is spared: for a spell it need not tell of
//! requests, the queue is looked at once in a [`WINDOW`] instead; and it is told of
//! answers when none of its requests is under way any more, or when the oldest of them
//! has lain there for a window.
//!
//! **How it is seen that a guest is slow.** Where a look finds several requests, the guest has
//! made them since the look before: one took it that time by their number, or less. Fast
//! guests need a few microseconds for each, emulated ones fifty and more. Only a look tells
//! something that follows close upon another after which requests were under way: else the
//! guest may have rested in between. During a spell requests lie and wait, so then a look can
//! only show that the guest is fast after all, and ends the spell.
//!
//! **Invariants.** Whoever has fewer than [`FEW`] requests under way at a time is never
//! spared: one that waits for each answer does not wait for more than that. No answer is
//! kept back for more than a window, nor is a request overlooked for more. While the
//! guest need not tell of requests there is a moment at which the queue is looked at.

use sterna_core::Nanos;

/// For how long an answer is kept back or a request is not looked at, at most: two to
/// four times what one request takes an emulated guest to make. More gains it no more.
const WINDOW: Nanos = Nanos::from_micros(200);

/// A guest that takes this long to make a request is slow: half of what emulated ones
/// take, and several times what others do.
const SLOW: Nanos = Nanos::from_micros(40);

/// One that takes no longer than this is fast.
const FAST: Nanos = Nanos::from_micros(15);

/// Requests that are under way at least where a guest is spared.
const FEW: u32 = 4;

/// How long a guest is spared before it has to be seen to be slow anew: ten times what
/// that takes.
const SPELL: Nanos = Nanos::from_millis(100);

/// Two looks that are further apart say nothing of how fast a guest is.
const CLOSE: Nanos = Nanos::from_micros(500);

/// What one more look counts for that shows a slower guest than it was held for: one look
/// in eight may come late because we were not running.
const WEIGHT: u64 = 8;

/// What is known of one queue's guest, and what it has not been told.
#[derive(Debug, Default)]
pub(super) struct Moderation {
    /// What it takes to make a request.
    each: Nanos,
    /// The last look at its queue, and whether none of its requests was under way then.
    looked: Nanos,
    rested: bool,
    /// It is spared until then.
    spared: Nanos,
    /// Answers that it has not been told of, and since when there are any.
    untold: u32,
    since: Nanos,
    /// The next look, if it need not tell of requests.
    look: Option<Nanos>,
}

/// What happened to a queue in an iteration of the loop.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Iteration {
    /// Requests that were found in it.
    pub(super) found: u32,
    /// Answers that were put into it.
    pub(super) answered: u32,
    /// Requests that are under way at the end of the iteration.
    pub(super) under_way: u32,
}

impl Moderation {
    /// Whether the guest is to tell of its next request. If not, there will be a look.
    pub(super) fn wants_kicks(&mut self, now: Nanos) -> bool {
        let wants = now >= self.spared;
        self.look = match self.look {
            _ if wants => None,
            Some(at) if at > now => Some(at),
            _ => Some(now.plus(WINDOW)),
        };
        wants
    }

    /// The end of an iteration. Says whether the guest is to be told now of the answers that
    /// there are, and takes it that it is.
    pub(super) fn tells(&mut self, now: Nanos, iteration: Iteration) -> bool {
        if self.untold == 0 {
            self.since = now;
        }
        self.untold += iteration.answered;
        self.measure(now, iteration);
        self.look = self.look.filter(|at| *at > now);
        let rests = iteration.under_way == 0;
        let waits = !rests && now < self.spared && now < self.since.plus(WINDOW);
        let tells = self.untold > 0 && !waits;
        if tells {
            self.untold = 0;
        }
        tells
    }

    /// Sees how fast the guest is by what a look at its queue has found.
    fn measure(&mut self, now: Nanos, iteration: Iteration) {
        let apart = now.since(std::mem::replace(&mut self.looked, now));
        let rested = std::mem::replace(&mut self.rested, iteration.under_way == 0);
        if iteration.found < 2 || apart > CLOSE || rested {
            return;
        }
        let each = Nanos(apart.0 / u64::from(iteration.found));
        if each < self.each {
            self.each = Nanos(u64::midpoint(self.each.0, each.0));
            if self.each <= FAST {
                self.spared = self.spared.min(now);
            }
        } else if now >= self.spared {
            self.each = self.each.plus(Nanos((each.0 - self.each.0) / WEIGHT));
            if self.each >= SLOW && iteration.under_way + self.untold >= FEW {
                self.spared = now.plus(SPELL);
            }
        }
    }

    /// The moment at which something is due, if nothing happens before.
    pub(super) fn next(&self) -> Option<Nanos> {
        let tell = (self.untold > 0).then(|| self.since.plus(WINDOW));
        [tell, self.look].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn micros(micros: u64) -> Nanos {
        Nanos::from_micros(micros)
    }

    /// A queue, iteration by iteration.
    #[derive(Default)]
    struct Queue {
        moderation: Moderation,
        now: Nanos,
    }

    impl Queue {
        /// An iteration so much later. Whether the guest is to tell of requests, and whether it
        /// is told of answers.
        fn iterate(&mut self, later: Nanos, iteration: Iteration) -> (bool, bool) {
            self.now = self.now.plus(later);
            let kicks = self.moderation.wants_kicks(self.now);
            (kicks, self.moderation.tells(self.now, iteration))
        }

        /// A guest of which each iteration finds `found` requests, and answers as many.
        fn busy(&mut self, iterations: u32, later: Nanos, found: u32, under_way: u32) {
            for _ in 0..iterations {
                self.iterate(later, Iteration { found, answered: found, under_way });
            }
        }

        /// One that is spared.
        fn slow() -> Queue {
            let mut queue = Queue::default();
            queue.busy(20, micros(160), 2, 6);
            assert!(queue.now < queue.moderation.spared, "it was seen to be slow");
            queue
        }
    }

    /// A guest with these iterations, over and over, tells and is told of everything at once.
    #[track_caller]
    fn never_spared(iterations: &[(Nanos, Iteration)]) {
        let mut queue = Queue::default();
        for _ in 0..10_000 {
            for (later, iteration) in iterations {
                assert_eq!(queue.iterate(*later, *iteration), (true, true));
            }
        }
        assert_eq!(queue.moderation.next(), None);
    }

    const ANSWER: Iteration = Iteration { found: 0, answered: 1, under_way: 5 };
    const NOTHING: Iteration = Iteration { found: 0, answered: 0, under_way: 5 };

    #[test]
    fn a_fast_guest_tells_and_is_told_of_everything_at_once() {
        let iteration = Iteration { found: 4, answered: 3, under_way: 20 };
        never_spared(&[(micros(30), iteration)]);
    }

    #[test]
    fn three_that_wait_for_an_answer_each_are_never_kept_waiting() {
        let iteration = Iteration { found: 2, answered: 1, under_way: 2 };
        never_spared(&[(micros(300), iteration)]);
    }

    #[test]
    fn requests_that_come_one_by_one_or_after_a_rest_do_not_make_a_guest_slow() {
        let one = Iteration { found: 1, answered: 1, under_way: 20 };
        let after_a_rest = Iteration { found: 3, ..one };
        never_spared(&[(micros(150), one), (micros(800), after_a_rest)]);
    }

    #[test]
    fn a_slow_guest_hears_of_answers_when_the_first_has_waited_for_a_window() {
        let mut queue = Queue::slow();
        queue.iterate(WINDOW, NOTHING);
        assert_eq!(queue.iterate(micros(10), ANSWER), (false, false));
        let due = queue.now.plus(WINDOW);
        assert_eq!(queue.iterate(micros(150), ANSWER), (false, false));
        assert!(queue.moderation.next() <= Some(due));
        assert_eq!(queue.iterate(micros(50), NOTHING), (false, true));
        assert_eq!(
            queue.iterate(micros(50), NOTHING),
            (false, false),
            "there are no more"
        );
    }

    #[test]
    fn a_slow_guest_hears_of_the_last_answer_at_once() {
        let mut queue = Queue::slow();
        queue.iterate(WINDOW, NOTHING);
        assert!(!queue.iterate(micros(10), ANSWER).1);
        assert!(queue.iterate(micros(10), Iteration { under_way: 0, ..ANSWER }).1);
    }

    #[test]
    fn a_guest_is_spared_for_a_spell_and_then_seen_anew() {
        let mut queue = Queue::slow();
        let ends = queue.moderation.spared;
        while queue.now < ends {
            assert_eq!(queue.iterate(micros(100), NOTHING).0, queue.now >= ends);
        }
        assert_eq!(queue.iterate(micros(10), ANSWER), (true, true));
        // One more look that finds it slow is enough.
        queue.busy(1, micros(160), 2, 6);
        assert!(!queue.iterate(micros(10), NOTHING).0);
    }

    #[test]
    fn a_guest_that_has_become_fast_is_not_spared_for_long() {
        let mut queue = Queue::slow();
        queue.busy(4, micros(100), 20, 20);
        assert_eq!(queue.iterate(micros(10), ANSWER), (true, true));
    }

    proptest! {
        #[test]
        fn nothing_is_kept_back_or_overlooked_for_more_than_a_window(
            iterations in prop::collection::vec((1..400_u64, 0..8_u32, 0..8_u32, 0..12_u32), 500)
        ) {
            let mut queue = Queue::slow();
            let (mut untold, mut off) = (None, None);
            for (later, found, answered, under_way) in iterations {
                let mut at = queue.now.plus(micros(later));
                let mut iteration = Iteration { found, answered, under_way };
                // What is due comes first.
                if let Some(next) = queue.moderation.next().filter(|next| *next < at) {
                    (at, iteration) = (next, Iteration { under_way, ..Iteration::default() });
                }
                let (kicks, told) = queue.iterate(at.since(queue.now), iteration);
                if told {
                    untold = None;
                } else if iteration.answered > 0 {
                    untold.get_or_insert(at);
                }
                prop_assert!(untold.is_none_or(|since: Nanos| at < since.plus(WINDOW)));
                prop_assert!(untold.is_none() || under_way > 0);
                prop_assert!(off.is_none_or(|looked: Nanos| at <= looked.plus(WINDOW)));
                off = (!kicks).then_some(at);
                prop_assert!(kicks || queue.moderation.next().is_some());
            }
        }
    }
}
