//! What probes of datastores' devices have found.
//!
//! The load is made by a client, as any other; it tells what it saw under which load, as it
//! alone knows that the load was its own doing. What follows of that is said by `core`.

use sterna_api::{Device, Error, ProbeFound, ProbeStep, Result};
use sterna_core::Nanos;
use sterna_core::measure::probe::{Step, fit};

use crate::Storage;

/// More steps than a probe makes.
const STEPS_MOST: usize = 64;

/// More requests under way than an application makes at a time.
const OUTSTANDING_MOST: u32 = 1024;

/// Higher rates are no disk's.
const RATE_MOST: f64 = 1e9;

impl Storage {
    /// Learns what a probe has found; says what is known of the device now.
    pub fn probed(&self, datastore: &str, found: &ProbeFound) -> Result<Device> {
        self.handle(datastore)?;
        let count = found.steps.len();
        if count > STEPS_MOST {
            let message = format!("{count} steps are more than a probe may have");
            return Err(
                Error::invalid(message).hint(format!("give at most {STEPS_MOST} steps"))
            );
        }
        let steps: Result<Vec<Step>> = found.steps.iter().map(step).collect();
        let known = self.samples.probed(datastore, fit(&steps?));
        tracing::info!(datastore, steps = count, ?known, "datastore probed");
        Ok(known)
    }
}

fn step(one: &ProbeStep) -> Result<Step> {
    let is_rate = |rate: f64| (0.0..=RATE_MOST).contains(&rate);
    let fits = (1..=OUTSTANDING_MOST).contains(&one.outstanding)
        && is_rate(one.iops)
        && is_rate(one.others_iops)
        && one.response_us.is_finite()
        && one.response_us > 0.0;
    if !fits {
        let message = format!("no device answers like this: {one:?}");
        return Err(Error::invalid(message).hint(
            "a step has 1 to 1024 requests under way, rates, and a response time",
        ));
    }
    let response = Nanos((one.response_us * 1e3) as u64);
    let ProbeStep { outstanding, iops, others_iops, .. } = *one;
    Ok(Step { outstanding, iops, response, others: others_iops })
}
