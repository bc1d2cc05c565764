//! What an application does to its disk.

use std::fmt;

use sterna_core::{Bytes, Nanos};

/// Lengths and places of requests are multiples of this: the smallest sector.
const SECTOR: u32 = 512;
/// The longest request: what the servers that are in use take.
const LENGTH_MAX: u32 = 32 << 20;
/// The most requests under way: more than a device's queue has places.
const OUTSTANDING_MAX: u32 = 1024;
/// The highest rate, per second: above what one connection can carry.
const RATE_MAX: f64 = 1e6;

/// Where requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Anywhere in the span, each place as often as any other; aligned to the
    /// smallest length.
    Random,
    /// Each where the one before ended; from the end of the span on to its beginning.
    Sequential,
}

/// How long requests are: multiples of the smallest, each as often as any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Bytes at least, a multiple of 512.
    pub least: u32,
    /// Bytes at most, a multiple of `least`, up to 32 MiB.
    pub most: u32,
}

impl Lengths {
    /// Always so many bytes.
    pub const fn always(bytes: u32) -> Lengths {
        Lengths { least: bytes, most: bytes }
    }
}

/// When requests are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A closed loop: so many (1 to 1024) are under way, and the next one is made
    /// when one is answered.
    Closed {
        /// How many are under way.
        outstanding: u32,
    },
    /// An open loop: they come at random moments (a Poisson process), however many
    /// have no answer yet.
    Open {
        /// Requests per second on average, above zero and up to a million.
        rate: f64,
    },
}

/// An application that works, rests, and works again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// How long it makes requests, above zero.
    pub on: Nanos,
    /// How long it makes none.
    pub off: Nanos,
}

/// An application, as its disk knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Where requests go.
    pub order: Order,
    /// Reads in a hundred requests; the others are writes.
    pub reads: u32,
    /// How long they are.
    pub lengths: Lengths,
    /// When they are made.
    pub pace: Pace,
    /// A flush after so many writes, above zero; none if absent.
    pub flush_every: Option<u32>,
    /// Work and rest; without rest if absent.
    pub bursts: Option<Bursts>,
    /// The part of the disk that is used, from its first byte on; all if absent.
    pub span: Option<Bytes>,
}

impl Profile {
    /// A database with many users: 8 KiB, random, 70 % reads, 16 at a time (the mix
    /// that vendors call OLTP).
    pub const fn oltp() -> Profile {
        Profile {
            order: Order::Random,
            reads: 70,
            lengths: Lengths::always(8 << 10),
            pace: Pace::Closed { outstanding: 16 },
            flush_every: None,
            bursts: None,
            span: None,
        }
    }

    /// A backup that reads a disk from end to end: 256 KiB, 8 at a time.
    pub const fn backup() -> Profile {
        Profile {
            order: Order::Sequential,
            reads: 100,
            lengths: Lengths::always(256 << 10),
            pace: Pace::Closed { outstanding: 8 },
            ..Profile::oltp()
        }
    }

    /// A tool that only makes load: 4 to 64 KiB, random, half of it reads, 32 at a
    /// time.
    pub const fn stress() -> Profile {
        Profile {
            reads: 50,
            lengths: Lengths { least: 4 << 10, most: 64 << 10 },
            pace: Pace::Closed { outstanding: 32 },
            ..Profile::oltp()
        }
    }

    /// A database's log: writes of 4 to 60 KiB one behind the other, each made
    /// durable before the next.
    pub const fn log() -> Profile {
        Profile {
            order: Order::Sequential,
            reads: 0,
            lengths: Lengths { least: 4 << 10, most: 60 << 10 },
            pace: Pace::Closed { outstanding: 1 },
            flush_every: Some(1),
            bursts: None,
            span: None,
        }
    }

    /// A database's tables and indices, as an array sees them behind the database's
    /// own cache: random reads of 64 KiB, 16 at a time.
    pub const fn random_reader() -> Profile {
        Profile { reads: 100, lengths: Lengths::always(64 << 10), ..Profile::oltp() }
    }

    /// The same, at a rate of its own.
    pub const fn at_rate(self, rate: f64) -> Profile {
        Profile { pace: Pace::Open { rate }, ..self }
    }

    /// The same, in bursts.
    pub const fn in_bursts(self, on: Nanos, off: Nanos) -> Profile {
        Profile { bursts: Some(Bursts { on, off }), ..self }
    }

    /// The same, in the first so many bytes of the disk.
    pub const fn within(self, span: Bytes) -> Profile {
        Profile { span: Some(span), ..self }
    }

    /// The bytes that are used of a disk of so many; refuses a profile that makes no
    /// sense, or not on that disk.
    pub fn span_on(&self, disk: Bytes) -> Result<Bytes, ProfileError> {
        let Lengths { least, most } = self.lengths;
        if least == 0 || least % SECTOR != 0 || most < least || most % least != 0 {
            return Err(ProfileError::Lengths(self.lengths));
        }
        if most > LENGTH_MAX {
            return Err(ProfileError::TooLong(most));
        }
        if self.reads > 100 {
            return Err(ProfileError::Reads(self.reads));
        }
        if self.flush_every == Some(0) {
            return Err(ProfileError::FlushEvery);
        }
        if self.bursts.is_some_and(|bursts| bursts.on == Nanos(0)) {
            return Err(ProfileError::Bursts);
        }
        match self.pace {
            Pace::Closed { outstanding: 1..=OUTSTANDING_MAX } => {}
            Pace::Closed { outstanding } => {
                return Err(ProfileError::Outstanding(outstanding));
            }
            Pace::Open { rate } if rate > 0.0 && rate <= RATE_MAX => {}
            Pace::Open { rate } => return Err(ProfileError::Rate(rate)),
        }
        let span = self.span.unwrap_or(disk);
        if span > disk || span.0 < u64::from(most) {
            return Err(ProfileError::Span { span, disk, longest: most });
        }
        Ok(span)
    }
}

impl fmt::Display for Profile {
    /// `random, 8.00 KiB, 70 % reads, 16 under way`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match self.order {
            Order::Random => "random",
            Order::Sequential => "sequential",
        };
        let Lengths { least, most } = self.lengths;
        write!(f, "{order}, {}", Bytes(least.into()))?;
        if most > least {
            write!(f, " to {}", Bytes(most.into()))?;
        }
        write!(f, ", {} % reads", self.reads)?;
        match self.pace {
            Pace::Closed { outstanding } => write!(f, ", {outstanding} under way")?,
            Pace::Open { rate } => write!(f, ", {rate} a second at random moments")?,
        }
        if let Some(every) = self.flush_every {
            write!(f, ", a flush after each {every}")?;
        }
        if let Some(Bursts { on, off }) = self.bursts {
            write!(f, ", on for {on} and off for {off}")?;
        }
        match self.span {
            Some(span) => write!(f, ", in the first {span}"),
            None => Ok(()),
        }
    }
}

/// Why a profile makes no sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProfileError {
    /// The lengths do not fit each other.
    Lengths(Lengths),
    /// Requests of so many bytes are too long.
    TooLong(u32),
    /// More than a hundred reads in a hundred.
    Reads(u32),
    /// A flush after no write.
    FlushEvery,
    /// Bursts of no length.
    Bursts,
    /// So many can't be under way.
    Outstanding(u32),
    /// No rate.
    Rate(f64),
    /// The span is not on the disk, or a request does not fit into it.
    Span {
        /// The span.
        span: Bytes,
        /// The disk.
        disk: Bytes,
        /// The longest request, in bytes.
        longest: u32,
    },
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ProfileError::Lengths(Lengths { least, most }) => write!(
                f,
                "requests of {least} to {most} bytes: the least must be a multiple of \
                 {SECTOR}, the most a multiple of the least"
            ),
            ProfileError::TooLong(bytes) => {
                write!(f, "requests of {bytes} bytes: {LENGTH_MAX} at most")
            }
            ProfileError::Reads(reads) => {
                write!(f, "{reads} reads in 100 requests: 100 at most")
            }
            ProfileError::FlushEvery => {
                f.write_str("a flush after 0 writes: 1 at least, or none at all")
            }
            ProfileError::Bursts => f.write_str("bursts of no length"),
            ProfileError::Outstanding(count) => {
                write!(f, "{count} requests under way: 1 to {OUTSTANDING_MAX}")
            }
            ProfileError::Rate(rate) => {
                write!(f, "{rate} requests per second: above 0 and at most {RATE_MAX}")
            }
            ProfileError::Span { span, disk, longest } => write!(
                f,
                "the first {span} of a disk of {disk}: it must be on the disk and hold \
                 a request of {longest} bytes"
            ),
        }
    }
}

impl std::error::Error for ProfileError {}
