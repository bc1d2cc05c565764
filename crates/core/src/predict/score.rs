//! How right predictions were.

/// A prediction and what came of it, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The likely time.
    pub likely: f64,
    /// The range.
    pub range: (f64, f64),
    /// What it took.
    pub took: f64,
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
}

impl Outcome {
    /// By which part of what was predicted it was off: 0.1 took a tenth longer, -0.1 a
    /// tenth less.
    pub fn error(&self) -> f64 {
        self.took / self.likely - 1.0
    }

    /// Whether it took what was said that it might.
    pub fn is_within(&self) -> bool {
        self.range.0 <= self.took && self.took <= self.range.1
    }
}

impl Scores {
    /// Sums up; what was not predicted to take any time is left out.
    pub fn of(outcomes: &[Outcome]) -> Scores {
        let told: Vec<&Outcome> = outcomes.iter().filter(|it| it.likely > 0.0).collect();
        let mut errors: Vec<f64> = told.iter().map(|it| it.error().abs()).collect();
        errors.sort_by(f64::total_cmp);
        let middle = errors.len() / 2;
        let median_error = match errors.len() {
            0 => 0.0,
            odd if odd % 2 == 1 => errors[middle],
            _ => (errors[middle - 1] + errors[middle]) / 2.0,
        };
        let within = told.iter().filter(|it| it.is_within()).count();
        Scores { count: told.len(), median_error, within }
    }
}
