//! Any bytes at a monitor's socket: they are cut into lines, and each line is a message
//! or is refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_qemu::qmp::{Lines, Message};

fuzz_target!(|received: &[u8]| {
    let mut lines = Lines::default();
    for part in received.chunks(7) {
        let Ok(complete) = lines.push(part) else { return };
        for line in complete {
            assert!(!line.contains(&b'\n'));
            let _ = Message::parse(&line);
        }
    }
});
