//! What was known of a move when it began.

use serde::{Deserialize, Serialize};
use sterna_api::Predicted;
use sterna_core::Nanos;
use sterna_core::predict::Work;

/// What was known of a move when it began, as the state keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// The application's requests under way, on average.
    pub outstanding: f64,
    /// What one took, on average, in microseconds.
    pub response_us: f64,
    /// The part of the time in which it asked for something now and again.
    #[serde(default)]
    pub there: f64,
    /// The part of its requests' time that was writes'.
    #[serde(default)]
    pub writes: f64,
    /// Its guard began with what an earlier one had found out.
    #[serde(default)]
    pub experienced: bool,
    /// What the move was predicted to take; absent where nobody could know.
    pub predicted: Option<Predicted>,
}

impl Forecast {
    /// What is known of an application that does this, before anything is predicted.
    pub fn of(work: &Work) -> Forecast {
        Forecast {
            outstanding: work.outstanding,
            response_us: work.response.as_secs_f64() * 1e6,
            there: work.there,
            writes: work.writes,
            experienced: false,
            predicted: None,
        }
    }

    /// What the application did when the move began.
    pub fn work(&self) -> Work {
        let response = Nanos((self.response_us.max(0.0) * 1e3) as u64);
        Work {
            outstanding: self.outstanding,
            response,
            there: self.there,
            writes: self.writes,
        }
    }
}
