//! What a VM was seen to use, from look to look.
//!
//! Processor time is counted by the kernel, so a look every now and then misses nothing:
//! what it has used between two looks is the difference. A VM that was started anew, or
//! moved to another process, has a smaller count: then the next look is the first. What
//! was seen before still counts then, until what is seen from then on has taken its
//! place.

use std::time::Instant;

use sterna_placement::hosts::{Amounts, Demand, Uses};
use sterna_qemu::Usage;

/// What was seen of a VM.
#[derive(Debug, Default)]
pub(super) struct Seen {
    last: Option<(Instant, Usage)>,
    uses: Uses,
    /// Why it could not be asked the last time.
    problem: Option<String>,
    /// Why it could not be sent anywhere then.
    unsendable: Option<String>,
}

impl Seen {
    /// It was looked at.
    pub(super) fn look(&mut self, at: Instant, usage: Usage) {
        self.problem = None;
        if let Some((then, before)) = self.last {
            let span = at.saturating_duration_since(then).as_secs_f64();
            let busy = usage.busy.checked_sub(before.busy).filter(|_| span > 0.0);
            if let Some(busy) = busy {
                let cpu = busy.as_secs_f64() / span;
                // QEMU holds some for itself, beside what the guest has.
                let memory = usage.held.min(usage.memory) as f64;
                self.uses.add(Amounts { cpu, memory });
            }
        }
        self.last = Some((at, usage));
    }

    /// It could not be sent then, if there is a reason.
    pub(super) fn keep(&mut self, unsendable: Option<String>) {
        self.unsendable = unsendable;
    }

    /// Why it could not be sent anywhere when it was looked at last.
    pub(super) fn unsendable(&self) -> Option<&String> {
        self.unsendable.as_ref()
    }

    /// It could not be.
    pub(super) fn fail(&mut self, problem: String) {
        self.problem = Some(problem);
    }

    /// Why nothing can be said of it now.
    pub(super) fn problem(&self) -> Option<String> {
        let few = || "the VM was not checked often enough yet".to_owned();
        self.problem.clone().or_else(|| (!self.uses.are_enough()).then(few))
    }

    /// Its processors and its memory, as they were seen last.
    pub(super) fn size(&self) -> Amounts {
        self.last.map_or(Amounts::default(), |(_, usage)| Amounts {
            cpu: f64::from(usage.processors),
            memory: usage.memory as f64,
        })
    }

    /// What it asks for.
    pub(super) fn demand(&self) -> Demand {
        self.uses.demand()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn usage(busy: u64) -> Usage {
        let busy = Duration::from_secs(busy);
        Usage { processors: 4, memory: 4 << 30, busy, held: 1 << 30 }
    }

    #[test]
    fn demand_is_what_is_used_between_looks() {
        let (mut seen, start) = (Seen::default(), Instant::now());
        let minute = |at: u64| start + Duration::from_secs(at * 60);
        assert!(seen.problem().is_some());
        for (at, busy) in [(0, 100), (1, 160), (2, 280)] {
            seen.look(minute(at), usage(busy));
        }
        assert_eq!(seen.problem(), None);
        let demand = seen.demand();
        // One processor in the first minute, two in the second.
        assert!((demand.mean.cpu - 1.5).abs() < 1e-9, "{demand:?}");
        assert!((demand.deviation.cpu - 0.5).abs() < 1e-9, "{demand:?}");
        assert_eq!((demand.mean.memory, seen.size().cpu), ((1_u64 << 30) as f64, 4.0));
    }

    #[test]
    fn a_vm_in_another_process_is_not_taken_for_one_that_asks_for_nothing() {
        let (mut seen, start) = (Seen::default(), Instant::now());
        for (at, busy) in [(0, 100), (1, 160), (2, 220), (3, 1)] {
            seen.look(start + Duration::from_secs(at * 60), usage(busy));
        }
        assert_eq!((seen.problem(), seen.demand().mean.cpu), (None, 1.0));
        // What it uses there counts from the next look on.
        seen.look(start + Duration::from_secs(4 * 60), usage(121));
        assert_eq!(seen.demand().mean.cpu, 4.0 / 3.0);
        seen.fail("it hangs".into());
        assert_eq!(seen.problem().as_deref(), Some("it hangs"));
    }
}
