//! The limits that we chose, each with its reason.
//!
//! The rule: whatever a peer can make us hold, count or repeat has a limit here. A
//! peer that stays within the specification's own advice never meets one.

/// The longest string the specification allows (names, descriptions, messages).
pub const STRING_MAX: usize = 4096;

/// The most options one handshake may use. A real client sends four to eight; a
/// client that lists and inspects every export of a large server one by one needs a
/// few hundred. More is a client in a loop.
pub const OPTIONS_MAX: u32 = 1024;

/// The longest option that is looked at: an export's name and three more strings of
/// full length, so a `SET_META_CONTEXT` with long queries still fits.
pub const OPTION_LEN_MAX: usize = 4 * STRING_MAX;

/// The longest option that is read, dropped and answered with `ERR_TOO_BIG`. Nothing
/// of it is kept, it costs only the reading. A longer one is not an NBD client's, and
/// the connection is dropped.
pub const OPTION_DRAIN_MAX: u32 = 1 << 20;

/// The most queries in one metadata option; one namespace exists here, so a longer
/// list cannot select anything more.
pub const META_QUERIES_MAX: u32 = 64;

/// The longest answer to one option, and so the most output a server machine ever
/// holds: a list of some ten thousand exports with usual names. A longer list is
/// answered with `ERR_TOO_BIG`.
pub const ANSWER_MAX: usize = 1 << 20;

/// The most input a handshake machine holds: one whole option or option reply, and
/// what a caller reads beyond it with one usual read.
pub const INPUT_MAX: usize = 64 << 10;

/// The longest option reply a client reads: the longest string twice (name and
/// description of an export) with its fixed fields.
pub const OPTION_REPLY_MAX: usize = 2 * STRING_MAX + 64;

/// The most replies to one option that a client reads. `GO` has four kinds of
/// information; the rest is room for kinds that are not invented yet.
pub const OPTION_REPLIES_MAX: u32 = 64;

/// The payload that every NBD program can rely on (2^25), and the default maximum.
pub const PAYLOAD_DEFAULT_MAX: u32 = 32 << 20;

/// The longest write payload that is read and dropped after a refusal. The
/// specification asks not to take anything up to 2^25 for an attack; beyond it, and
/// beyond the export's own maximum, the connection is dropped.
pub const PAYLOAD_DRAIN_MAX: u32 = 32 << 20;

/// The largest export. Offsets of files are signed 64-bit numbers everywhere below
/// us, so a larger size could never be addressed.
pub const EXPORT_SIZE_MAX: u64 = i64::MAX as u64;

/// The longest message in an error chunk that we send. Enough for a sentence, small
/// enough to keep an error's head on the stack.
pub const ERROR_MESSAGE_MAX: usize = 96;

/// The longest payload of an error chunk that a client reads: error, length, the
/// longest message, an offset, and some room for fields of unknown error kinds.
pub const ERROR_PAYLOAD_MAX: u32 = STRING_MAX as u32 + 64;

/// The most extents in one block status reply that we send: 64 KiB of reply. A client
/// asks again from where the reply ended.
pub const STATUS_EXTENTS_MAX: usize = 8192;

/// The most extents in one block status reply that a client reads: the
/// specification's own advice to servers.
pub const STATUS_EXTENTS_READ_MAX: u32 = 1 << 20;

/// The most separate pieces a client tracks of one read. A server splits where data
/// and holes meet; one that needs more pieces than this does not help anybody.
pub const READ_PIECES_MAX: usize = 1024;

/// The longest URI that is parsed: a host, and two strings of the longest length with
/// every byte percent-encoded.
pub const URI_MAX: usize = 2 * 3 * STRING_MAX + 1024;
