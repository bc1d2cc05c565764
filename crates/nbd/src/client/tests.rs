//! The client against scripted servers, honest, old and hostile.

use super::*;
use crate::error::{NbdError, OptionError};
use crate::flags::TransmissionFlags;
use crate::limits::{ERROR_PAYLOAD_MAX, OPTION_REPLIES_MAX, OPTION_REPLY_MAX};
use crate::option::put_reply;
use crate::{BlockSizesError, reply, wire};
use proptest::prelude::*;

/// A server's bytes: a greeting and what comes after it.
struct Server(Vec<u8>);

const FLAGS: u16 = 0b110_1101;

impl Server {
    fn new() -> Self {
        Self::with_flags(3)
    }

    fn with_flags(flags: u16) -> Self {
        let mut bytes = b"NBDMAGICIHAVEOPT".to_vec();
        bytes.extend(flags.to_be_bytes());
        Self(bytes)
    }

    fn reply(mut self, option: u32, kind: u32, data: &[u8]) -> Self {
        put_reply(&mut self.0, option, kind, &[data]);
        self
    }

    fn structured(self) -> Self {
        self.reply(wire::OPT_STRUCTURED_REPLY, wire::REP_ACK, &[])
    }

    fn context(self) -> Self {
        let option = wire::OPT_SET_META_CONTEXT;
        self.reply(option, wire::REP_META_CONTEXT, b"\0\0\0\x2abase:allocation").reply(
            option,
            wire::REP_ACK,
            &[],
        )
    }

    fn info(self, data: &[u8]) -> Self {
        self.reply(wire::OPT_GO, wire::REP_INFO, data)
    }

    fn export(self, size: u64, flags: u16) -> Self {
        let mut data = vec![0, 0];
        data.extend(size.to_be_bytes());
        data.extend(flags.to_be_bytes());
        self.info(&data)
    }

    fn block_sizes(self, minimum: u32, preferred: u32, maximum: u32) -> Self {
        let mut data = vec![0, 3];
        for size in [minimum, preferred, maximum] {
            data.extend(size.to_be_bytes());
        }
        self.info(&data)
    }

    fn ack(self) -> Self {
        self.reply(wire::OPT_GO, wire::REP_ACK, &[])
    }

    fn no(self, option: u32, error: OptionError) -> Self {
        self.reply(option, error.wire(), b"sorry")
    }

    fn run(&self) -> (Vec<u8>, Result<ClientReady, ClientError>) {
        run(&self.0, &[], ClientConfig::new("disk"))
    }

    fn ready(&self) -> Negotiated {
        self.run().1.expect("a finished handshake").negotiated
    }

    fn error(&self) -> ClientError {
        self.run().1.expect_err("a failed handshake")
    }
}

/// Feeds a server's bytes in pieces, then the end of input.
fn run(
    script: &[u8],
    pieces: &[usize],
    config: ClientConfig,
) -> (Vec<u8>, Result<ClientReady, ClientError>) {
    let mut client = ClientHandshake::new(config);
    let (mut sent, mut rest, mut pieces) = (Vec::new(), script, pieces.iter());
    loop {
        match client.step() {
            ClientStep::Send(bytes) => sent.extend(bytes),
            ClientStep::Receive if rest.is_empty() => {
                return (sent, Err(client.end_of_input()));
            }
            ClientStep::Receive => {
                let piece = pieces.next().copied().unwrap_or(rest.len());
                let taken = client.push(&rest[..piece.clamp(1, rest.len())]);
                assert!(taken > 0);
                rest = &rest[taken..];
            }
            ClientStep::Ready(mut ready) => {
                ready.leftover.extend_from_slice(rest);
                return (sent, Ok(*ready));
            }
            ClientStep::Failed(error) => return (sent, Err(error)),
        }
    }
}

#[test]
fn a_modern_server_gives_everything() {
    let server = Server::new()
        .structured()
        .context()
        .export(1 << 30, FLAGS | 1 << 7)
        .block_sizes(512, 4096, 1 << 20)
        .info(b"\0\x01canonical")
        .info(b"\0\x02a disk")
        .info(b"\x12\x34unknown")
        .ack();
    let negotiated = server.ready();
    assert_eq!(negotiated.session.size, 1 << 30);
    assert!(negotiated.session.structured);
    assert!(negotiated.session.flags.has(TransmissionFlags::SEND_DF));
    assert_eq!(negotiated.session.allocation, Some(42));
    assert_eq!(negotiated.session.block_sizes.minimum(), 512);
    assert!(negotiated.block_sizes_told);
    assert_eq!(negotiated.name.as_deref(), Some("canonical"));
    assert_eq!(negotiated.description.as_deref(), Some("a disk"));
}

#[test]
fn the_client_sends_the_bytes_of_the_specification() {
    let (sent, _) = Server::new().structured().context().run();
    let mut want = vec![0, 0, 0, 3];
    want.extend(b"IHAVEOPT\0\0\0\x08\0\0\0\0");
    want.extend(b"IHAVEOPT\0\0\0\x0a\0\0\0\x1f\0\0\0\x04disk");
    want.extend(b"\0\0\0\x01\0\0\0\x0fbase:allocation");
    want.extend(b"IHAVEOPT\0\0\0\x07\0\0\0\x10\0\0\0\x04disk");
    want.extend([0, 3, 0, 1, 0, 2, 0, 3]);
    assert_eq!(sent, want);
}

#[test]
fn refused_extras_are_done_without() {
    let server = Server::new()
        .no(wire::OPT_STRUCTURED_REPLY, OptionError::Unsup)
        .export(4096, FLAGS | 1 << 7)
        .ack();
    let session = server.ready().session;
    assert!(!session.structured && session.allocation.is_none());
    assert!(!session.flags.has(TransmissionFlags::SEND_DF), "needs structured replies");

    let option = wire::OPT_SET_META_CONTEXT;
    let server = Server::new()
        .structured()
        .reply(option, wire::REP_META_CONTEXT, b"\0\0\0\x01base:allocation")
        .no(option, OptionError::Policy)
        .export(4096, FLAGS)
        .ack();
    let session = server.ready().session;
    assert!(session.structured && session.allocation.is_none());
}

#[test]
fn a_server_without_go_is_asked_in_the_old_way() {
    let mut server = Server::with_flags(1)
        .no(wire::OPT_STRUCTURED_REPLY, OptionError::Unsup)
        .no(wire::OPT_GO, OptionError::Unsup);
    server.0.extend(4096u64.to_be_bytes());
    server.0.extend(FLAGS.to_be_bytes());
    assert_eq!(server.error(), ClientError::Closed, "the zeroes are missing");
    server.0.extend([0; 124]);
    let negotiated = server.ready();
    assert_eq!(negotiated.session.size, 4096);
    assert!(!negotiated.block_sizes_told);
    assert!(server.run().0.ends_with(b"IHAVEOPT\0\0\0\x01\0\0\0\x04disk"));
}

#[test]
fn a_server_that_is_not_fixed_is_asked_in_the_old_way_at_once() {
    let mut server = Server::with_flags(2);
    assert_eq!(server.error(), ClientError::ExportNameRefused);
    server.0.extend(4096u64.to_be_bytes());
    server.0.extend(FLAGS.to_be_bytes());
    assert_eq!(server.ready().session.size, 4096);
    assert_eq!(server.run().0, b"\0\0\0\x02IHAVEOPT\0\0\0\x01\0\0\0\x04disk");
}

#[test]
fn refusals_have_names_and_are_answered_with_abort() {
    let message = || "sorry".to_owned();
    let cases = [
        (OptionError::Unknown, ClientError::ExportUnknown { message: message() }),
        (OptionError::TlsRequired, ClientError::TlsRequired { message: message() }),
        (OptionError::Policy, ClientError::Policy { message: message() }),
        (OptionError::Shutdown, ClientError::Shutdown { message: message() }),
        (
            OptionError::Invalid,
            ClientError::Refused { error: OptionError::Invalid, message: message() },
        ),
    ];
    for (error, want) in cases {
        let server = Server::new().structured().context().no(wire::OPT_GO, error);
        let (sent, end) = server.run();
        assert_eq!(end, Err(want));
        assert!(sent.ends_with(b"IHAVEOPT\0\0\0\x02\0\0\0\0"));
    }
    let early = Server::new().no(wire::OPT_STRUCTURED_REPLY, OptionError::TlsRequired);
    assert_eq!(early.error(), ClientError::TlsRequired { message: message() });
    assert_eq!(
        early.error().to_string(),
        "the server requires TLS, which is not supported (it said: \"sorry\")"
    );
}

#[test]
fn strangers_are_recognised() {
    assert_eq!(Server(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()).error(), ClientError::NotNbd);
    let oldstyle = b"NBDMAGIC\0\0\x42\x02\x81\x86\x12\x53".to_vec();
    assert_eq!(Server(oldstyle).error(), ClientError::Oldstyle);
    assert_eq!(Server(b"NBDMAGIC12345678".to_vec()).error(), ClientError::NotNbd);
    assert_eq!(Server(b"NBDM".to_vec()).error(), ClientError::Closed);
}

#[test]
fn hostile_handshakes_are_violations() {
    let go = || Server::new().structured().context();
    let option = wire::OPT_GO;
    let too_long = OPTION_REPLY_MAX as u32 + 1;
    let mut flood = go();
    for _ in 0..=OPTION_REPLIES_MAX {
        flood = flood.info(&[9, 9]);
    }
    let sizes = Violation::BlockSizes(BlockSizesError::Minimum(3));
    let cases = [
        (go().ack(), Violation::NoExportInfo),
        (go().export(1, 0).ack(), Violation::NoFlags),
        (go().export(1 << 63, FLAGS).ack(), Violation::Size(1 << 63)),
        (go().block_sizes(3, 4096, 4096), sizes),
        (go().info(&[0, 0, 1]), Violation::Malformed),
        (go().info(&[0, 1, 0xff]), Violation::Malformed),
        (go().reply(option, wire::REP_ACK, &[0]), Violation::Malformed),
        (go().reply(option, wire::REP_SERVER, &[]), Violation::ReplyKind(2)),
        (
            go().reply(wire::OPT_LIST, wire::REP_ACK, &[]),
            Violation::ReplyOption { got: 3, sent: 7 },
        ),
        (
            go().reply(option, wire::REP_INFO, &vec![0; too_long as usize]),
            Violation::ReplyTooLong(too_long),
        ),
        (flood, Violation::TooManyReplies),
    ];
    for (server, violation) in cases {
        assert_eq!(server.error(), ClientError::Violation(violation));
    }
    let mut garbage = Server::new();
    garbage.0.extend([7; 20]);
    assert_eq!(garbage.error(), ClientError::Violation(Violation::ReplyMagic));
}

#[test]
fn an_impossible_name_never_reaches_the_server() {
    for name in ["a\0b".to_owned(), "x".repeat(4097)] {
        let (sent, end) = run(&Server::new().0, &[], ClientConfig::new(name));
        assert!(sent.is_empty());
        assert_eq!(end, Err(ClientError::BadName));
    }
}

const LIMITS: ReplyLimits =
    ReplyLimits { structured: true, data_max: 1 << 20, extents_max: 1000 };

fn head(bytes: &[u8]) -> ReplyHead {
    match ReplyHead::parse(bytes, &LIMITS) {
        Ok(Parsed::Head(head, taken)) => {
            assert!(taken <= bytes.len());
            head
        }
        other => panic!("no head: {other:?}"),
    }
}

#[test]
fn every_reply_of_our_server_is_understood() {
    let (cookie, offset, len, done) = (7, 512, 4096, true);
    assert_eq!(
        head(&reply::simple(cookie, None)),
        ReplyHead::Simple { cookie, error: None }
    );
    assert_eq!(head(&reply::none(cookie)), ReplyHead::Done { cookie });
    assert_eq!(
        head(&reply::offset_data(cookie, offset, len, done)),
        ReplyHead::Data { cookie, offset, len, done }
    );
    assert_eq!(
        head(&reply::offset_hole(cookie, offset, len, done)),
        ReplyHead::Hole { cookie, offset, len, done }
    );
    let error = NbdError::Io;
    let message = "the disk is gone".to_owned();
    assert_eq!(
        head(&reply::error(cookie, error, &message)),
        ReplyHead::Error { cookie, error, offset: None, message: message.clone(), done }
    );
    let offset = Some(offset);
    assert_eq!(
        head(&reply::error_offset(cookie, error, &message, 512, done)),
        ReplyHead::Error { cookie, error, offset, message, done }
    );
}

/// A chunk as its twenty bytes and a payload.
fn chunk(kind: u16, done: bool, len: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = reply::chunk(kind, done, 7, len).to_vec();
    bytes.extend(payload);
    bytes
}

#[test]
fn hostile_replies_are_refused_before_their_payload_comes() {
    let parse = |bytes: &[u8]| ReplyHead::parse(bytes, &LIMITS);
    let length = |kind, len| Err(BadReply::Length { kind, len });
    assert_eq!(parse(&chunk(0, false, 0, &[])), length(0, 0));
    assert_eq!(parse(&chunk(0, true, 1, &[])), length(0, 1));
    for len in [0, 8, 9 + (1 << 20), u32::MAX] {
        assert_eq!(parse(&chunk(1, true, len, &[])), length(1, len));
    }
    assert_eq!(parse(&chunk(2, true, 13, &[])), length(2, 13));
    assert_eq!(parse(&chunk(2, true, 12, &[0; 12])), Err(BadReply::EmptyHole));
    let past = Err(BadReply::Range { offset: u64::MAX, len: 8 });
    assert_eq!(parse(&chunk(1, true, 16, &[0xff; 8])), past);
    for len in [0, 4, 11, 13, 4 + 8 * 1001] {
        assert_eq!(parse(&chunk(5, true, len, &[])), length(5, len));
    }
    assert_eq!(parse(&chunk(3, true, 0, &[])), Err(BadReply::Kind(3)));
    let error = wire::REPLY_ERROR;
    assert_eq!(parse(&chunk(error, true, 5, &[])), length(error, 5));
    let long = ERROR_PAYLOAD_MAX + 1;
    assert_eq!(parse(&chunk(error, true, long, &[])), length(error, long));
    let lies = [0, 0, 0, 5, 0, 9, b'x'];
    assert_eq!(parse(&chunk(error, true, 7, &lies)), length(error, 7));
    assert_eq!(parse(&[0x25, 0x60, 0x95, 0x13]), Err(BadReply::Magic(0x2560_9513)));
}

#[test]
fn a_chunk_without_structured_replies_is_refused() {
    let limits = ReplyLimits { structured: false, ..LIMITS };
    let parsed = ReplyHead::parse(&reply::none(7), &limits);
    assert_eq!(parsed, Err(BadReply::Magic(wire::STRUCTURED_REPLY_MAGIC)));
}

#[test]
fn an_unknown_error_is_an_error_and_a_zero_one_too() {
    let unknown = chunk(0x8abc, true, 9, &[0, 0, 0, 200, 0, 2, b'h', b'i', 1]);
    let message = "hi".to_owned();
    let (cookie, error, offset, done) = (7, NbdError::Inval, None, true);
    let want = ReplyHead::Error { cookie, error, offset, message, done };
    assert_eq!(head(&unknown), want);
    let zero = chunk(wire::REPLY_ERROR, true, 6, &[0; 6]);
    assert!(matches!(head(&zero), ReplyHead::Error { error: NbdError::Inval, .. }));
}

proptest! {
    #[test]
    fn any_reply_is_read_the_same_from_every_prefix(
        kind in prop_oneof![0u16..7, 0x8000u16..0x8004, any::<u16>()],
        done: bool,
        len in prop_oneof![0u32..64, any::<u32>()],
        payload in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let bytes = chunk(kind, done, len, &payload);
        let whole = ReplyHead::parse(&bytes, &LIMITS);
        for end in 0..bytes.len() {
            match ReplyHead::parse(&bytes[..end], &LIMITS) {
                Ok(Parsed::Need(need)) => {
                    prop_assert!(need > end);
                    prop_assert!(need <= 20 + ERROR_PAYLOAD_MAX as usize);
                }
                found => prop_assert_eq!(&found, &whole),
            }
        }
    }

    #[test]
    fn any_bytes_are_a_reply_or_refused(bytes: Vec<u8>, structured: bool) {
        let limits = ReplyLimits { structured, ..LIMITS };
        if let Ok(Parsed::Head(_, taken)) = ReplyHead::parse(&bytes, &limits) {
            prop_assert!(taken <= bytes.len());
        }
    }

    #[test]
    fn any_server_is_understood_or_refused_the_same_in_all_pieces(
        flags in 0u16..4,
        replies in prop::collection::vec(
            (0u32..11, prop_oneof![1u32..5, 0x8000_0001u32..0x8000_000b],
             prop::collection::vec(any::<u8>(), 0..20)),
            0..6,
        ),
        tail in prop::collection::vec(any::<u8>(), 0..200),
        pieces in prop::collection::vec(1usize..40, 0..100),
    ) {
        let mut server = Server::with_flags(flags);
        for (option, kind, data) in replies {
            server = server.reply(option, kind, &data);
        }
        server.0.extend(tail);
        let config = || ClientConfig::new("disk");
        let whole = run(&server.0, &[], config());
        prop_assert_eq!(run(&server.0, &pieces, config()), whole);
    }
}
