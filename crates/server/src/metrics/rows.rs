//! Families of metrics, each from rows of labels and values.

use std::fmt;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use sterna_core::Nanos;
use sterna_core::measure::{Steps, Timed};

/// No labels.
pub(super) const NONE: [(&str, &str); 0] = [];

/// A family of counters; `_total` is added to its name.
pub(super) fn counters<L: EncodeLabelSet, V: EncodeCounterValue>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    rows: impl IntoIterator<Item = (L, V)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    rows.into_iter().try_for_each(|(labels, value)| {
        let mut one = family.encode_family(&labels)?;
        one.encode_counter::<NoLabelSet, V, u64>(&value, None)
    })
}

/// A family of values that rise and fall.
pub(super) fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    rows: impl IntoIterator<Item = (L, V)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    rows.into_iter().try_for_each(|(labels, value)| {
        family.encode_family(&labels)?.encode_gauge(&value)
    })
}

/// A family of times in steps.
pub(super) fn histograms<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    rows: impl IntoIterator<Item = (L, Timed)>,
) -> fmt::Result {
    let mut family =
        encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    rows.into_iter().try_for_each(|(labels, Timed { steps, sum })| {
        let mut buckets = [(0.0, 0); Steps::BOUNDS.len()];
        for (bucket, (bound, count)) in buckets.iter_mut().zip(steps.iter()) {
            *bucket = (seconds(bound), count);
        }
        let mut one = family.encode_family(&labels)?;
        one.encode_histogram::<NoLabelSet>(seconds(sum), steps.len(), &buckets, None)
    })
}

/// A family of sums and counts of times, which the library does not have.
pub(super) fn summaries<'d>(
    text: &mut String,
    (name, help): (&str, &str),
    rows: impl IntoIterator<Item = ([(&'static str, &'d str); 2], (Nanos, u64))>,
) -> fmt::Result {
    use fmt::Write;
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} summary")?;
    for ([one, other], (sum, count)) in rows {
        let (one, other) = (Label(one), Label(other));
        writeln!(text, "{name}_sum{{{one},{other}}} {}", seconds(sum))?;
        writeln!(text, "{name}_count{{{one},{other}}} {count}")?;
    }
    Ok(())
}

/// A label as the text format has it.
struct Label<'d>((&'static str, &'d str));

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value) = self.0;
        write!(f, "{name}=\"")?;
        let mut rest = value;
        while let Some(at) = rest.find(['\\', '"', '\n']) {
            f.write_str(&rest[..at])?;
            f.write_str(match rest.as_bytes()[at] {
                b'\n' => "\\n",
                b'"' => "\\\"",
                _ => "\\\\",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)?;
        f.write_str("\"")
    }
}

/// A span of time in the unit of all metrics.
pub(super) fn seconds(span: Nanos) -> f64 {
    span.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_a_sum_and_a_count_of_each_row() {
        let mut text = String::new();
        let row = ([("disk", "db"), ("op", "read")], (Nanos::from_millis(1500), 3));
        summaries(&mut text, ("sterna_waits_seconds", "Waits."), [row]).unwrap();
        let said = "# HELP sterna_waits_seconds Waits.\n\
                    # TYPE sterna_waits_seconds summary\n\
                    sterna_waits_seconds_sum{disk=\"db\",op=\"read\"} 1.5\n\
                    sterna_waits_seconds_count{disk=\"db\",op=\"read\"} 3\n";
        assert_eq!(text, said);
    }

    #[test]
    fn what_would_end_a_label_does_not() {
        let label = Label(("disk", "a\"b\\c\nd"));
        assert_eq!(label.to_string(), r#"disk="a\"b\\c\nd""#);
    }
}
