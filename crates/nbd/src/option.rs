//! Options and the data inside them, in both directions.
//!
//! The rule: an option's data is taken only if its lengths fit each other exactly;
//! what is left over is as wrong as what is missing.

use crate::codec::{Reader, len32, put_counted, string};
use crate::limits::META_QUERIES_MAX;
use crate::wire;

/// The head of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionHead {
    pub(crate) option: u32,
    pub(crate) len: u32,
}

impl OptionHead {
    /// `None` if the magic is wrong.
    pub(crate) fn parse(bytes: &[u8; wire::OPTION_HEAD_LEN]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.u64()? != wire::OPTION_MAGIC {
            return None;
        }
        Some(Self { option: reader.u32()?, len: reader.u32()? })
    }
}

/// Appends a whole option.
pub(crate) fn put_option(out: &mut Vec<u8>, option: u32, data: &[u8]) {
    out.extend_from_slice(&wire::OPTION_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&len32(data.len()).to_be_bytes());
    out.extend_from_slice(data);
}

/// Appends a whole reply to an option.
pub(crate) fn put_reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[&[u8]]) {
    let len = data.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&wire::OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&len32(len).to_be_bytes());
    for part in data {
        out.extend_from_slice(part);
    }
}

/// The data of `INFO` and `GO`: an export and what the client wants to know of it.
/// Unknown and repeated information types are dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InfoOption {
    pub(crate) name: String,
    pub(crate) wants_name: bool,
    pub(crate) wants_description: bool,
    pub(crate) wants_block_sizes: bool,
}

impl InfoOption {
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(data);
        let mut option = Self {
            name: reader.counted_string()?.to_owned(),
            wants_name: false,
            wants_description: false,
            wants_block_sizes: false,
        };
        for _ in 0..reader.u16()? {
            match reader.u16()? {
                wire::INFO_NAME => option.wants_name = true,
                wire::INFO_DESCRIPTION => option.wants_description = true,
                wire::INFO_BLOCK_SIZE => option.wants_block_sizes = true,
                _ => {}
            }
        }
        reader.is_empty().then_some(option)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let wants = [
            (self.wants_name, wire::INFO_NAME),
            (self.wants_description, wire::INFO_DESCRIPTION),
            (self.wants_block_sizes, wire::INFO_BLOCK_SIZE),
        ];
        let mut out = Vec::new();
        put_counted(&mut out, &self.name);
        let count = wants.iter().filter(|(on, _)| *on).count() as u16;
        out.extend_from_slice(&count.to_be_bytes());
        for (_, kind) in wants.iter().filter(|(on, _)| *on) {
            out.extend_from_slice(&kind.to_be_bytes());
        }
        out
    }
}

/// The data of `LIST_META_CONTEXT` and `SET_META_CONTEXT`, reduced to what matters
/// here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MetaOption {
    pub(crate) name: String,
    /// No query at all: for a list it means everything, for a selection nothing.
    pub(crate) no_query: bool,
    /// `base:allocation` was among the queries.
    pub(crate) allocation: bool,
    /// `base:` was among the queries.
    pub(crate) wildcard: bool,
}

/// Why the data of a metadata option is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadMeta {
    Malformed,
    TooMany,
}

impl MetaOption {
    pub(crate) fn parse(data: &[u8]) -> Result<Self, BadMeta> {
        let mut reader = Reader::new(data);
        let name = reader.counted_string().ok_or(BadMeta::Malformed)?.to_owned();
        let count = reader.u32().ok_or(BadMeta::Malformed)?;
        if count > META_QUERIES_MAX {
            return Err(BadMeta::TooMany);
        }
        let mut option =
            Self { name, no_query: count == 0, allocation: false, wildcard: false };
        for _ in 0..count {
            match reader.counted_string().ok_or(BadMeta::Malformed)? {
                wire::BASE_ALLOCATION => option.allocation = true,
                wire::BASE_WILDCARD => option.wildcard = true,
                _ => {}
            }
        }
        if reader.is_empty() { Ok(option) } else { Err(BadMeta::Malformed) }
    }

    /// The data that selects `base:allocation` on an export.
    pub(crate) fn select_allocation(name: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_counted(&mut out, name);
        out.extend_from_slice(&1u32.to_be_bytes());
        put_counted(&mut out, wire::BASE_ALLOCATION);
        out
    }
}

/// The head of a reply to an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionReplyHead {
    pub(crate) option: u32,
    pub(crate) kind: u32,
    pub(crate) len: u32,
}

impl OptionReplyHead {
    /// `None` if the magic is wrong.
    pub(crate) fn parse(bytes: &[u8; wire::OPTION_REPLY_HEAD_LEN]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.u64()? != wire::OPTION_REPLY_MAGIC {
            return None;
        }
        Some(Self { option: reader.u32()?, kind: reader.u32()?, len: reader.u32()? })
    }
}

/// The name of an `EXPORT_NAME`, whose data is nothing else.
pub(crate) fn export_name(data: &[u8]) -> Option<String> {
    string(data).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn go_has_the_bytes_of_the_specification() {
        let option = InfoOption {
            name: "disk".to_owned(),
            wants_name: false,
            wants_description: false,
            wants_block_sizes: true,
        };
        let mut out = Vec::new();
        put_option(&mut out, wire::OPT_GO, &option.encode());
        let mut want = b"IHAVEOPT".to_vec();
        want.extend_from_slice(&[0, 0, 0, 7, 0, 0, 0, 12]);
        want.extend_from_slice(&[0, 0, 0, 4, b'd', b'i', b's', b'k', 0, 1, 0, 3]);
        assert_eq!(out, want);
    }

    #[test]
    fn left_over_bytes_make_an_option_malformed() {
        let mut data = MetaOption::select_allocation("disk");
        assert!(MetaOption::parse(&data).unwrap().allocation);
        data.push(0);
        assert_eq!(MetaOption::parse(&data), Err(BadMeta::Malformed));
        assert_eq!(InfoOption::parse(&[0, 0, 0, 0, 0, 0, 1]), None);
    }

    proptest! {
        #[test]
        fn info_options_survive_the_wire(
            name in "[^\0]{0,60}", wants_name: bool, wants_description: bool,
            wants_block_sizes: bool,
        ) {
            let option =
                InfoOption { name, wants_name, wants_description, wants_block_sizes };
            prop_assert_eq!(InfoOption::parse(&option.encode()), Some(option));
        }

        #[test]
        fn any_bytes_are_an_option_or_refused(data: Vec<u8>) {
            let _ = InfoOption::parse(&data);
            let _ = MetaOption::parse(&data);
            let _ = export_name(&data);
        }
    }
}
