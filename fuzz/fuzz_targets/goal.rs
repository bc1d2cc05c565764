//! Any text: as a goal, a rate, a tolerance or a fallback it is refused, or what was
//! read is in its range.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_core::Nanos;
use sterna_core::qos::policy::{Fallback, Tolerance};
use sterna_core::qos::{Goal, Rate};

fuzz_target!(|text: &str| {
    // Most inputs shall get past the number, or the unit.
    for text in
        [text.into(), format!("7{text}"), format!("{text}iops"), format!("{text}ms")]
    {
        if let Ok(goal) = text.parse::<Goal>() {
            let (Goal::Bytes(number)
            | Goal::Requests(number)
            | Goal::Response(Nanos(number))) = goal;
            assert!(number > 0, "{text}");
            assert_eq!(text.parse::<Rate>().ok(), Rate::try_from(goal).ok(), "{text}");
        }
    }
    if let Ok(tolerance) = text.parse::<Tolerance>() {
        assert_eq!(tolerance.to_string().parse(), Ok(tolerance));
    }
    let _ = text.parse::<Fallback>();
    let _ = format!("limit={text}").parse::<Fallback>();
});
