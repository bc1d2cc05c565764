//! The two sets of flags of the transmission phase.
//!
//! [`TransmissionFlags`] are the server's word about an export; [`CommandFlags`] come
//! with each request. Both keep bits that they do not know: the reader of an export's
//! flags has to ignore those, the checker of a request has to refuse them.

use std::ops::{BitOr, BitOrAssign};

macro_rules! flag_set {
    ($(#[$doc:meta])* $name:ident { $($(#[$flag_doc:meta])* $flag:ident = $bit:expr;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(u16);

        impl $name {
            /// No flag.
            pub const NONE: Self = Self(0);
            $($(#[$flag_doc])* pub const $flag: Self = Self(1 << $bit);)*
            /// All flags that this crate knows.
            pub const KNOWN: Self = Self(0 $(| 1 << $bit)*);

            /// The flags as they came over the wire, unknown ones included.
            #[must_use]
            pub const fn from_bits(bits: u16) -> Self {
                Self(bits)
            }

            /// The flags as they go over the wire.
            #[must_use]
            pub const fn bits(self) -> u16 {
                self.0
            }

            /// Whether all of `other` are set.
            #[must_use]
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// These flags and those of `other`.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// These flags without those of `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// These flags, and `other` where `on` holds.
            #[must_use]
            pub const fn with_if(self, on: bool, other: Self) -> Self {
                if on { self.with(other) } else { self }
            }

            /// Whether no flag is set.
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
        }

        impl BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                self.with(other)
            }
        }

        impl BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                *self = self.with(other);
            }
        }
    };
}

flag_set! {
    /// What an export can do.
    TransmissionFlags {
        /// Always set on the wire; the machines see to it.
        HAS_FLAGS = 0;
        /// Writes are refused.
        READ_ONLY = 1;
        /// `Flush` is served.
        SEND_FLUSH = 2;
        /// The `FUA` command flag is honoured.
        SEND_FUA = 3;
        /// The export has the manners of a rotating disk.
        ROTATIONAL = 4;
        /// `Trim` is served.
        SEND_TRIM = 5;
        /// `WriteZeroes` and its `NO_HOLE` flag are served.
        SEND_WRITE_ZEROES = 6;
        /// The `DF` command flag is honoured; needs structured replies.
        SEND_DF = 7;
        /// A flush on one connection covers the writes of all connections.
        CAN_MULTI_CONN = 8;
        /// `Cache` is served.
        SEND_CACHE = 10;
        /// The `FAST_ZERO` command flag is honoured.
        SEND_FAST_ZERO = 11;
    }
}

flag_set! {
    /// What one request asks for beside its command.
    CommandFlags {
        /// Reply only when the data is on stable storage.
        FUA = 0;
        /// `WriteZeroes`: keep the range allocated.
        NO_HOLE = 1;
        /// `Read`: reply with one piece of content.
        DF = 2;
        /// `BlockStatus`: reply with one extent.
        REQ_ONE = 3;
        /// `WriteZeroes`: fail at once if it would be as slow as a write.
        FAST_ZERO = 4;
    }
}

impl TransmissionFlags {
    /// The flags as a server may announce them: `HAS_FLAGS` set, nothing unknown, and
    /// nothing whose precondition is missing (`DF` without structured replies,
    /// `FAST_ZERO` without `WRITE_ZEROES`, commands that change a read-only export).
    #[must_use]
    pub const fn announced(self, structured: bool) -> Self {
        let mut flags = Self(self.0 & Self::KNOWN.0).with(Self::HAS_FLAGS);
        if !structured {
            flags = flags.without(Self::SEND_DF);
        }
        if flags.has(Self::READ_ONLY) {
            flags = flags.without(Self::SEND_TRIM.with(Self::SEND_WRITE_ZEROES));
        }
        if !flags.has(Self::SEND_WRITE_ZEROES) {
            flags = flags.without(Self::SEND_FAST_ZERO);
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_have_the_bits_of_the_specification() {
        assert_eq!(TransmissionFlags::CAN_MULTI_CONN.bits(), 0x100);
        assert_eq!(TransmissionFlags::SEND_FAST_ZERO.bits(), 0x800);
        assert_eq!(TransmissionFlags::KNOWN.bits(), 0xdff);
        assert_eq!(CommandFlags::KNOWN.bits(), 0x1f);
    }

    #[test]
    fn an_announcement_has_nothing_that_lacks_its_precondition() {
        type F = TransmissionFlags;
        let all = F::from_bits(0xffff);
        let read_only = all.announced(true);
        assert!(!read_only.has(F::SEND_TRIM) && !read_only.has(F::SEND_FAST_ZERO));
        assert!(read_only.has(F::SEND_DF) && !all.announced(false).has(F::SEND_DF));
        assert_eq!(read_only.without(F::KNOWN), F::NONE, "nothing unknown");
        assert_eq!(F::SEND_FAST_ZERO.announced(true), F::HAS_FLAGS);
        assert_eq!(F::NONE.announced(false), F::HAS_FLAGS);
    }
}
