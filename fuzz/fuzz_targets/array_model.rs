//! Any text: it is refused, or formatting and parsing it again gives the same model.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_core::array::{Model, Preset};

fuzz_target!(|text: &str| {
    let names = Preset::ALL.iter().map(|preset| format!("{}?", preset.name()));
    // Most inputs shall get past the name.
    for prefix in [String::new()].into_iter().chain(names) {
        if let Ok(model) = format!("{prefix}{text}").parse::<Model>() {
            let again = model.to_string();
            assert_eq!(again.parse::<Model>().as_ref(), Ok(&model), "{again}");
        }
    }
});
