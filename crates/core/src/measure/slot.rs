//! A window of a timeline, when only scalars are left of it: 64 bytes.
//!
//! Means and quantiles are kept as floats of 24 bits, which is far more than was
//! measured. The counts of reads and writes are exact; those of flushes and of requests
//! under way are right to a two-hundredth, and exact up to 256.

use super::{Spread, Window};
use crate::Nanos;

/// The quantiles that are kept, besides the longest.
const QUANTILES: [f64; 3] = [0.50, 0.95, 0.99];

/// A window in scalars. Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    start: u64,
    span_us: u32,
    /// The upper half of a float: what is under way on all disks of a datastore has no
    /// bound that would fit.
    in_flight: u16,
    /// The same.
    flushes: u16,
    reads: u32,
    writes: u32,
    /// Bytes of one, on average.
    read_size: f32,
    write_size: f32,
    /// Response times, on average.
    read: f32,
    write: f32,
    /// Of reads and writes together, on average.
    queue: f32,
    service: f32,
    /// Of reads and writes together.
    quantiles: [f32; QUANTILES.len()],
    max: f32,
}

impl Slot {
    /// What is kept of a window from `start` to `end`.
    pub(super) fn new(start: Nanos, end: Nanos, window: &Window) -> Slot {
        let (read, write, total) = (&window.read, &window.write, window.total());
        let per = |sum: u64, operations: u64| sum as f32 / operations.max(1) as f32;
        let span_us = end.since(start).0 / 1_000;
        Slot {
            start: start.0,
            span_us: narrow(span_us),
            in_flight: short(window.in_flight.into()),
            flushes: short(window.flush.operations),
            reads: narrow(read.operations),
            writes: narrow(write.operations),
            read_size: per(read.bytes, read.operations),
            write_size: per(write.bytes, write.operations),
            read: per(read.response.0, read.operations),
            write: per(write.response.0, write.operations),
            queue: per(total.queue.0, total.operations),
            service: per(total.service.0, total.operations),
            quantiles: quantiles(&window.response),
            max: window.response.max().0 as f32,
        }
    }

    pub(super) fn start(&self) -> Nanos {
        Nanos(self.start)
    }

    pub(super) fn end(&self) -> Nanos {
        Nanos(self.start + u64::from(self.span_us) * 1_000)
    }

    /// Its 50th and its 99th percentile, and its longest response time; nothing of nothing.
    pub(super) fn spread(&self) -> Option<[Nanos; 3]> {
        let [p50, _, p99] = self.quantiles;
        let is_busy = self.operations() > 0;
        is_busy.then(|| [p50, p99, self.max].map(|span| Nanos(span as u64)))
    }

    fn operations(&self) -> u64 {
        u64::from(self.reads) + u64::from(self.writes)
    }

    /// The part of the requests that took no longer than `value`. Between what is
    /// known, times are taken to grow by ratios, as they do in practice; and the short
    /// ones to be as much below the middle as the long ones are above.
    fn part_within(&self, value: f64) -> f64 {
        let [p50, p95, _] = self.quantiles.map(f64::from);
        let (mut below, mut part) = (p50 * p50 / p95, 1.0 - QUANTILES[1]);
        if value < below {
            return part * value / below;
        }
        let known = self.quantiles.iter().zip(QUANTILES);
        for (at, reached) in known.chain([(&self.max, 1.0)]) {
            let at = f64::from(*at);
            if value < at {
                let way = (value / below).ln() / (at / below).ln();
                return part + way * (reached - part);
            }
            (below, part) = (at, reached);
        }
        1.0
    }
}

/// The upper half of a count as a float, rounded up half of what is cut off.
fn short(count: u64) -> u16 {
    let bits = (count as f32).to_bits();
    (bits.saturating_add(1 << 15) >> 16) as u16
}

/// A count of which the upper half was kept.
fn long(short: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(short) << 16))
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn quantiles(spread: &Spread) -> [f32; QUANTILES.len()] {
    QUANTILES.map(|part| spread.quantile(part).map_or(0.0, |span| span.0 as f32))
}

/// Reads, or writes, over several windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// How many.
    pub operations: u64,
    /// Their bytes.
    pub bytes: f64,
    /// The mean of their response times; nothing of nothing.
    pub response: Option<Nanos>,
}

/// What was done over several windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// From the first window's start to the end.
    pub span: Nanos,
    /// Reads that were answered.
    pub read: Side,
    /// Writes that were answered.
    pub write: Side,
    /// The mean time for which requests waited for admission.
    pub queue: Option<Nanos>,
    /// The mean time from admission to their answer.
    pub service: Option<Nanos>,
    /// Half of the response times are within this. (This one and the next two are
    /// estimates: see [`Timeline::since`](super::Timeline::since).)
    pub p50: Option<Nanos>,
    /// 95 of 100 are within this.
    pub p95: Option<Nanos>,
    /// 99 of 100 are within this.
    pub p99: Option<Nanos>,
    /// The longest response time.
    pub max: Option<Nanos>,
    /// Flushes that were answered, to a two-hundredth.
    pub flushes: f64,
    /// Requests under way at the end of the last window that had something in it, to a
    /// two-hundredth.
    pub in_flight: u32,
    /// The part of the time that is in windows with something in them, from 0 to 1.
    pub there: f64,
}

impl Summary {
    /// Sums up windows over a span.
    pub(super) fn of(span: Nanos, slots: &[Slot]) -> Summary {
        let operations: u64 = slots.iter().map(Slot::operations).sum();
        let mean = |value: fn(&Slot) -> f32, count: fn(&Slot) -> u64| {
            let total: u64 = slots.iter().map(count).sum();
            let one = |slot| f64::from(value(slot)) * count(slot) as f64;
            let sum: f64 = slots.iter().map(one).sum();
            (total > 0).then(|| Nanos((sum / total as f64) as u64))
        };
        let side = |count: fn(&Slot) -> u64, size: fn(&Slot) -> f32, time| {
            let one = |slot| f64::from(size(slot)) * count(slot) as f64;
            Side {
                operations: slots.iter().map(count).sum(),
                // The sum of no floats is -0.0, which is no number of bytes.
                bytes: slots.iter().map(one).fold(0.0, |sum, bytes| sum + bytes),
                response: mean(time, count),
            }
        };
        let [p50, p95, p99] = QUANTILES.map(|part| quantile(slots, part));
        let max = slots.iter().map(|slot| slot.max).fold(0.0, f32::max);
        Summary {
            span,
            read: side(|it| it.reads.into(), |it| it.read_size, |it| it.read),
            write: side(|it| it.writes.into(), |it| it.write_size, |it| it.write),
            queue: mean(|it| it.queue, Slot::operations),
            service: mean(|it| it.service, Slot::operations),
            p50,
            p95,
            p99,
            max: (operations > 0).then_some(Nanos(max as u64)),
            // The sum of no floats is -0.0.
            flushes: slots.iter().fold(0.0, |sum, slot| sum + long(slot.flushes)),
            in_flight: slots.last().map_or(0, |slot| long(slot.in_flight) as u32),
            there: part_there(span, slots),
        }
    }

    /// This and what was done next, over a span that has both. Without quantiles: those of
    /// two cannot be had from those of each.
    pub(super) fn followed_by(&self, next: &Summary, span: Nanos) -> Summary {
        let joined = |one: &Side, other: &Side| Side {
            operations: one.operations + other.operations,
            bytes: one.bytes + other.bytes,
            response: weighted(
                (one.response, one.operations),
                (other.response, other.operations),
            ),
        };
        let count = |it: &Summary| it.read.operations + it.write.operations;
        let both = |of: fn(&Summary) -> Option<Nanos>| {
            weighted((of(self), count(self)), (of(next), count(next)))
        };
        let busy =
            self.there * self.span.as_secs_f64() + next.there * next.span.as_secs_f64();
        Summary {
            span,
            read: joined(&self.read, &next.read),
            write: joined(&self.write, &next.write),
            queue: both(|it| it.queue),
            service: both(|it| it.service),
            flushes: self.flushes + next.flushes,
            in_flight: next.in_flight,
            there: if span.0 == 0 { 0.0 } else { (busy / span.as_secs_f64()).min(1.0) },
            ..Summary::default()
        }
    }

    /// The same without the wait for admission, which policies decide: what the storage made
    /// of it. Of that wait only the mean is known, so of quantiles the same part is taken as of
    /// the mean.
    #[must_use]
    pub fn at_device(&self) -> Summary {
        let (Some(queue), Some(service)) = (self.queue, self.service) else {
            return *self;
        };
        let all = queue.0 as f64 + service.0 as f64;
        let part = if all > 0.0 { service.0 as f64 / all } else { 1.0 };
        let of = |time: Option<Nanos>| time.map(|it| Nanos((it.0 as f64 * part) as u64));
        let side = |side: Side| Side { response: of(side.response), ..side };
        let [p50, p95, p99, max] = [self.p50, self.p95, self.p99, self.max].map(of);
        let (read, write) = (side(self.read), side(self.write));
        Summary { read, write, queue: Some(Nanos(0)), p50, p95, p99, max, ..*self }
    }

    /// Reads and writes per second.
    pub fn iops(&self) -> f64 {
        self.per_second((self.read.operations + self.write.operations) as f64)
    }

    /// Bytes read and written per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.per_second(self.read.bytes + self.write.bytes)
    }

    /// So much of something in this span, per second.
    pub fn per_second(&self, amount: f64) -> f64 {
        match self.span.0 {
            0 => 0.0,
            span => amount * 1e9 / span as f64,
        }
    }

    /// Requests under way on average (Little's law).
    pub fn outstanding(&self) -> f64 {
        let side = |side: &Side| {
            side.operations as f64 * side.response.map_or(0.0, Nanos::as_secs_f64)
        };
        self.per_second(side(&self.read) + side(&self.write))
    }
}

/// The mean of two means, of so many each.
fn weighted(one: (Option<Nanos>, u64), other: (Option<Nanos>, u64)) -> Option<Nanos> {
    let total = one.1 + other.1;
    let sum = |(mean, count): (Option<Nanos>, u64)| {
        mean.map_or(0.0, Nanos::as_secs_f64) * count as f64
    };
    let mean = (sum(one) + sum(other)) / total as f64;
    (total > 0).then_some(Nanos((mean * 1e9) as u64))
}

/// The part of a span that is in windows with something in them.
fn part_there(span: Nanos, slots: &[Slot]) -> f64 {
    let busy = slots.iter().filter(|slot| slot.operations() > 0);
    let busy: u64 = busy.map(|slot| slot.end().since(slot.start()).0).sum();
    if span.0 == 0 { 0.0 } else { (busy as f64 / span.0 as f64).min(1.0) }
}

/// Halvings until the ends are the same float, or nearly.
const HALVINGS: usize = 40;

/// The quantile of all requests of these windows together: where the parts within it,
/// of each, make up `part` of all. Never below the least or above the greatest of the
/// windows' own.
fn quantile(slots: &[Slot], part: f64) -> Option<Nanos> {
    let busy = || slots.iter().filter(|slot| slot.operations() > 0);
    let at = QUANTILES.iter().position(|known| *known == part)?;
    let own = |slot: &Slot| f64::from(slot.quantiles[at]);
    let total: f64 = busy().map(|slot| slot.operations() as f64).sum();
    let mut low = busy().map(own).reduce(f64::min)?;
    let mut high = busy().map(own).reduce(f64::max)?;
    for _ in 0..HALVINGS {
        if high - low <= low * 1e-3 {
            break;
        }
        let middle = (low.max(1.0) * high).sqrt();
        let one = |slot: &Slot| slot.operations() as f64 * slot.part_within(middle);
        let within: f64 = busy().map(one).sum();
        if within < part * total {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(Nanos(high as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_not_below_zero() {
        let none = Summary::of(Nanos::from_secs(1), &[]);
        assert!(none.bytes_per_second().is_sign_positive());
        assert!(none.iops().is_sign_positive() && none.outstanding().is_sign_positive());
    }

    #[test]
    fn counts_of_any_size_are_kept_to_a_two_hundredth() {
        assert!((0..=256).all(|count| long(short(count)) == count as f64));
        for count in [0, 1, 2, 3, 99, 100, 257, 54_321, 9_876_543] {
            let kept = long(short(count));
            assert!(
                (kept - count as f64).abs() <= count as f64 / 200.0,
                "{count}: {kept}"
            );
        }
    }

    #[test]
    fn what_is_under_way_on_many_disks_is_not_cut_off() {
        let under_way = 200_000;
        let window = Window { in_flight: under_way, ..Window::default() };
        let slot = Slot::new(Nanos(0), Nanos::from_secs(1), &window);
        let kept = Summary::of(Nanos::from_secs(1), &[slot]).in_flight;
        assert!(kept.abs_diff(under_way) <= under_way / 200, "{kept}");
    }

    #[test]
    fn a_slot_has_64_bytes() {
        assert_eq!(size_of::<Slot>(), 64);
    }
}
