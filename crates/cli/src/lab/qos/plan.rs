//! The phases of the experiment, and how long each is.
//!
//! Phases that show an effect which comes at once are short; the three in which a
//! target is held get the time that is left. Five minutes of each is what it takes to
//! say that nothing oscillates; the quick plan only shows that everything works.

/// How long the experiment may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// As short as it can be.
    Quick,
    /// So many minutes.
    Minutes(u32),
}

/// What is done in a phase, from its beginning on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The database works alone.
    Alone,
    /// Backup and load generator work beside it.
    Contention,
}

impl Step {
    /// The step in words.
    pub(super) fn words(self) -> String {
        match self {
            Step::Alone => "the database alone".into(),
            Step::Contention => "backup and load generator begin".into(),
        }
    }
}

/// A step, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Phase {
    /// What is done.
    pub(super) step: Step,
    /// For so many seconds.
    pub(super) seconds: f64,
}

/// The phases in their order.
pub(super) fn plan(length: Length) -> Vec<Phase> {
    let short = match length {
        Length::Quick => 5.0,
        Length::Minutes(_) => 20.0,
    };
    [Step::Alone, Step::Contention].map(|step| Phase { step, seconds: short }).into()
}
