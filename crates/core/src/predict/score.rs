//! How right predictions were.

/// A prediction and what came of it; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictionOutcome {
    /// The likely time.
    pub likely: f64,
    /// The range.
    pub range: (f64, f64),
    /// What it took.
    pub took: f64,
    /// The part of its IO/s that the application was to keep, and the part that it kept;
    /// nothing if it asked for nothing.
    pub kept: Option<(f64, f64)>,
}

/// Predictions that were put to the test.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scores {
    /// How many.
    pub count: usize,
    /// Half of them were off by no more than this part of what was predicted.
    pub median_error: f64,
    /// How many moves ended within the range.
    pub within: usize,
    /// How many had an application.
    pub beside: usize,
    /// Of half of them, what the application kept was off by no more than this part of
    /// what it did before: 0.02 where it kept 0.95, and not 0.97.
    pub kept_error: f64,
}

impl PredictionOutcome {
    /// By which part of what was predicted it was off: 0.1 took a tenth longer, -0.1 a
    /// tenth less.
    pub fn error(&self) -> f64 {
        self.took / self.likely - 1.0
    }

    /// By how much of what it did before the application kept less, or more. Nobody keeps
    /// more than all: an application that asks for more meanwhile has lost nothing.
    pub fn kept_error(&self) -> Option<f64> {
        self.kept.map(|(told, kept)| (kept.min(1.0) - told).abs())
    }

    /// Whether it took what was said that it might.
    pub fn is_within(&self) -> bool {
        self.range.0 <= self.took && self.took <= self.range.1
    }
}

impl Scores {
    /// Sums up; what was not predicted to take any time is left out.
    pub fn of(outcomes: &[PredictionOutcome]) -> Scores {
        let told: Vec<&PredictionOutcome> =
            outcomes.iter().filter(|it| it.likely > 0.0).collect();
        let errors = told.iter().map(|it| it.error().abs()).collect();
        let kept: Vec<f64> = told.iter().filter_map(|it| it.kept_error()).collect();
        Scores {
            count: told.len(),
            within: told.iter().filter(|it| it.is_within()).count(),
            beside: kept.len(),
            kept_error: median(kept),
            median_error: median(errors),
        }
    }
}

/// The middle one; 0 of none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}
