//! What Storage DRS is told to do: checked, durable, and in force from the next second on.

use sterna_api::{ChangeStorageDrs, Error, Result, StorageDrsBounds, StorageDrsSettings};
use sterna_core::Nanos;
use sterna_core::qos::policy::RESPONSE_MIN;
use sterna_moves::wanted;
use sterna_os::lock;
use sterna_placement::storage::Bounds;
use sterna_telemetry::samples::window;

use crate::Planner;

/// The shortest span that loads are taken from, in seconds: means of less are chance.
const WINDOW_LEAST_S: f64 = 10.0;

/// The longest: so much is kept.
const WINDOW_MOST_S: f64 = 86_400.0;

/// It acts no more often, in seconds: a look must have something new in it.
const EVERY_LEAST_S: f64 = 10.0;

/// And no less often: who wants it to do nothing says so.
const EVERY_MOST_S: f64 = 86_400.0;

/// The most moves at once. Who needs more empties a datastore.
const MOVES_MOST: u64 = 100;

impl Planner {
    /// Changes what it is told to do.
    pub fn change_storage_drs(
        &self,
        change: &ChangeStorageDrs,
    ) -> Result<StorageDrsSettings> {
        let _turn = lock(&self.balancer.turn);
        let now = self.balancer.settings();
        let next = StorageDrsSettings {
            automation: change.automation.unwrap_or(now.automation),
            space: change.space.unwrap_or(now.space),
            latency_us: change.latency_us.unwrap_or(now.latency_us),
            window_s: change.window_s.unwrap_or(now.window_s),
            every_s: change.every_s.unwrap_or(now.every_s),
            guard: change.guard.clone().unwrap_or(now.guard),
        };
        check_bounds(&super::asked(&next))?;
        check_every(next.every_s)?;
        wanted(&next.guard)?;
        if next.guard.finish_by.is_some() {
            let message = "Storage DRS does not know when its next move begins, so a \
                           move cannot end by a given time";
            let hint = "give a promise to the application (--keep 97%), or hours in \
                        which moves copy";
            return Err(Error::invalid(message).hint(hint));
        }
        self.storage.store.set_storage_drs(&next)?;
        lock(&self.balancer.settings).clone_from(&next);
        // What was seen was judged by other bounds.
        *lock(&self.balancer.cycle) = None;
        tracing::info!(automation = %next.automation, "Storage DRS settings changed");
        Ok(next)
    }
}

/// Bounds in `core`'s terms.
pub(super) fn bounds_of(asked: &StorageDrsBounds) -> Bounds {
    Bounds {
        space: asked.space,
        latency: Nanos(asked.latency_us.saturating_mul(1000)),
        moves: asked.moves as usize,
        ..Bounds::default()
    }
}

/// Refuses bounds that mean nothing.
pub(super) fn check_bounds(asked: &StorageDrsBounds) -> Result<()> {
    let wrong = |what: String, hint: String| Err(Error::invalid(what).hint(hint));
    window(asked.window_s, WINDOW_LEAST_S, WINDOW_MOST_S)?;
    if !(asked.space > 0.0 && asked.space <= 1.0) {
        let hint = "give a part above 0 and at most 1: 0.8 is 80 %".to_owned();
        return wrong(
            format!("{:?} is not a part of a datastore's space", asked.space),
            hint,
        );
    }
    let latency = Nanos::from_micros(asked.latency_us);
    if latency < RESPONSE_MIN {
        let hint = "15000 is 15 ms".to_owned();
        let what = format!(
            "the response time of {latency} is too short: the minimum is {RESPONSE_MIN}"
        );
        return wrong(what, hint);
    }
    if !(1..=MOVES_MOST).contains(&asked.moves) {
        let hint = format!("give 1 to {MOVES_MOST} moves");
        return wrong(format!("{} moves cannot be recommended", asked.moves), hint);
    }
    Ok(())
}

fn check_every(every_s: f64) -> Result<()> {
    if (EVERY_LEAST_S..=EVERY_MOST_S).contains(&every_s) {
        return Ok(());
    }
    let message = format!("Storage DRS cannot act every {every_s:?} s");
    let hint = format!("give {EVERY_LEAST_S} to {EVERY_MOST_S} s");
    Err(Error::invalid(message).hint(hint))
}
