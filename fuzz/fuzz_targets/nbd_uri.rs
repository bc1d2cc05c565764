//! Any text: it is refused, or formatting and parsing it again gives the same URI.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_nbd::Uri;

fuzz_target!(|text: &str| {
    // Most inputs shall get past the scheme.
    for prefix in ["", "nbd://", "nbd+unix:///"] {
        if let Ok(uri) = format!("{prefix}{text}").parse::<Uri>() {
            let again = uri.to_string();
            assert_eq!(again.parse::<Uri>().as_ref(), Ok(&uri), "{again}");
        }
    }
});
