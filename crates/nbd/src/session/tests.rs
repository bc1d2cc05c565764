//! Every rule of the check, one test each; then all requests at once.

use super::*;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn session() -> Session {
    Session {
        size: 100 * MIB,
        flags: TransmissionFlags::KNOWN.without(TransmissionFlags::READ_ONLY),
        block_sizes: BlockSizes::new(512, 4096, 1 << 20).unwrap(),
        structured: true,
        allocation: Some(1),
    }
}

fn without(flags: TransmissionFlags) -> Session {
    let whole = session();
    Session { flags: whole.flags.without(flags), ..whole }
}

fn request(command: u16, flags: u16, offset: u64, len: u32) -> Request {
    let flags = CommandFlags::from_bits(flags);
    Request { flags, command, cookie: 7, offset, len }
}

/// The error and the reason of a request that must be refused.
fn refused(session: &Session, request: Request) -> (NbdError, RefusalReason) {
    let refusal = session.check(&request).expect_err("this request is illegal");
    (refusal.error(), refusal.reason)
}

fn all_commands() -> Vec<Command> {
    let (offset, len) = (4096, 512);
    vec![
        Command::Read { offset, len, df: true },
        Command::Write { offset, len, fua: true },
        Command::Flush,
        Command::Trim { offset, len, fua: true },
        Command::Cache { offset, len },
        Command::WriteZeroes { offset, len, fua: true, no_hole: true, fast_zero: true },
        Command::BlockStatus { offset, len, req_one: true },
        Command::Disconnect,
    ]
}

#[test]
fn every_legal_command_is_passed_through() {
    for command in all_commands() {
        assert_eq!(session().check(&command.request(1)), Ok(command));
    }
}

#[test]
fn an_unknown_command_is_invalid() {
    for number in [8, 9, 0xffff] {
        let (error, reason) = refused(&session(), request(number, 0, 0, 0));
        assert_eq!(error, NbdError::Inval);
        assert_eq!(reason, RefusalReason::UnknownCommand(number));
    }
}

#[test]
fn unknown_and_misplaced_flags_are_invalid() {
    let stray =
        |flags| (NbdError::Inval, RefusalReason::Flags(CommandFlags::from_bits(flags)));
    assert_eq!(refused(&session(), request(wire::CMD_READ, 0x20, 0, 512)), stray(0x20));
    let no_hole = CommandFlags::NO_HOLE.bits();
    let read = request(wire::CMD_READ, no_hole, 0, 512);
    assert_eq!(refused(&session(), read), stray(no_hole));
    let df = CommandFlags::DF.bits();
    let write = request(wire::CMD_WRITE, df, 0, 512);
    assert_eq!(refused(&session(), write), stray(df));
}

#[test]
fn flags_that_were_not_negotiated_are_invalid() {
    let cases = [
        (TransmissionFlags::SEND_FUA, wire::CMD_WRITE, CommandFlags::FUA),
        (TransmissionFlags::SEND_DF, wire::CMD_READ, CommandFlags::DF),
        (
            TransmissionFlags::SEND_FAST_ZERO,
            wire::CMD_WRITE_ZEROES,
            CommandFlags::FAST_ZERO,
        ),
    ];
    for (feature, command, flag) in cases {
        let request = request(command, flag.bits(), 0, 512);
        assert!(session().check(&request).is_ok());
        let refusal = refused(&without(feature), request);
        assert_eq!(refusal, (NbdError::Inval, RefusalReason::Flags(flag)));
    }
}

#[test]
fn fua_is_harmless_on_every_command_where_it_is_offered() {
    for command in all_commands() {
        let mut request = command.request(1);
        request.flags |= CommandFlags::FUA;
        assert_eq!(session().check(&request), Ok(command));
    }
}

#[test]
fn commands_that_were_not_offered_are_invalid() {
    let cases = [
        (TransmissionFlags::SEND_FLUSH, request(wire::CMD_FLUSH, 0, 0, 0)),
        (TransmissionFlags::SEND_TRIM, request(wire::CMD_TRIM, 0, 0, 512)),
        (TransmissionFlags::SEND_CACHE, request(wire::CMD_CACHE, 0, 0, 512)),
        (
            TransmissionFlags::SEND_WRITE_ZEROES,
            request(wire::CMD_WRITE_ZEROES, 0, 0, 512),
        ),
    ];
    for (feature, request) in cases {
        let refusal = refused(&without(feature), request);
        assert_eq!(refusal, (NbdError::Inval, RefusalReason::NotNegotiated));
    }
}

#[test]
fn block_status_needs_a_selected_context() {
    let none = Session { allocation: None, ..session() };
    let refusal = refused(&none, request(wire::CMD_BLOCK_STATUS, 0, 0, 512));
    assert_eq!(refusal, (NbdError::Inval, RefusalReason::NotNegotiated));
}

#[test]
fn a_read_only_export_permits_no_writes() {
    let read_only = Session {
        flags: session().flags.with(TransmissionFlags::READ_ONLY),
        ..session()
    };
    for command in all_commands() {
        let checked = read_only.check(&command.request(1));
        if command.is_write() {
            assert_eq!(checked.unwrap_err().error(), NbdError::Perm);
        } else {
            assert_eq!(checked, Ok(command));
        }
    }
    // Also where the announcement left the command out, as it does.
    let announced = read_only.flags.announced(true);
    let announced = Session { flags: announced, ..session() };
    let (error, _) = refused(&announced, request(wire::CMD_WRITE_ZEROES, 0, 0, 512));
    assert_eq!(error, NbdError::Perm);
}

#[test]
fn an_empty_range_is_invalid_but_a_flush_has_none() {
    for command in all_commands() {
        let mut request = command.request(1);
        request.len = 0;
        match command {
            Command::Flush | Command::Disconnect => {
                assert!(session().check(&request).is_ok());
            }
            _ => {
                let refusal = refused(&session(), request);
                assert_eq!(refusal, (NbdError::Inval, RefusalReason::Empty));
            }
        }
    }
    let (_, reason) = refused(&session(), request(wire::CMD_FLUSH, 0, 0, 512));
    assert_eq!(reason, RefusalReason::StrayRange);
}

#[test]
fn past_the_end_is_a_full_disk_for_writes_only() {
    let size = session().size;
    for (offset, len) in [(size - 512, 1024), (size, 512), (u64::MAX - 511, 512)] {
        for (command, error) in [
            (wire::CMD_READ, NbdError::Inval),
            (wire::CMD_WRITE, NbdError::NoSpc),
            (wire::CMD_TRIM, NbdError::Inval),
            (wire::CMD_CACHE, NbdError::Inval),
            (wire::CMD_WRITE_ZEROES, NbdError::NoSpc),
            (wire::CMD_BLOCK_STATUS, NbdError::Inval),
        ] {
            assert_eq!(
                refused(&session(), request(command, 0, offset, len)).0,
                error,
                "command {command} at {offset}+{len}"
            );
        }
    }
    let last = request(wire::CMD_READ, 0, size - 512, 512);
    assert!(session().check(&last).is_ok());
}

#[test]
fn the_minimum_block_size_binds_offset_and_length() {
    for (offset, len) in [(1, 512), (512, 511), (256, 256)] {
        let (error, reason) =
            refused(&session(), request(wire::CMD_TRIM, 0, offset, len));
        assert_eq!(error, NbdError::Inval);
        assert_eq!(reason, RefusalReason::Misaligned(512));
    }
}

#[test]
fn the_maximum_binds_payloads_and_nothing_else() {
    let len = 2 << 20;
    let read = request(wire::CMD_READ, 0, 0, len);
    assert_eq!(refused(&session(), read).0, NbdError::Overflow);
    let simple = Session { structured: false, ..session() };
    assert_eq!(refused(&simple, read).0, NbdError::Inval);
    assert_eq!(
        refused(&session(), request(wire::CMD_WRITE, 0, 0, len)).0,
        NbdError::Inval
    );
    for command in
        [wire::CMD_TRIM, wire::CMD_CACHE, wire::CMD_WRITE_ZEROES, wire::CMD_BLOCK_STATUS]
    {
        assert!(session().check(&request(command, 0, 0, len)).is_ok());
    }
}

#[test]
fn a_refused_write_is_drained_and_an_absurd_one_ends_the_connection() {
    let remedy =
        |command, len| session().check(&request(command, 0, 1, len)).unwrap_err().remedy;
    assert_eq!(remedy(wire::CMD_READ, 512), Remedy::Reply);
    assert_eq!(remedy(wire::CMD_WRITE, 0), Remedy::Reply);
    assert_eq!(remedy(wire::CMD_WRITE, 512), Remedy::DrainThenReply(512));
    let limit = PAYLOAD_DRAIN_MAX;
    assert_eq!(remedy(wire::CMD_WRITE, limit), Remedy::DrainThenReply(limit));
    assert_eq!(remedy(wire::CMD_WRITE, limit + 1), Remedy::HangUp);
}

prop_compose! {
    fn any_session()(
        size in 0u64..(200 * MIB),
        flags: u16,
        minimum in 0u32..=16,
        maximum in 65_536u32..=64 << 20,
        structured: bool,
        context: bool,
    ) -> Session {
        let minimum = 1 << minimum;
        let block_sizes = BlockSizes::new(minimum, minimum.max(512), maximum).unwrap();
        Session {
            size,
            flags: TransmissionFlags::from_bits(flags).announced(structured),
            block_sizes,
            structured,
            allocation: (structured && context).then_some(1),
        }
    }
}

proptest! {
    #[test]
    fn a_checked_command_obeys_the_session(
        session in any_session(),
        command in 0u16..9,
        flags in prop_oneof![0u16..32, any::<u16>()],
        offset in prop_oneof![(0u64..50_000).prop_map(|n| n * 4096), any::<u64>()],
        len in prop_oneof![(0u32..50_000).prop_map(|n| n * 512), any::<u32>()],
    ) {
        let request = request(command, flags, offset, len);
        match session.check(&request) {
            Ok(Command::Disconnect) => prop_assert_eq!(command, wire::CMD_DISC),
            Ok(passed) => {
                if let Some((offset, len)) = passed.range() {
                    prop_assert!(len > 0);
                    prop_assert!(offset + u64::from(len) <= session.size);
                    prop_assert!(session.block_sizes.aligned(offset));
                }
                let writable = !session.flags.has(TransmissionFlags::READ_ONLY);
                prop_assert!(writable || !passed.is_write());
                prop_assert!(request.payload_len() <= session.block_sizes.maximum());
                // What passed comes back from its own bytes; only FUA may be lost,
                // where it means nothing.
                let again = passed.request(request.cookie);
                let lost = request.flags.without(again.flags);
                prop_assert!(CommandFlags::FUA.has(lost));
                prop_assert_eq!(session.check(&again), Ok(passed));
            }
            Err(refusal) => match refusal.remedy {
                Remedy::Reply => prop_assert_eq!(request.payload_len(), 0),
                Remedy::DrainThenReply(n) => prop_assert_eq!(request.payload_len(), n),
                Remedy::HangUp => prop_assert!(request.payload_len() > PAYLOAD_DRAIN_MAX),
            },
        }
    }
}
