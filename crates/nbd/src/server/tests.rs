//! The server's handshake against scripts of bytes.

use super::*;
use crate::export::{Export, ListEntry};
use crate::flags::TransmissionFlags;
use crate::limits::{
    ANSWER_MAX, INPUT_MAX, OPTION_DRAIN_MAX, OPTION_LEN_MAX, OPTIONS_MAX,
};
use crate::option::{InfoOption, MetaOption, put_option};
use crate::{BlockSizes, OptionError, wire};
use proptest::prelude::*;

/// How a handshake ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Waiting,
    Ready(Box<Ready>),
    Closed(Closed),
}

fn export(name: &str) -> Result<Export, OptionError> {
    match name {
        "disk" | "" => Ok(Export {
            name: Some("disk".to_owned()),
            description: Some("a disk".to_owned()),
            ..Export::disk(1 << 30)
        }),
        "blocks" => Ok(Export {
            block_sizes: BlockSizes::new(512, 4096, 1 << 20).expect("sizes"),
            ..Export::disk(1 << 20)
        }),
        "strict" => Ok(Export { block_sizes_required: true, ..Export::disk(1 << 20) }),
        "huge" => Ok(Export::disk(u64::MAX)),
        _ => Err(OptionError::Unknown),
    }
}

/// Feeds a script in pieces of the given lengths (then all the rest) and gives what
/// the server sent, and how it ended.
fn run(script: &[u8], pieces: &[usize]) -> (Vec<u8>, End) {
    let mut server = ServerHandshake::new();
    let (mut sent, mut rest, mut pieces) = (Vec::new(), script, pieces.iter());
    loop {
        match server.step() {
            ServerStep::Send(bytes) => {
                assert!(!bytes.is_empty() && bytes.len() <= ANSWER_MAX);
                sent.extend(bytes);
            }
            ServerStep::Receive => {
                if rest.is_empty() {
                    return (sent, End::Waiting);
                }
                assert!(server.room() > 0);
                let piece = pieces.next().copied().unwrap_or(rest.len());
                let taken = server.push(&rest[..piece.clamp(1, rest.len())]);
                rest = &rest[taken..];
            }
            ServerStep::NeedExport(question) => {
                server.answer_export(export(&question.name));
            }
            ServerStep::NeedList => {
                let description = String::new();
                server.answer_list(Ok(vec![ListEntry {
                    name: "disk".to_owned(),
                    description,
                }]));
            }
            ServerStep::Ready(mut ready) => {
                ready.leftover.extend_from_slice(rest);
                assert!(matches!(server.step(), ServerStep::Closed(Closed::Finished)));
                return (sent, End::Ready(ready));
            }
            ServerStep::Closed(why) => return (sent, End::Closed(why)),
        }
    }
}

/// A client's bytes.
struct Script(Vec<u8>);

impl Script {
    fn new() -> Self {
        Self::with_flags(3)
    }

    fn with_flags(flags: u32) -> Self {
        Self(flags.to_be_bytes().to_vec())
    }

    fn option(mut self, option: u32, data: &[u8]) -> Self {
        put_option(&mut self.0, option, data);
        self
    }

    fn go(self, name: &str) -> Self {
        self.option(wire::OPT_GO, &info(name, true))
    }

    fn select(self, name: &str) -> Self {
        self.option(wire::OPT_SET_META_CONTEXT, &MetaOption::select_allocation(name))
    }

    /// What follows the greeting, and the end.
    fn run(&self) -> (Vec<u8>, End) {
        let (sent, end) = run(&self.0, &[]);
        (sent[wire::GREETING_LEN..].to_vec(), end)
    }

    fn ready(&self) -> Ready {
        match self.run().1 {
            End::Ready(ready) => *ready,
            other => panic!("not ready: {other:?}"),
        }
    }

    fn closed(&self) -> Closed {
        match self.run().1 {
            End::Closed(why) => why,
            other => panic!("not closed: {other:?}"),
        }
    }

    /// Option and kind of every reply.
    fn replies(&self) -> Vec<(u32, u32)> {
        let (mut bytes, mut replies) = (&self.run().0[..], Vec::new());
        while let Some(head) = bytes.first_chunk() {
            let head = crate::option::OptionReplyHead::parse(head).expect("a reply");
            replies.push((head.option, head.kind));
            bytes = &bytes[wire::OPTION_REPLY_HEAD_LEN + head.len as usize..];
        }
        replies
    }
}

fn info(name: &str, block_sizes: bool) -> Vec<u8> {
    let wants = InfoOption {
        name: name.to_owned(),
        wants_name: true,
        wants_description: true,
        wants_block_sizes: block_sizes,
    };
    wants.encode()
}

#[test]
fn the_greeting_has_the_bytes_of_the_specification() {
    let (sent, end) = run(&[], &[]);
    assert_eq!(sent, b"NBDMAGICIHAVEOPT\x00\x03");
    assert_eq!(end, End::Waiting);
}

#[test]
fn go_is_answered_with_information_and_an_ack() {
    let data = [0, 0, 0, 4, b'd', b'i', b's', b'k', 0, 0];
    let (sent, _) = Script::new().option(wire::OPT_GO, &data).run();
    let reply = [0, 3, 0xe8, 0x89, 4, 0x55, 0x65, 0xa9, 0, 0, 0, 7];
    let mut want = reply.to_vec();
    want.extend([0, 0, 0, 3, 0, 0, 0, 12, 0, 0]); // NBD_INFO_EXPORT
    want.extend([0, 0, 0, 0, 0x40, 0, 0, 0]); // 1 GiB
    want.extend([0, 0b110_1101]); // HAS_FLAGS FLUSH FUA TRIM WRITE_ZEROES; no DF
    want.extend(reply);
    want.extend([0, 0, 0, 3, 0, 0, 0, 14, 0, 3]); // NBD_INFO_BLOCK_SIZE
    want.extend([0, 0, 0, 1, 0, 0, 0x10, 0, 2, 0, 0, 0]);
    want.extend(reply);
    want.extend([0, 0, 0, 1, 0, 0, 0, 0]); // NBD_REP_ACK
    assert_eq!(sent, want);
}

#[test]
fn export_name_is_answered_with_or_without_zeroes() {
    let script = |flags| Script::with_flags(flags).option(wire::OPT_EXPORT_NAME, b"disk");
    let (without, end) = script(3).run();
    assert_eq!(without, [0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0b110_1101]);
    assert!(matches!(end, End::Ready(_)));
    for flags in [0, 1] {
        let (with, _) = script(flags).run();
        assert_eq!(with[..10], without);
        assert_eq!(with[10..], [0; 124]);
    }
}

#[test]
fn a_client_that_did_not_ask_for_block_sizes_is_held_to_no_minimum() {
    let minimum = |script: Script| script.ready().session.block_sizes.minimum();
    let go = |asks| Script::new().option(wire::OPT_GO, &info("blocks", asks));
    assert_eq!(minimum(go(true)), 512);
    assert_eq!(minimum(go(false)), 1);
    assert_eq!(minimum(Script::new().option(wire::OPT_EXPORT_NAME, b"blocks")), 1);
    let (told, _) = go(false).run();
    assert!(told.windows(4).any(|it| it == [0, 0, 2, 0]), "it is told all the same");
}

#[test]
fn structured_replies_and_the_context_reach_the_session() {
    let structured = Script::new().option(wire::OPT_STRUCTURED_REPLY, &[]);
    let session = structured.select("disk").go("disk").ready().session;
    assert!(session.structured);
    assert!(session.flags.has(TransmissionFlags::SEND_DF));
    assert_eq!(session.allocation, Some(1));
    let plain = Script::new().go("disk").ready().session;
    assert!(!plain.structured && plain.allocation.is_none());
    assert!(!plain.flags.has(TransmissionFlags::SEND_DF));
}

#[test]
fn a_context_of_another_export_is_not_selected() {
    let structured = || Script::new().option(wire::OPT_STRUCTURED_REPLY, &[]);
    let other = structured().select("strict").go("disk").ready();
    assert_eq!(other.session.allocation, None);
    let failed = structured().select("disk").select("nothing").go("disk").ready();
    assert_eq!(failed.session.allocation, None, "a failed selection selects nothing");
    let info = structured().select("disk").option(wire::OPT_INFO, &info("disk", true));
    assert_eq!(info.go("disk").ready().session.allocation, Some(1));
}

#[test]
fn contexts_need_structured_replies_first() {
    let replies = Script::new().select("disk").replies();
    assert_eq!(replies, [(wire::OPT_SET_META_CONTEXT, wire::REP_ERR_INVALID)]);
}

#[test]
fn the_wildcard_lists_and_does_not_select() {
    let mut data = vec![0, 0, 0, 0, 0, 0, 0, 1];
    data.extend([0, 0, 0, 5]);
    data.extend(b"base:");
    for (option, listed) in
        [(wire::OPT_LIST_META_CONTEXT, true), (wire::OPT_SET_META_CONTEXT, false)]
    {
        let script = Script::new().option(wire::OPT_STRUCTURED_REPLY, &[]);
        let replies = script.option(option, &data).replies();
        assert_eq!(replies.contains(&(option, wire::REP_META_CONTEXT)), listed);
        assert_eq!(replies.last(), Some(&(option, wire::REP_ACK)));
    }
}

#[test]
fn a_list_without_queries_lists_everything_and_unknown_names_nothing() {
    let script = || Script::new().option(wire::OPT_STRUCTURED_REPLY, &[]);
    let option = wire::OPT_LIST_META_CONTEXT;
    let everything = script().option(option, &[0; 8]).replies();
    assert!(everything.contains(&(option, wire::REP_META_CONTEXT)));
    let mut data = vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 6];
    data.extend(b"qemu:x");
    assert_eq!(script().option(option, &data).replies()[1..], [(option, wire::REP_ACK)]);
}

#[test]
fn exports_are_listed_and_the_list_takes_no_data() {
    let (sent, _) = Script::new().option(wire::OPT_LIST, &[]).run();
    assert_eq!(
        sent[12..28],
        [0, 0, 0, 2, 0, 0, 0, 8, 0, 0, 0, 4, b'd', b'i', b's', b'k']
    );
    let replies = Script::new().option(wire::OPT_LIST, b"x").replies();
    assert_eq!(replies, [(wire::OPT_LIST, wire::REP_ERR_INVALID)]);
}

#[test]
fn a_list_that_is_too_long_is_an_error_not_a_flood() {
    let mut server = ServerHandshake::new();
    let script = Script::new().option(wire::OPT_LIST, &[]);
    let _ = server.step();
    assert_eq!(server.push(&script.0), script.0.len());
    assert!(matches!(server.step(), ServerStep::NeedList));
    let entry = ListEntry { name: "n".repeat(1000), description: "d".repeat(9000) };
    server.answer_list(Ok(vec![entry; 1000]));
    let ServerStep::Send(bytes) = server.step() else { panic!("an answer") };
    assert_eq!(bytes[12..16], wire::REP_ERR_TOO_BIG.to_be_bytes());
    assert!(bytes.len() < 200);
}

#[test]
fn tls_and_unknown_options_are_not_supported_and_the_handshake_goes_on() {
    for option in [wire::OPT_STARTTLS, 4, 11, 0xdead_beef] {
        let script = Script::new().option(option, &[]).go("disk");
        assert_eq!(script.replies()[0], (option, wire::REP_ERR_UNSUP));
        script.ready();
    }
}

#[test]
fn unknown_exports_are_told_by_go_and_cut_off_by_export_name() {
    let replies = Script::new().go("nothing").replies();
    assert_eq!(replies, [(wire::OPT_GO, wire::REP_ERR_UNKNOWN)]);
    let old = Script::new().option(wire::OPT_EXPORT_NAME, b"nothing");
    assert_eq!(old.closed(), Closed::ExportRefused(OptionError::Unknown));
    assert_eq!(old.run().0, []);
    assert_eq!(
        Script::new().option(wire::OPT_EXPORT_NAME, b"a\0").closed(),
        Closed::BadExportName
    );
}

#[test]
fn an_impossible_size_is_never_announced() {
    let replies = Script::new().go("huge").replies();
    assert_eq!(replies, [(wire::OPT_GO, wire::REP_ERR_PLATFORM)]);
}

#[test]
fn block_sizes_can_be_made_a_condition() {
    let script = Script::new().option(wire::OPT_GO, &info("strict", false));
    let last = script.replies().pop();
    assert_eq!(last, Some((wire::OPT_GO, wire::REP_ERR_BLOCK_SIZE_REQD)));
    script.go("strict").ready();
    let old = Script::new().option(wire::OPT_EXPORT_NAME, b"strict");
    assert_eq!(old.closed(), Closed::ExportRefused(OptionError::BlockSizeRequired));
}

#[test]
fn abort_is_acknowledged_whatever_it_carries() {
    let script = Script::new().option(wire::OPT_ABORT, b"bye");
    assert_eq!(script.replies(), [(wire::OPT_ABORT, wire::REP_ACK)]);
    assert_eq!(script.closed(), Closed::Aborted);
}

#[test]
fn malformed_options_are_invalid_and_the_handshake_goes_on() {
    for option in [wire::OPT_INFO, wire::OPT_GO] {
        let script = Script::new().option(option, &[0, 0, 0, 200, b'x']);
        assert_eq!(script.replies(), [(option, wire::REP_ERR_INVALID)]);
        script.go("disk").ready();
    }
}

#[test]
fn a_long_option_is_dropped_and_an_absurd_one_ends_the_connection() {
    let long = vec![0; OPTION_LEN_MAX + 1];
    let script = Script::new().option(wire::OPT_GO, &long).go("disk");
    assert_eq!(script.replies()[0], (wire::OPT_GO, wire::REP_ERR_TOO_BIG));
    script.ready();
    let len = OPTION_DRAIN_MAX + 1;
    let mut absurd = Script::new();
    absurd.0.extend(wire::OPTION_MAGIC.to_be_bytes());
    absurd.0.extend(wire::OPT_GO.to_be_bytes());
    absurd.0.extend(len.to_be_bytes());
    let option = wire::OPT_GO;
    assert_eq!(absurd.closed(), Closed::OptionTooLong { option, len });
    let name = Script::new().option(wire::OPT_EXPORT_NAME, &long);
    assert!(matches!(name.closed(), Closed::OptionTooLong { .. }));
}

#[test]
fn endless_options_end_the_connection() {
    let mut script = Script::new();
    for _ in 0..=OPTIONS_MAX {
        script = script.option(99, &[]);
    }
    assert_eq!(script.closed(), Closed::TooManyOptions);
}

#[test]
fn wrong_flags_and_magics_end_the_connection() {
    assert_eq!(Script::with_flags(4).closed(), Closed::ClientFlags(4));
    let mut script = Script::new();
    script.0.extend([0; 16]);
    assert_eq!(script.closed(), Closed::BadMagic);
}

#[test]
fn a_client_that_cannot_read_replies_may_only_name_its_export() {
    let option = wire::OPT_GO;
    let script = Script::with_flags(0).go("disk");
    assert_eq!(script.closed(), Closed::NotFixedNewstyle { option });
}

#[test]
fn bytes_after_go_belong_to_the_transmission() {
    let mut script = Script::new().go("disk");
    script.0.extend([0x25, 0x60, 0x95, 0x13]);
    assert_eq!(script.ready().leftover, [0x25, 0x60, 0x95, 0x13]);
}

#[test]
fn a_question_is_repeated_until_it_is_answered() {
    let mut server = ServerHandshake::new();
    let _ = server.step();
    let script = Script::new().go("disk");
    let _ = server.push(&script.0);
    server.answer_list(Ok(Vec::new()));
    for _ in 0..2 {
        let ServerStep::NeedExport(question) = server.step() else { panic!("asks") };
        assert_eq!(question.name, "disk");
        assert_eq!(question.purpose, Purpose::Go);
    }
}

#[test]
fn input_that_is_not_looked_at_is_bounded() {
    let mut server = ServerHandshake::new();
    let flood = vec![0; 2 * INPUT_MAX];
    assert_eq!(server.push(&flood), INPUT_MAX);
    assert_eq!(server.push(&flood), 0);
}

fn any_option() -> impl Strategy<Value = (u32, Vec<u8>)> {
    let name = prop_oneof![Just("disk"), Just(""), Just("nothing"), Just("strict")];
    let options = 0u32..13;
    prop_oneof![
        (options.clone(), prop::collection::vec(any::<u8>(), 0..40)),
        (6u32..8, name.clone(), any::<bool>())
            .prop_map(|(option, name, sizes)| (option, info(name, sizes))),
        (9u32..11, name)
            .prop_map(|(option, name)| (option, MetaOption::select_allocation(name))),
        options.prop_map(|option| (option, Vec::new())),
        Just((3, vec![0; OPTION_LEN_MAX + 7])),
    ]
}

proptest! {
    #[test]
    fn the_result_does_not_depend_on_the_pieces(
        flags in 0u32..5,
        options in prop::collection::vec(any_option(), 0..8),
        tail in prop::collection::vec(any::<u8>(), 0..30),
        pieces in prop::collection::vec(1usize..50, 0..200),
    ) {
        let mut script = Script::with_flags(flags);
        for (option, data) in &options {
            script = script.option(*option, data);
        }
        script.0.extend(tail);
        prop_assert_eq!(run(&script.0, &pieces), run(&script.0, &[]));
    }

    #[test]
    fn garbage_neither_panics_nor_grows(
        garbage in prop::collection::vec(any::<u8>(), 0..400),
        flags in 0u32..4,
        magic: bool,
    ) {
        let mut script = Script::with_flags(flags);
        if magic {
            script.0.extend(wire::OPTION_MAGIC.to_be_bytes());
            script.0.extend([0, 0, 0]);
        }
        script.0.extend(garbage);
        run(&script.0, &[]);
    }
}
