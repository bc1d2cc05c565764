//! Predictions: what a move will take, before it begins.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Figures, Guard};

/// Asks what a move would take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Predict {
    /// The disk to move.
    pub disk: String,
    /// The datastore to move it to.
    pub to: String,
    /// The copier's limit in bytes per second.
    #[serde(default)]
    pub rate: Option<u64>,
    /// Compare both sides before the switch-over: yes, if left out.
    #[serde(default = "crate::yes")]
    pub verify: bool,
    /// The least part of its IO/s that the application keeps, above 0 and at most 1.
    #[serde(default)]
    pub keep: Option<f64>,
    /// The 99th percentile of the response time that it stays below, in microseconds.
    #[serde(default)]
    pub p99_us: Option<u64>,
    /// Copy only while the application is idle.
    #[serde(default)]
    pub idle_only: bool,
    /// When it would begin, as people say it: a time of day, a date and a time, or a span
    /// from now. Now if absent.
    #[serde(default)]
    pub at: Option<String>,
}

/// What holds a copy back most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weakest {
    /// Reading the one datastore and writing the other.
    Storage,
    /// The limit that was asked for.
    Limit,
    /// What was promised to the application.
    Promise,
    /// The application, which shares the source with the copy.
    Application,
}

/// What the speed of a copy was learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LearnedFrom {
    /// Moves from the one datastore to the other.
    Moves,
    /// Moves from the one to elsewhere, and from elsewhere to the other.
    Ends,
    /// Moves that have one of the two in common.
    OneEnd,
    /// No moves: what the datastores' devices have shown of reading and writing.
    Devices,
}

/// What a move will take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Predicted {
    /// Bytes to copy.
    pub bytes: u64,
    /// Seconds that it most likely takes.
    pub likely_s: f64,
    /// One of twenty moves takes less.
    pub least_s: f64,
    /// One of twenty moves takes more.
    pub most_s: f64,
    /// What the copy does, bytes per second.
    pub rate: f64,
    /// The part that this is of what it would do with nobody there; above 0, at most 1.
    pub share: f64,
    /// The part of its IO/s that the application keeps meanwhile; above 0, at most 1.
    /// Absent of moves that began before this was predicted.
    #[serde(default)]
    pub kept: Option<f64>,
    /// What holds it back most.
    pub weakest: Weakest,
    /// What the copy's speed was learned from.
    pub learned_from: LearnedFrom,
    /// From how many moves, if from moves between the two.
    pub moves: Option<u64>,
    /// Whether that is too little to say more than a guess: then the range is as wide as
    /// guesses are off.
    #[serde(default)]
    pub guess: bool,
}

/// The hour of the week to come in which a move is over soonest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BestHour {
    /// When it begins (seconds since 1970).
    pub at: u64,
    /// Seconds that the move most likely takes then.
    pub likely_s: f64,
}

/// A move that has not begun, and what it will take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Prediction {
    /// The disk's name.
    pub disk: String,
    /// The disk's size.
    pub size: u64,
    /// The datastore that it would leave.
    pub from: String,
    /// The datastore that it would go to.
    pub to: String,
    /// What would hold for the application.
    pub guard: Guard,
    /// What the application does now; absent if nothing is known yet.
    pub application: Option<Figures>,
    /// Its requests under way, on average.
    pub outstanding: f64,
    /// When it would begin (seconds since 1970), if that was asked for: what the
    /// application does then is taken from the last week.
    pub at: Option<u64>,
    /// What the move will take.
    pub predicted: Predicted,
    /// When it would be over soonest; absent if no hour of the last week was seen.
    pub best: Option<BestHour>,
    /// What this copy may do of what all copies together are held to now, in bytes of the disk
    /// per second; absent if that is no limit to it, or if it begins later.
    #[serde(default)]
    pub copies_held_to: Option<u64>,
    /// What the datastores were asked for this and have not said in time, in words.
    #[serde(default)]
    pub unasked: Vec<String>,
}

/// How right predictions were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PredictionScores {
    /// Moves that were predicted and went on as they were asked for; the latest 200.
    pub moves: u64,
    /// Half of them were off by no more than this part of what was predicted; absent
    /// without any.
    pub median_error: Option<f64>,
    /// How many took what was said that they might.
    pub within: u64,
    /// How many had an application beside them.
    #[serde(default)]
    pub beside: u64,
    /// Of half of those, what the application kept was off by no more than this part of
    /// its IO/s; absent without any.
    #[serde(default)]
    pub kept_error: Option<f64>,
}
