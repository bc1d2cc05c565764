//! Any client against our server: no panic, bounded output, and the same result
//! whether the bytes come one by one or at once.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_nbd::export::ListEntry;
use sterna_nbd::limits::ANSWER_MAX;
use sterna_nbd::{Export, OptionError, ServerHandshake, ServerStep};

fn run(bytes: &[u8], piece: usize) -> (Vec<u8>, String) {
    let mut server = ServerHandshake::new();
    let (mut sent, mut rest) = (Vec::new(), bytes);
    loop {
        match server.step() {
            ServerStep::Send(bytes) => {
                assert!(!bytes.is_empty() && bytes.len() <= ANSWER_MAX);
                sent.extend(bytes);
            }
            ServerStep::Receive if rest.is_empty() => return (sent, "waiting".into()),
            ServerStep::Receive => {
                let taken = server.push(&rest[..piece.min(rest.len())]);
                assert!(taken > 0);
                rest = &rest[taken..];
            }
            ServerStep::NeedExport(question) => {
                server.answer_export(match question.name.len() {
                    0..8 => Ok(Export::disk(1 << 30)),
                    8..16 => {
                        Ok(Export { block_sizes_required: true, ..Export::disk(1 << 30) })
                    }
                    _ => Err(OptionError::Unknown),
                });
            }
            ServerStep::NeedList => server.answer_list(Ok(vec![ListEntry {
                name: "disk".into(),
                description: "a disk".into(),
            }])),
            ServerStep::Ready(mut ready) => {
                ready.leftover.extend_from_slice(rest);
                return (sent, format!("{ready:?}"));
            }
            ServerStep::Closed(why) => return (sent, format!("{why:?}")),
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    assert_eq!(run(bytes, usize::MAX), run(bytes, 1));
});
