//! Few places that share a disk or a server are looked at at a time: all at once, each would be
//! so slow that none is known in time, and each next try would begin anew.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use sterna_os::lock;

/// So many at a time. Of a rebuilding array 30 reads a second are left: each look then takes
/// nine seconds.
const AT_ONCE: usize = 4;
/// How soon it is seen that nobody wants to know any more.
const GLANCE: Duration = Duration::from_millis(100);

/// The looks that go on, by what their places are on.
#[derive(Default)]
pub(super) struct Turns {
    taken: Mutex<BTreeMap<String, usize>>,
    given_back: Condvar,
}

/// A look that may go on.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    backing: String,
}

impl Turns {
    /// The turn of a look at a place on that backing; none if it does not come within `limit`,
    /// or all is `over` before.
    pub(super) fn take(
        &self,
        backing: String,
        limit: Duration,
        over: &AtomicBool,
    ) -> Option<Turn<'_>> {
        let until = Instant::now() + limit;
        let mut taken = lock(&self.taken);
        while taken.get(&backing).is_some_and(|looks| *looks >= AT_ONCE) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || over.load(Relaxed) {
                return None;
            }
            taken = match self.given_back.wait_timeout(taken, left.min(GLANCE)) {
                Ok((taken, _)) => taken,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        *taken.entry(backing.clone()).or_default() += 1;
        Some(Turn { turns: self, backing })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut taken = lock(&self.turns.taken);
        if let Some(looks) = taken.get_mut(&self.backing) {
            *looks -= 1;
        }
        taken.retain(|_, looks| *looks > 0);
        self.turns.given_back.notify_all();
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
        let take = |backing: &str, limit| turns.take(backing.into(), limit, &over);
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
}
