//! A mean that follows what it is of, and begins with the first value.

/// Of the first values all count alike; later each new one has its part.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mean {
    value: f64,
    count: u32,
}

impl Mean {
    /// Takes in a value, with this part (above 0, at most 1) once there are enough.
    pub(crate) fn add(&mut self, value: f64, part: f64) {
        self.count = self.count.saturating_add(1);
        self.value += part.max(1.0 / f64::from(self.count)) * (value - self.value);
    }

    /// Zero as long as there is none.
    pub(crate) fn value(&self) -> f64 {
        self.value
    }

    /// Values so far.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }
}
