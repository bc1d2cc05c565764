//! What a VM was seen to use, over the last rounds: what it is taken to ask for.
//!
//! A round sees what was used since the one before. One that cannot see a VM adds
//! nothing, so what was seen before still counts: a VM that has just come to a host is
//! not taken for one that asks for nothing.

use std::collections::VecDeque;

use super::amounts::{Amounts, Resource};
use super::inventory::Demand;

/// Rounds that count: so that a load which is over is forgotten in ten of them.
const ROUNDS: usize = 10;

/// Rounds of which something can be said.
const ROUNDS_LEAST: usize = 2;

/// What was seen of a VM.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Uses {
    rounds: VecDeque<Amounts>,
}

impl Uses {
    /// It has used so much in a round: of processors on average, of memory what it holds.
    pub fn add(&mut self, used: Amounts) {
        self.rounds.push_back(used);
        if self.rounds.len() > ROUNDS {
            self.rounds.pop_front();
        }
    }

    /// It was started anew: what was seen before says nothing.
    pub fn forget(&mut self) {
        self.rounds.clear();
    }

    /// Whether something can be said of it.
    pub fn are_enough(&self) -> bool {
        self.rounds.len() >= ROUNDS_LEAST
    }

    /// What it asks for, by what it uses. A guest has no way to say which of the memory
    /// that it holds it also uses, so all of that counts as used.
    pub fn demand(&self) -> Demand {
        let count = self.rounds.len().max(1) as f64;
        let mean = Amounts::of(|it| {
            self.rounds.iter().map(|round| round.get(it)).sum::<f64>() / count
        });
        let variance = |resource: Resource| {
            let apart = |round: &Amounts| round.get(resource) - mean.get(resource);
            self.rounds.iter().map(|round| apart(round) * apart(round)).sum::<f64>()
                / count
        };
        let deviation = Amounts::of(|it| variance(it).sqrt());
        Demand { mean, deviation, active: 1.0 }
    }
}
