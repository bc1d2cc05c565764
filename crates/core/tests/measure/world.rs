//! Windows made of response times.

use sterna_core::Nanos;
use sterna_core::measure::Window;

pub(crate) const TICK: Nanos = Nanos::from_millis(100);

/// A window of reads of 4 KiB that took so long each.
pub(crate) fn reads(span: Nanos, took: &[Nanos]) -> Window {
    let mut window = Window { span, ..Window::default() };
    for took in took {
        window.read.record(4096, *took, Nanos(0), *took);
        window.response.record(*took);
    }
    window
}
