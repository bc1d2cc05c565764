//! When something is recommended, as the API's requests see it.

use std::ops::RangeInclusive;

use sterna_api::{ChangeDrs, DrsSettings, Error, Result};
use sterna_os::lock;
use sterna_state::Entry;

use crate::Planner;

/// Priorities.
const THRESHOLDS: RangeInclusive<u64> = 1..=5;
/// Seconds between rounds. More often than once a second there is nothing to see.
const ROUNDS: RangeInclusive<u64> = 1..=3600;
/// Rounds in a row. What takes an hour of the usual ones is no hold any more.
const HOLDS: RangeInclusive<u64> = 1..=60;
/// Seconds that a VM stays which has moved.
const COOLDOWNS: RangeInclusive<u64> = 0..=86_400;
/// Moves at once.
const MOVES: RangeInclusive<u64> = 1..=100;

impl Planner {
    /// Changes settings: all that is asked, or nothing.
    pub fn change_drs(&self, asked: &ChangeDrs) -> Result<DrsSettings> {
        let wide = |narrow: u32| u64::from(narrow);
        check("threshold", asked.threshold.map(u64::from), THRESHOLDS)?;
        check("span between rounds in seconds", asked.round_s, ROUNDS)?;
        check("number of rounds", asked.hold.map(wide), HOLDS)?;
        check("cooldown in seconds", asked.cooldown_s, COOLDOWNS)?;
        check("number of moves", asked.moves, MOVES)?;
        let registry = self.drs.ledger.change(&mut |registry| {
            let old = registry.settings;
            Ok(vec![Entry::Settings(DrsSettings {
                threshold: asked.threshold.unwrap_or(old.threshold),
                round_s: asked.round_s.unwrap_or(old.round_s),
                hold: asked.hold.unwrap_or(old.hold),
                cooldown_s: asked.cooldown_s.unwrap_or(old.cooldown_s),
                moves: asked.moves.unwrap_or(old.moves),
                automation: asked.automation.unwrap_or(old.automation),
            })])
        })?;
        lock(&self.drs.state).round_s = registry.settings.round_s;
        let now = registry.settings;
        tracing::info!(
            automation = %now.automation,
            threshold = now.threshold,
            round_s = now.round_s,
            hold = now.hold,
            cooldown_s = now.cooldown_s,
            moves = now.moves,
            "DRS settings changed"
        );
        Ok(registry.settings)
    }
}

fn check(what: &str, asked: Option<u64>, range: RangeInclusive<u64>) -> Result<()> {
    match asked.filter(|asked| !range.contains(asked)) {
        None => Ok(()),
        Some(asked) => {
            let (least, most) = range.into_inner();
            let message = format!("{asked} is out of range for the {what}");
            Err(Error::invalid(message).hint(format!("give {least} to {most}")))
        }
    }
}
