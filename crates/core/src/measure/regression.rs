//! Lines of weighted least squares through points with errors in proportion to what is
//! measured, and the part of robustness that goes with them.

/// What a line says is at least this part of the mean: others are divided by it, and
/// no point is to count for all.
const LEAST: f64 = 0.1;

/// A slope must be so many times its standard error to be told from none.
pub(super) const SURE: f64 = 4.0;

/// What a line is fitted to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    /// How much it counts.
    pub(super) weight: f64,
}

/// A line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Regression {
    pub(super) intercept: f64,
    pub(super) slope: f64,
    /// The slope's standard error.
    pub(super) slope_error: f64,
    /// The mean of what it was fitted to, and where that is.
    pub(super) mean: f64,
    pub(super) mean_x: f64,
}

impl Regression {
    /// Through points that should be about `expected` there: their errors are in
    /// proportion to that, and not to what was seen, or else those that are small by
    /// chance would count for more.
    pub(super) fn of(points: &[Point], expected: impl Fn(f64) -> f64) -> Regression {
        let weigh = |point: &Point| point.weight / expected(point.x).powi(2);
        let total: f64 = points.iter().map(weigh).sum();
        let mean_of = |value: &dyn Fn(&Point) -> f64| {
            points.iter().map(|it| value(it) * weigh(it)).sum::<f64>() / total
        };
        let (mean_x, mean) = (mean_of(&|it| it.x), mean_of(&|it| it.y));
        let spread = mean_of(&|it| (it.x - mean_x).powi(2));
        if spread <= 0.0 {
            let (slope, slope_error) = (0.0, f64::INFINITY);
            return Regression { intercept: mean, slope, slope_error, mean, mean_x };
        }
        let slope = mean_of(&|it| (it.x - mean_x) * (it.y - mean)) / spread;
        let intercept = mean - slope * mean_x;
        let off = mean_of(&|it| (it.y - intercept - slope * it.x).powi(2));
        let free = points.len().saturating_sub(2).max(1) as f64;
        let slope_error = (off / spread / free).sqrt();
        Regression { intercept, slope, slope_error, mean, mean_x }
    }

    /// Whether it surely rises.
    pub(super) fn grows(&self) -> bool {
        self.slope > 0.0 && self.slope >= SURE * self.slope_error
    }

    /// What the line says.
    pub(super) fn at(&self, x: f64) -> f64 {
        (self.intercept + self.slope * x).max(self.mean * LEAST)
    }

    /// How far a point is off, as a part of what it should be.
    pub(super) fn off(&self, point: &Point) -> f64 {
        (point.y / self.at(point.x) - 1.0).abs()
    }
}

/// The value that half of the weight does not exceed; nothing of nothing.
pub(super) fn median(values: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let mut values: Vec<(f64, f64)> = values.collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = values.iter().map(|(_, weight)| weight).sum();
    let mut seen = 0.0;
    let half = |(value, weight): &(f64, f64)| {
        seen += weight;
        (seen >= total / 2.0).then_some(*value)
    };
    values.iter().find_map(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_a_line_give_it_back() {
        let point = |x: f64| Point { x, y: 3.0 + 0.5 * x, weight: 1.0 + x };
        let points: Vec<Point> = (0..10).map(|x| point(f64::from(x))).collect();
        let line = Regression::of(&points, |_| 1.0);
        assert!((line.slope - 0.5).abs() < 1e-9 && (line.intercept - 3.0).abs() < 1e-9);
        assert!(line.slope_error < 1e-9 && line.off(&points[3]) < 1e-9);
        let steady = Regression::of(&points[..1], |_| 1.0);
        assert_eq!((steady.slope, steady.mean), (0.0, 3.0));
        assert!(steady.slope_error.is_infinite());
    }

    #[test]
    fn a_median_goes_by_weight() {
        let values = [(9.0, 1.0), (1.0, 5.0), (4.0, 2.0)];
        assert_eq!(median(values.into_iter()), Some(1.0));
        assert_eq!(median([(9.0, 1.0), (1.0, 1.0), (4.0, 1.0)].into_iter()), Some(4.0));
        assert_eq!(median([].into_iter()), None);
    }
}
