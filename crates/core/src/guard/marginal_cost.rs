//! The marginal cost: what a byte per second of copying costs the guest, and how well the
//! guard knows it.
//!
//! Each comparison says `loss = cost * rate`, with noise that is often larger than the
//! loss. A Kalman filter of one number takes from each comparison as much as it is worth:
//! a comparison at a high rate tells more than one at a low rate, and early ones count
//! for more. The cost itself drifts, since loads and devices change; so the filter
//! forgets old comparisons. Two surprises in a row, in the same direction, mean that the
//! cost has jumped, and then the next comparisons count for more again.

/// How much the marginal cost drifts from one comparison to the next, as a part of it.
const DRIFT: f64 = 0.1;

/// The noise of a comparison before any was seen: a few hundred IO/s give that.
const NOISE_FIRST: f64 = 0.04;

/// And at least, whatever it was elsewhere.
const NOISE_LEAST: f64 = 0.01;

/// The part of a new error in the noise.
const NOISE_SMOOTHING: f64 = 0.1;

/// An error of so many times the noise is a surprise.
const SURPRISE: f64 = 2.0;

/// The marginal cost per byte per second, and its error.
#[derive(Debug)]
pub(super) struct MarginalCost {
    value: f64,
    /// The variance of its error.
    variance: f64,
    /// The variance of a comparison.
    noise: f64,
    /// Surprises in a row; above zero where the marginal cost was too low.
    surprises: i32,
}

impl MarginalCost {
    /// Nothing is known but that the marginal cost is probably not above `first`.
    pub(super) fn new(first: f64) -> Self {
        MarginalCost {
            value: 0.0,
            variance: first * first,
            noise: NOISE_FIRST * NOISE_FIRST,
            surprises: 0,
        }
    }

    /// It was that elsewhere, and may be anything from nothing to twice as much here; a
    /// marginal cost below `scale` may be that. A comparison varied by `noise`.
    pub(super) fn guessed(value: f64, noise: f64, scale: f64) -> Self {
        let error = value.max(scale);
        let noise = noise.max(NOISE_LEAST);
        MarginalCost {
            value,
            variance: error * error,
            noise: noise * noise,
            surprises: 0,
        }
    }

    /// Per byte per second; never below zero.
    pub(super) fn value(&self) -> f64 {
        self.value
    }

    /// The error of the marginal cost (one standard deviation).
    pub(super) fn error(&self) -> f64 {
        self.variance.sqrt()
    }

    /// The error of one comparison (one standard deviation).
    pub(super) fn noise(&self) -> f64 {
        self.noise.sqrt()
    }

    /// Something has changed: the marginal cost may be anything from nothing to twice as
    /// much.
    pub(super) fn distrust(&mut self) {
        self.variance += self.value * self.value;
    }

    /// Copying at `rate` was seen to cost `loss`. `scale` is the marginal cost that would
    /// matter now: a marginal cost near zero still drifts by a part of that.
    pub(super) fn learn(&mut self, rate: f64, loss: f64, scale: f64) {
        if rate <= 0.0 {
            return; // What nothing costs says nothing.
        }
        let drift = DRIFT * self.value.max(scale);
        self.variance += drift * drift;
        let expected = self.variance * rate * rate + self.noise;
        let error = loss - self.value * rate;
        if error * error > SURPRISE * SURPRISE * expected {
            let sign = if error > 0.0 { 1 } else { -1 };
            let same = self.surprises.signum() == sign;
            self.surprises = if same { self.surprises + sign } else { sign };
        } else {
            self.surprises = 0;
        }
        if self.surprises.abs() >= 2 {
            self.variance += error * error / (rate * rate).max(1.0);
            self.surprises = 0;
        }
        let expected = self.variance * rate * rate + self.noise;
        let gain = self.variance * rate / expected;
        // Nothing becomes faster by being disturbed.
        self.value = (self.value + gain * error).max(0.0);
        self.variance *= 1.0 - gain * rate;
        // What the marginal cost's own error does not explain is noise.
        let unexplained = (error * error * self.noise / expected).max(1e-8);
        self.noise += NOISE_SMOOTHING * (unexplained - self.noise);
    }
}
