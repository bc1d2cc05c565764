//! Serving disks over NBD.
//!
//! A connection shakes hands on reactor 0 (`handshake`) and is then handed to
//! the reactor of its disk, where it stays (`connection`). All that it does
//! happens in three steps of an iteration of the loop: what was received is cut into
//! commands (`receive`) and these into requests of the disk (`commands`); answers
//! become replies (`commands`); all replies of an iteration leave in one message
//! (`output`). So a burst of requests costs one receive, one system
//! call for all its disk operations, and one send.
//!
//! **Pieces.** A command moves its bytes in requests of at most `PIECE`. A
//! longer read or write works through two buffers in turn, however long it is
//! (and when memory is short, those two are small). Where the protocol lets it,
//! each piece of a long read is a chunk of its own; else (simple replies, or the
//! client set `DF`) its head promises the whole, and if a later piece cannot be
//! read the connection is dropped, as there is no other way left to say so.
//!
//! **Memory.** Buffers come from the reactor's pool, whose size is fixed
//! (`memory` says who may take how much). If a command cannot get its buffers,
//! its connection waits: in line for memory, or for the admissions of its own disk. Of its
//! socket it reads no more then but the heads of what it can start later (`ahead`).
//!
//! *Nobody waits for ever.* A command takes all buffers that it will ever need
//! at once, before it starts. So nobody waits for memory that is needed to free
//! the memory it holds, and what is held is held for one of four things: a
//! disk operation, which ends; an admission, which comes, though where a class is held
//! to a rate it may come late, so that less is lent for it; a client that sends
//! the rest of its payload; a client that takes its replies. The last two end as
//! well, because a client that has sent hardly anything for `STALL`, or taken hardly anything
//! for twice as long, while someone waits for memory is disconnected. A long read whose reply
//! must be in one part owns the connection's output until it is done, and has its own two
//! buffers to get it done with; it needs none of the answers that wait behind it. The line is
//! first come first served, so a large command is not overtaken for ever by small ones.
//!
//! **Any offset and length** is served to clients that have not asked for the block sizes
//! (`blocks`); to others, multiples of a block.
//!
//! **A client can send anything.** What it can make us hold is bounded by the
//! constants here and those of `sterna_nbd::limits`; a wrong request gets its
//! error reply, or the connection is dropped where the protocol has no way on.
//! A request that has started is carried out even if the client goes away; one that
//! still waits for admission then is dropped (see `disk`).

mod ahead;
mod blocks;
mod commands;
pub(crate) mod connection;
pub(crate) mod handshake;
pub(crate) mod memory;
mod output;
mod receive;
pub(crate) mod vhost;

use sterna_core::Nanos;

/// Connections in all. A hall of a thousand VMs with four connections each fits; each
/// idle one costs a receive buffer of `RECEIVE_MIN` and a file descriptor. So all of them
/// leave the guests' requests half of the memory, or more. Where fewer files may be open,
/// there are fewer (`Config::descriptors`).
pub(crate) const CONNECTIONS_MAX: usize = 4096;

/// Connections that are shaking hands: those of strangers and of clients that are just
/// starting. Where there are more, the oldest goes, not the newest: a client is through
/// in a few round trips, so strangers who say nothing keep nobody out. (While the
/// kernel ends those that go, there may be as many of them again.)
pub(crate) const HANDSHAKES_MAX: usize = 128;

/// Connections that are accepted in one iteration of the loop: those who are served already
/// are served in between.
pub(crate) const ACCEPTS_MAX: usize = 32;

/// A handshake takes a few round trips; who needs longer than this is no client.
pub(crate) const HANDSHAKE_TIME: Nanos = Nanos::from_secs(10);

/// Commands of one connection that were read, and whose replies have not left. More
/// than any device's queue needs from one client.
const IN_FLIGHT_MAX: usize = 128;

/// The longest request of a disk: long enough for full throughput, short enough
/// that the buffers of a queue of them fit into the budget.
pub(crate) const PIECE: usize = 1 << 20;

/// What is only marked (zeroes, discards) moves no bytes; its pieces bound how long the
/// mirror and the file system are busy with one.
const MARK_PIECE: u64 = 64 << 20;

/// The first receive buffer: more than a hundred requests without payload.
const RECEIVE_MIN: usize = 4 << 10;

/// The receive buffer of a busy writer: some thirty requests with 4 KiB each.
const RECEIVE_MAX: usize = 128 << 10;

/// Payloads up to this much are copied out of the receive buffer; for longer
/// ones the rest is received where it will be written from.
const COPY_MAX: usize = 16 << 10;

/// A client that neither sends the payload it announced (but for a byte now and then) nor takes
/// its replies for so long is dropped when others need the memory.
pub(crate) const STALL: Nanos = Nanos::from_secs(30);

/// Extents in one reply: 2 KiB. The client asks again for the rest.
const EXTENTS_MAX: usize = 256;

/// Replies leave in messages of about this much, so that the memory of the
/// first is free again before the last has left.
const MESSAGE_BYTES: usize = 1 << 20;
