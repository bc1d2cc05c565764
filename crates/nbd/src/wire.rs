//! Every number that the protocol fixes, under the names of its specification.
//!
//! The rule: a number that both sides of a connection must agree on stands here and
//! nowhere else; what we chose ourselves stands in [`crate::limits`]. All integers on
//! the wire are big-endian.

/// `NBDMAGIC`: the first eight bytes a server sends.
pub const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// `IHAVEOPT`: newstyle greeting, and the head of every option.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// The second magic of an oldstyle server, known only in order to refuse it by name.
pub const OLDSTYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
/// Head of every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Head of every request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Head of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Head of a structured reply chunk.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// The TCP port that IANA assigned to NBD.
pub const DEFAULT_PORT: u16 = 10809;

/// Length of the server's greeting.
pub const GREETING_LEN: usize = 18;
/// Length of the client's flags, which answer the greeting.
pub const CLIENT_FLAGS_LEN: usize = 4;
/// Length of an option's head.
pub const OPTION_HEAD_LEN: usize = 16;
/// Length of an option reply's head.
pub const OPTION_REPLY_HEAD_LEN: usize = 20;
/// Zero bytes after an answered `EXPORT_NAME`, unless both sides said `NO_ZEROES`.
pub const EXPORT_NAME_ZEROES: usize = 124;
/// Length of a request's head.
pub const REQUEST_LEN: usize = 28;
/// Length of a simple reply without its payload.
pub const SIMPLE_REPLY_LEN: usize = 16;
/// Length of a chunk's head without its payload.
pub const CHUNK_HEAD_LEN: usize = 20;
/// Length of an `OFFSET_DATA` chunk without its data.
pub const OFFSET_DATA_HEAD_LEN: usize = CHUNK_HEAD_LEN + 8;
/// Length of a whole `OFFSET_HOLE` chunk.
pub const OFFSET_HOLE_LEN: usize = CHUNK_HEAD_LEN + 12;
/// Length of a `BLOCK_STATUS` chunk without its extents.
pub const BLOCK_STATUS_HEAD_LEN: usize = CHUNK_HEAD_LEN + 4;
/// Length of one extent in a `BLOCK_STATUS` chunk.
pub const EXTENT_LEN: usize = 8;

/// Handshake flag, server to client: options get replies.
pub const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
/// Handshake flag, server to client: the 124 zero bytes can be left out.
pub const FLAG_NO_ZEROES: u16 = 1 << 1;
/// Client flag: the client understands replies to options.
pub const FLAG_C_FIXED_NEWSTYLE: u32 = 1 << 0;
/// Client flag: leave out the 124 zero bytes.
pub const FLAG_C_NO_ZEROES: u32 = 1 << 1;

/// Choose an export, without a way to report errors.
pub const OPT_EXPORT_NAME: u32 = 1;
/// End the negotiation.
pub const OPT_ABORT: u32 = 2;
/// List the exports.
pub const OPT_LIST: u32 = 3;
/// Start TLS.
pub const OPT_STARTTLS: u32 = 5;
/// Describe an export.
pub const OPT_INFO: u32 = 6;
/// Describe an export and enter transmission.
pub const OPT_GO: u32 = 7;
/// Use structured replies.
pub const OPT_STRUCTURED_REPLY: u32 = 8;
/// List metadata contexts.
pub const OPT_LIST_META_CONTEXT: u32 = 9;
/// Select metadata contexts.
pub const OPT_SET_META_CONTEXT: u32 = 10;

/// The option is done.
pub const REP_ACK: u32 = 1;
/// One export of a list.
pub const REP_SERVER: u32 = 2;
/// One piece of information about an export.
pub const REP_INFO: u32 = 3;
/// One metadata context.
pub const REP_META_CONTEXT: u32 = 4;
/// The bit that all error replies have.
pub const REP_ERROR_BIT: u32 = 1 << 31;
/// The option is unknown here.
pub const REP_ERR_UNSUP: u32 = REP_ERROR_BIT + 1;
/// The option is forbidden here.
pub const REP_ERR_POLICY: u32 = REP_ERROR_BIT + 2;
/// The option makes no sense.
pub const REP_ERR_INVALID: u32 = REP_ERROR_BIT + 3;
/// The option is not possible on this platform.
pub const REP_ERR_PLATFORM: u32 = REP_ERROR_BIT + 4;
/// TLS must come first.
pub const REP_ERR_TLS_REQD: u32 = REP_ERROR_BIT + 5;
/// There is no such export.
pub const REP_ERR_UNKNOWN: u32 = REP_ERROR_BIT + 6;
/// The server is stopping.
pub const REP_ERR_SHUTDOWN: u32 = REP_ERROR_BIT + 7;
/// The client must ask for the block sizes.
pub const REP_ERR_BLOCK_SIZE_REQD: u32 = REP_ERROR_BIT + 8;
/// The option or its answer is too long.
pub const REP_ERR_TOO_BIG: u32 = REP_ERROR_BIT + 9;

/// Size and transmission flags.
pub const INFO_EXPORT: u16 = 0;
/// The export's own name.
pub const INFO_NAME: u16 = 1;
/// A description for people.
pub const INFO_DESCRIPTION: u16 = 2;
/// Minimum, preferred and maximum sizes.
pub const INFO_BLOCK_SIZE: u16 = 3;

/// The one metadata context that this crate knows.
pub const BASE_ALLOCATION: &str = "base:allocation";
/// The query that lists all contexts of the `base` namespace.
pub const BASE_WILDCARD: &str = "base:";

/// Read.
pub const CMD_READ: u16 = 0;
/// Write; the only request that a payload follows.
pub const CMD_WRITE: u16 = 1;
/// Disconnect; the only request without a reply.
pub const CMD_DISC: u16 = 2;
/// Flush.
pub const CMD_FLUSH: u16 = 3;
/// Trim (discard).
pub const CMD_TRIM: u16 = 4;
/// Prefetch.
pub const CMD_CACHE: u16 = 5;
/// Write zeroes.
pub const CMD_WRITE_ZEROES: u16 = 6;
/// Ask for the allocation of a range.
pub const CMD_BLOCK_STATUS: u16 = 7;

/// This chunk is the last of its reply.
pub const REPLY_FLAG_DONE: u16 = 1 << 0;
/// A chunk without content.
pub const REPLY_NONE: u16 = 0;
/// A chunk of data.
pub const REPLY_OFFSET_DATA: u16 = 1;
/// A range that reads as zeroes.
pub const REPLY_OFFSET_HOLE: u16 = 2;
/// Extents of one metadata context.
pub const REPLY_BLOCK_STATUS: u16 = 5;
/// The bit that all error chunks have.
pub const REPLY_ERROR_BIT: u16 = 1 << 15;
/// An error.
pub const REPLY_ERROR: u16 = REPLY_ERROR_BIT + 1;
/// An error at an offset.
pub const REPLY_ERROR_OFFSET: u16 = REPLY_ERROR_BIT + 2;

/// The extent is not allocated.
pub const STATE_HOLE: u32 = 1 << 0;
/// The extent reads as zeroes.
pub const STATE_ZERO: u32 = 1 << 1;

/// Operation not permitted.
pub const EPERM: u32 = 1;
/// Input or output error.
pub const EIO: u32 = 5;
/// Out of memory.
pub const ENOMEM: u32 = 12;
/// Invalid argument.
pub const EINVAL: u32 = 22;
/// No space left.
pub const ENOSPC: u32 = 28;
/// Value too large.
pub const EOVERFLOW: u32 = 75;
/// Not supported.
pub const ENOTSUP: u32 = 95;
/// The server is stopping.
pub const ESHUTDOWN: u32 = 108;
