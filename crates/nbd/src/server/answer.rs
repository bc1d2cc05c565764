//! The bytes of a server's answers to options.
//!
//! Each function makes one whole answer, so the caller's bound on the length of an
//! answer is the bound on pending output.

use crate::codec::{cut, len32};
use crate::error::OptionError;
use crate::export::{Export, ListEntry};
use crate::limits::{ANSWER_MAX, ERROR_MESSAGE_MAX, STRING_MAX};
use crate::option::{InfoOption, put_reply};
use crate::session::Session;
use crate::wire;

/// The greeting.
pub(super) fn greeting() -> Vec<u8> {
    let flags = wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES;
    let mut out = Vec::with_capacity(wire::GREETING_LEN);
    out.extend_from_slice(&wire::INIT_MAGIC.to_be_bytes());
    out.extend_from_slice(&wire::OPTION_MAGIC.to_be_bytes());
    out.extend_from_slice(&flags.to_be_bytes());
    out
}

/// Success without content.
pub(super) fn ack(out: &mut Vec<u8>, option: u32) {
    put_reply(out, option, wire::REP_ACK, &[]);
}

/// An error with a sentence for people.
pub(super) fn error(out: &mut Vec<u8>, option: u32, error: OptionError, message: &str) {
    let message = cut(message, ERROR_MESSAGE_MAX);
    put_reply(out, option, error.wire(), &[message.as_bytes()]);
}

/// The list of exports, or `ERR_TOO_BIG` if it is longer than an answer may be.
pub(super) fn list(out: &mut Vec<u8>, exports: &[ListEntry]) {
    let start = out.len();
    for export in exports {
        let name = export.name.as_bytes();
        if name.len() > STRING_MAX {
            continue; // no client could ask for it
        }
        let description = cut(&export.description, STRING_MAX).as_bytes();
        let parts: [&[u8]; 3] = [&len32(name.len()).to_be_bytes(), name, description];
        put_reply(out, wire::OPT_LIST, wire::REP_SERVER, &parts);
        if out.len() - start > ANSWER_MAX - 2 * wire::OPTION_REPLY_HEAD_LEN {
            out.truncate(start);
            let message = "there are too many exports to list";
            return error(out, wire::OPT_LIST, OptionError::TooBig, message);
        }
    }
    ack(out, wire::OPT_LIST);
}

/// The information of `INFO` and `GO`, without the final reply. Block sizes are always
/// sent: a client that did not ask may still profit.
pub(super) fn info(
    out: &mut Vec<u8>,
    option: u32,
    wants: &InfoOption,
    export: &Export,
    session: &Session,
) {
    let mut put = |kind: u16, parts: &[&[u8]]| {
        let kind = kind.to_be_bytes();
        let mut data: Vec<&[u8]> = vec![&kind];
        data.extend_from_slice(parts);
        put_reply(out, option, wire::REP_INFO, &data);
    };
    let size = session.size.to_be_bytes();
    put(wire::INFO_EXPORT, &[&size, &session.flags.bits().to_be_bytes()]);
    if wants.wants_name {
        let name = export.name.as_deref().unwrap_or(&wants.name);
        if name.len() <= STRING_MAX {
            put(wire::INFO_NAME, &[name.as_bytes()]);
        }
    }
    if let (true, Some(text)) = (wants.wants_description, &export.description) {
        put(wire::INFO_DESCRIPTION, &[cut(text, STRING_MAX).as_bytes()]);
    }
    let sizes = export.block_sizes;
    put(
        wire::INFO_BLOCK_SIZE,
        &[
            &sizes.minimum().to_be_bytes(),
            &sizes.preferred().to_be_bytes(),
            &sizes.maximum().to_be_bytes(),
        ],
    );
}

/// The answer to `EXPORT_NAME`.
pub(super) fn export_name(out: &mut Vec<u8>, session: &Session, no_zeroes: bool) {
    out.extend_from_slice(&session.size.to_be_bytes());
    out.extend_from_slice(&session.flags.bits().to_be_bytes());
    if !no_zeroes {
        out.extend_from_slice(&[0; wire::EXPORT_NAME_ZEROES]);
    }
}

/// One metadata context.
pub(super) fn meta_context(out: &mut Vec<u8>, option: u32, id: u32) {
    let parts: [&[u8]; 2] = [&id.to_be_bytes(), wire::BASE_ALLOCATION.as_bytes()];
    put_reply(out, option, wire::REP_META_CONTEXT, &parts);
}
