//! Any text: it is refused, or shows as one that is read as the same, and tells its
//! changes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_core::schedule::{Moment, Schedule, WEEK, Weekday};

fuzz_target!(|input: (u32, &str)| {
    let (second, text) = input;
    // Most inputs shall get past the days.
    for prefix in ["", "Mon-Fri ", "Mon 08:00-12:00,"] {
        if let Ok(schedule) = format!("{prefix}{text}").parse::<Schedule>() {
            let again = schedule.to_string();
            assert_eq!(again.parse::<Schedule>().as_ref(), Ok(&schedule), "{again}");
            let now = Moment::new(Weekday::Monday, 0).after(second % WEEK);
            if let Some(seconds) = schedule.until_change(now) {
                assert_ne!(schedule.is_open(now), schedule.is_open(now.after(seconds)));
            }
        }
    }
});
