//! What the study published, to check the model by. Nothing was fitted to it.

use super::medium::Medium;
use super::study::{Study, Way};

/// The first seconds of a wake, as a curve that begins at a value shows them: the study's figures
/// have no finer scale, as far as is known.
const FIRST: usize = 10;

/// A published figure: the part of the orders that a guest kept that woke page by page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// On which medium.
    pub medium: Medium,
    /// The part.
    pub kept: f64,
    /// Until which second of a wake it is told of.
    pub until: usize,
}

impl Published {
    /// All of them: flash about 88 % throughout; the disks rise slowly from what is here.
    pub fn all(seconds: usize) -> [Published; 3] {
        let of = |medium, kept, until: usize| Published {
            medium,
            kept,
            until: until.min(seconds),
        };
        [
            of(Medium::Flash, 0.88, seconds),
            of(Medium::Fc, 0.07, FIRST),
            of(Medium::Sata, 0.06, FIRST),
        ]
    }

    /// What the model says of it.
    pub fn ours(&self, study: &Study) -> Option<f64> {
        let course = study.course(self.medium, Way::PageByPage)?;
        Some(study.kept(course, 0, self.until))
    }
}
