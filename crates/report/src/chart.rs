//! A chart: lines over time, and what they should have stayed within.

use serde::Serialize;

/// The most points that a line has in the report: more than a screen can show.
const POINTS: usize = 2400;
/// The unit of response times.
const RESPONSE: &str = "ms";
/// A line whose median is this many times below the highest point of the chart lies within
/// a few pixels of the axis.
const HIDDEN: f64 = 30.0;

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
    /// Whether the axis is logarithmic: for response times of which one line would hide
    /// another.
    pub(crate) fn is_logarithmic(&self) -> bool {
        let highest = self.values().fold(0.0, f64::max);
        let is_hidden = |line: &Line| {
            median(line).is_some_and(|it| it > 0.0 && it * HIDDEN < highest)
        };
        self.unit == RESPONSE && self.lines.iter().any(is_hidden)
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.lines.iter().flat_map(|line| line.values.iter().copied().flatten())
    }

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

fn median(line: &Line) -> Option<f64> {
    let mut known: Vec<f64> = line.values.iter().copied().flatten().collect();
    known.sort_by(f64::total_cmp);
    known.get(known.len() / 2).copied()
}

fn mean(values: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(unit: &str, lines: &[Vec<Option<f64>>]) -> Chart {
        let count = lines.iter().map(Vec::len).max().unwrap_or(0);
        let line = |values: &Vec<_>| Line { name: "a".into(), values: values.clone() };
        Chart {
            title: String::new(),
            unit: unit.into(),
            at_s: (1..=count).map(|at| at as f64).collect(),
            lines: lines.iter().map(line).collect(),
            strips: Vec::new(),
        }
    }

    #[test]
    fn a_long_line_is_thinned_to_means() {
        let count = 3 * POINTS;
        let values = (0..count).map(|at| (at != 1).then_some(at as f64)).collect();
        let thin = chart("", &[values]).thinned();
        assert_eq!(thin.at_s.len(), POINTS);
        assert_eq!(thin.at_s[..2], [3.0, 6.0]);
        assert_eq!(thin.lines[0].values[..2], [Some(1.0), Some(4.0)]);
    }

    #[test]
    fn response_times_of_which_one_line_hides_another_have_a_logarithmic_axis() {
        let of = |value: f64| vec![Some(value), None, Some(value)];
        assert!(chart("ms", &[of(0.2), of(40.0)]).is_logarithmic());
        // A peak hides its own line.
        assert!(chart("ms", &[vec![Some(1.0), Some(1.0), Some(90.0)]]).is_logarithmic());
        assert!(!chart("ms", &[of(5.0), of(40.0)]).is_logarithmic());
        assert!(!chart("ms", &[of(0.0), of(40.0)]).is_logarithmic(), "nothing is hidden");
        assert!(!chart("MB/s", &[of(0.2), of(40.0)]).is_logarithmic());
        assert!(!chart("ms", &[]).is_logarithmic());
    }
}
