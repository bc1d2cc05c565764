//! Any request against any session: what passes the check obeys the session.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_nbd::{BlockSizes, Remedy, Request, Session, TransmissionFlags};

fuzz_target!(|input: ([u8; 28], u64, u16, u8, bool, bool)| {
    let (mut bytes, size, flags, minimum, structured, context) = input;
    bytes[..4].copy_from_slice(&sterna_nbd::wire::REQUEST_MAGIC.to_be_bytes());
    let minimum = 1 << (minimum % 17);
    let session = Session {
        size,
        flags: TransmissionFlags::from_bits(flags).announced(structured),
        block_sizes: BlockSizes::new(minimum, minimum.max(512), 1 << 20).unwrap(),
        structured,
        allocation: context.then_some(1),
    };
    let request = Request::parse(&bytes).expect("the magic is right");
    assert_eq!(request.encode(), bytes);
    match session.check(&request) {
        Ok(command) => {
            if let Some((offset, len)) = command.range() {
                assert!(len > 0 && offset + u64::from(len) <= size);
                assert!(session.block_sizes.aligned(offset | u64::from(len)));
            }
            let read_only = session.flags.has(TransmissionFlags::READ_ONLY);
            assert!(!(read_only && command.is_write()));
            assert_eq!(session.check(&command.request(request.cookie)), Ok(command));
        }
        Err(refusal) => {
            let head =
                session.error(request.cookie, refusal.error(), &refusal.to_string());
            assert!(!head.is_empty());
            let drained = matches!(refusal.remedy, Remedy::Reply);
            assert_eq!(drained, request.payload_len() == 0);
        }
    }
});
