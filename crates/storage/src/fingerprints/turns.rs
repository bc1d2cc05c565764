//! Few places that share a disk or a server are looked at at a time: all at once, each would be
//! so slow that none is known in time, and each next try would begin anew.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use sterna_os::lock;

/// So many at a time. Of a rebuilding array 30 reads a second are left: each look then takes
/// nine seconds.
const AT_ONCE: usize = 4;
/// How soon it is seen that nobody wants to know any more.
const GLANCE: Duration = Duration::from_millis(100);

/// The looks at places, by what these are on.
#[derive(Default)]
pub(super) struct Turns {
    all: Mutex<BTreeMap<String, Looks>>,
    changed: Condvar,
}

/// The looks at places on one backing.
#[derive(Default)]
struct Looks {
    /// So many go on.
    now: usize,
    /// Those that wait, in the order in which they came: whoever comes again and again must not
    /// always come too late.
    waiting: VecDeque<u64>,
    /// The number of the next.
    next: u64,
}

impl Looks {
    fn may_begin(&self, number: u64) -> bool {
        self.now < AT_ONCE && self.waiting.front() == Some(&number)
    }
}

/// A look that may go on.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    backing: Option<String>,
}

impl Turns {
    /// The turn of a look at a place on that backing; none if it does not come within `limit`,
    /// or all is `over` before. A place of which nobody knows what it is on waits for none: others
    /// of which nobody knows that are most likely on something else.
    pub(super) fn take(
        &self,
        backing: Option<String>,
        limit: Duration,
        over: &AtomicBool,
    ) -> Option<Turn<'_>> {
        let begins = backing.as_ref().is_none_or(|on| self.waits(on, limit, over));
        begins.then(|| Turn { turns: self, backing })
    }

    /// Waits for the turn of a look. Says whether it has come.
    fn waits(&self, backing: &str, limit: Duration, over: &AtomicBool) -> bool {
        let until = Instant::now() + limit;
        let mut all = lock(&self.all);
        let looks = all.entry(backing.to_owned()).or_default();
        let number = looks.next;
        looks.next += 1;
        looks.waiting.push_back(number);
        let mut begins = looks.may_begin(number);
        while !begins {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || over.load(Relaxed) {
                break;
            }
            all = match self.changed.wait_timeout(all, left.min(GLANCE)) {
                Ok((all, _)) => all,
                Err(poisoned) => poisoned.into_inner().0,
            };
            begins = all.get(backing).is_some_and(|looks| looks.may_begin(number));
        }
        if let Some(looks) = all.get_mut(backing) {
            looks.waiting.retain(|it| *it != number);
            looks.now += usize::from(begins);
        }
        // The next may be whose turn it is now.
        self.changed.notify_all();
        begins
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Some(backing) = &self.backing else { return };
        let mut all = lock(&self.turns.all);
        if let Some(looks) = all.get_mut(backing) {
            looks.now -= 1;
        }
        all.retain(|_, looks| looks.now > 0 || !looks.waiting.is_empty());
        self.turns.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn looks_at_one_backing_take_turns_and_those_at_another_do_not_wait() {
        let (turns, over) = (Turns::default(), AtomicBool::new(false));
        let take = |backing: &str, limit| turns.take(Some(backing.into()), limit, &over);
        let mut all: Vec<_> = (0..AT_ONCE).map(|_| take("disk sda", LONG)).collect();
        assert!(all.iter().all(Option::is_some));
        assert!(take("disk sda", GLANCE).is_none());
        assert!(take("disk sdb", Duration::ZERO).is_some());
        thread::scope(|scope| {
            let waits = scope.spawn(|| take("disk sda", LONG).is_some());
            drop(all.pop());
            assert!(waits.join().unwrap());
        });
        over.store(true, Relaxed);
        all.push(take("disk sda", LONG));
        assert!(take("disk sda", LONG * 100).is_none(), "nobody wants to know");
    }
    #[test]
    fn looks_at_places_of_which_nobody_knows_what_they_are_on_wait_for_none() {
        let (turns, over) = (Turns::default(), AtomicBool::new(false));
        let take = || turns.take(None, Duration::ZERO, &over);
        let all: Vec<_> = (0..2 * AT_ONCE).map(|_| take()).collect();
        assert!(all.iter().all(Option::is_some));
    }

    #[test]
    fn whoever_waits_for_longer_has_the_turn_first() {
        let (turns, over) = (Turns::default(), AtomicBool::new(false));
        let take = |limit| turns.take(Some("disk sda".into()), limit, &over);
        let mut all: Vec<_> = (0..AT_ONCE).map(|_| take(LONG)).collect();
        let waiting = || lock(&turns.all)["disk sda"].waiting.len();
        let came = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for number in 0..8 {
                let (take, came) = (&take, &came);
                scope.spawn(move || {
                    let turn = take(LONG);
                    lock(came).push(number);
                    drop(turn);
                });
                while waiting() <= number {
                    thread::yield_now();
                }
            }
            // One that gives up keeps nobody waiting.
            assert!(take(Duration::ZERO).is_none());
            assert_eq!(waiting(), 8);
            drop(all.pop());
        });
        assert_eq!(lock(&came)[..], [0, 1, 2, 3, 4, 5, 6, 7]);
        drop(all);
        assert!(lock(&turns.all).is_empty());
    }
}
