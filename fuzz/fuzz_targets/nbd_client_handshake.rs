//! Any server against our client: no panic, bounded output, and the same result
//! whether the bytes come one by one or at once.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_nbd::client::ClientConfig;
use sterna_nbd::{ClientHandshake, ClientStep};

/// The greeting, the flags and five options with a short name fit in here.
const SENT_MAX: usize = 1024;

fn run(bytes: &[u8], piece: usize, config: ClientConfig) -> (Vec<u8>, String) {
    let mut client = ClientHandshake::new(config);
    let (mut sent, mut rest) = (Vec::new(), bytes);
    loop {
        match client.step() {
            ClientStep::Send(bytes) => {
                sent.extend(bytes);
                assert!(sent.len() <= SENT_MAX);
            }
            ClientStep::Receive if rest.is_empty() => {
                return (sent, format!("{:?}", client.end_of_input()));
            }
            ClientStep::Receive => {
                let taken = client.push(&rest[..piece.min(rest.len())]);
                assert!(taken > 0);
                rest = &rest[taken..];
            }
            ClientStep::Ready(mut ready) => {
                ready.leftover.extend_from_slice(rest);
                return (sent, format!("{ready:?}"));
            }
            ClientStep::Failed(error) => return (sent, format!("{error:?} {error}")),
        }
    }
}

fuzz_target!(|input: (bool, bool, &[u8])| {
    let (structured, allocation, bytes) = input;
    let config = || ClientConfig { export: "disk".into(), structured, allocation };
    // Most inputs shall get past the greeting.
    let mut script = b"NBDMAGICIHAVEOPT\0\x03".to_vec();
    script.extend_from_slice(bytes);
    for script in [&script[..], bytes] {
        assert_eq!(run(script, usize::MAX, config()), run(script, 1, config()));
    }
});
