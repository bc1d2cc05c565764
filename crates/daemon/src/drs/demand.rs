//! What a machine was seen to use, over the last rounds.
//!
//! Processor time is counted by the kernel, so a look every now and then misses nothing:
//! what it has used between two looks is the difference. A machine that was started anew,
//! or moved to another process, has a smaller count: then the next look is the first.

use std::collections::VecDeque;
use std::time::Instant;

use sterna_core::place::hosts::{Amounts, Demand, Resource};
use sterna_qemu::Usage;

/// Rounds that count: so that a load which is over is forgotten in ten of them.
const ROUNDS: usize = 10;

/// Spans of which something can be said.
const SPANS_LEAST: usize = 2;

/// What was seen of a machine.
#[derive(Debug, Default)]
pub(super) struct Seen {
    last: Option<(Instant, Usage)>,
    spans: VecDeque<Amounts>,
    /// Why it could not be asked the last time.
    problem: Option<String>,
}

impl Seen {
    /// It was looked at.
    pub(super) fn look(&mut self, at: Instant, usage: Usage) {
        self.problem = None;
        if let Some((then, before)) = self.last {
            let span = at.saturating_duration_since(then).as_secs_f64();
            match usage.busy.checked_sub(before.busy).filter(|_| span > 0.0) {
                Some(busy) => {
                    let cpu = busy.as_secs_f64() / span;
                    // QEMU holds some for itself, beside what the guest has.
                    let memory = usage.held.min(usage.memory) as f64;
                    self.spans.push_back(Amounts { cpu, memory });
                }
                None => self.spans.clear(),
            }
            if self.spans.len() > ROUNDS {
                self.spans.pop_front();
            }
        }
        self.last = Some((at, usage));
    }

    /// It could not be.
    pub(super) fn fail(&mut self, problem: String) {
        self.problem = Some(problem);
    }

    /// Why nothing can be said of it now.
    pub(super) fn problem(&self) -> Option<String> {
        let few = || "it was not looked at often enough yet".to_owned();
        self.problem.clone().or_else(|| (self.spans.len() < SPANS_LEAST).then(few))
    }

    /// Its processors and its memory, as they were seen last.
    pub(super) fn size(&self) -> Amounts {
        self.last.map_or(Amounts::default(), |(_, usage)| Amounts {
            cpu: f64::from(usage.processors),
            memory: usage.memory as f64,
        })
    }

    /// What it asks for, by what it uses. A guest has no way to say which of the memory
    /// that it holds it also uses, so all of that counts as used.
    pub(super) fn demand(&self) -> Demand {
        let count = self.spans.len().max(1) as f64;
        let mean = Amounts::of(|it| {
            self.spans.iter().map(|span| span.get(it)).sum::<f64>() / count
        });
        let variance = |resource: Resource| {
            let apart = |span: &Amounts| span.get(resource) - mean.get(resource);
            self.spans.iter().map(|span| apart(span) * apart(span)).sum::<f64>() / count
        };
        let deviation = Amounts::of(|it| variance(it).sqrt());
        Demand { mean, deviation, active: 1.0 }
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
    fn a_machine_that_was_started_anew_is_seen_anew() {
        let (mut seen, start) = (Seen::default(), Instant::now());
        for (at, busy) in [(0, 100), (1, 160), (2, 220), (3, 1)] {
            seen.look(start + Duration::from_secs(at * 60), usage(busy));
        }
        assert!(seen.problem().is_some(), "{seen:?}");
        seen.fail("it hangs".into());
        assert_eq!(seen.problem().as_deref(), Some("it hangs"));
    }
}
