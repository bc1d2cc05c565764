//! A chart: lines over time, and what they should have stayed within.

use serde::Serialize;

/// The most points that a line has in the report: more than a screen can show.
const POINTS: usize = 2400;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// What it shows.
    pub name: String,
    /// A value for each moment of the chart, or none.
    pub values: Vec<Option<f64>>,
}

/// A target with its tolerance, for a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Strip {
    /// From when on, in seconds from the start.
    pub from_s: f64,
    /// Until when.
    pub until_s: f64,
    /// Its lower edge, in the chart's unit.
    pub low: f64,
    /// Its upper edge.
    pub high: f64,
}

/// Lines over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// What is shown.
    pub title: String,
    /// In which unit.
    pub unit: String,
    /// The moments, in seconds from the start.
    pub at_s: Vec<f64>,
    /// The lines.
    pub lines: Vec<Line>,
    /// The targets.
    pub strips: Vec<Strip>,
}

impl Chart {
    /// The same with no more points than can be seen: each is the mean of a few.
    pub(crate) fn thinned(&self) -> Chart {
        let group = self.at_s.len().div_ceil(POINTS).max(1);
        let last = |moments: &[f64]| moments.last().copied().unwrap_or_default();
        let thin = |line: &Line| Line {
            name: line.name.clone(),
            values: line.values.chunks(group).map(mean).collect(),
        };
        Chart {
            title: self.title.clone(),
            unit: self.unit.clone(),
            at_s: self.at_s.chunks(group).map(last).collect(),
            lines: self.lines.iter().map(thin).collect(),
            strips: self.strips.clone(),
        }
    }
}

fn mean(values: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_thinned_to_means() {
        let count = 3 * POINTS;
        let chart = Chart {
            title: String::new(),
            unit: String::new(),
            at_s: (1..=count).map(|at| at as f64).collect(),
            lines: vec![Line {
                name: "a".into(),
                values: (0..count).map(|at| (at != 1).then_some(at as f64)).collect(),
            }],
            strips: Vec::new(),
        };
        let thin = chart.thinned();
        assert_eq!(thin.at_s.len(), POINTS);
        assert_eq!(thin.at_s[..2], [3.0, 6.0]);
        assert_eq!(thin.lines[0].values[..2], [Some(1.0), Some(4.0)]);
    }
}
