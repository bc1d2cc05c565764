//! Any text as a file of tiles, and as a request for a plan: it is read, and says the same
//! when it is written and read again; or it is refused, with its line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_api::{PlanEvacuation, Tile, TileFile};

fuzz_target!(|text: &str| {
    match text.parse::<TileFile>() {
        Ok(TileFile { tiles }) => {
            let written = serde_json::to_string(&tiles).expect("tiles can be written");
            let read = serde_json::from_str::<Vec<Tile>>(&written);
            assert_eq!(read.expect("what was written can be read"), tiles);
        }
        Err(error) => {
            assert!(error.line >= 1 && error.line <= 1 + text.matches('\n').count());
            assert!(!error.what.is_empty());
        }
    }
    if let Ok(asked) = serde_json::from_str::<PlanEvacuation>(text) {
        let written = serde_json::to_string(&asked).expect("a request can be written");
        let read = serde_json::from_str::<PlanEvacuation>(&written);
        assert_eq!(read.expect("what was written can be read"), asked);
    }
});
