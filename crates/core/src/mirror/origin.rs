//! Whether a region map that is found again may be believed.
//!
//! # Rule
//!
//! A map says what was equal when its last writer wrote it. It is believed if nothing can
//! have changed since then but by that writer: the map's own file, the source and the
//! destination lie on the storage that they lay on, in the same boot, and nobody else has
//! written to either image. Whatever of that cannot be known counts as changed: comparing
//! costs time, believing costs data.
//!
//! - *Another boot*, or the map's own file system mounted anew: the map may be older than
//!   the images, so not even "never written" is certain.
//! - *The destination's storage is another one*: mounted anew (what a file system check
//!   made of it nobody knows), a device that was replaced, a file that was. The same.
//! - *The source's is*: what it had answered and not flushed may be gone. Both sides are
//!   compared; the source is the truth.
//! - *Somebody else has written* to an image: it changed later than our last write, or has
//!   another size. The file system says when it changed by this machine's clock; where it
//!   goes by another clock (a server's), that cannot be told. On the destination it may
//!   have been where the copy never wrote: not even "never written" is certain.
//! - *A connection* (NBD) ends with the process that had it, or when it is closed: another
//!   one is another one. Who wrote to the server's volume meanwhile, or put back an older
//!   state of it, nobody knows.
//!
//! A kill changes none of these, so what a flush covers is believed after it. What no
//! flush covers the map does not call equal in the first place (see `trust`): so it is of
//! no account whether the kernel could write it, and whether it told the process that is
//! gone.

use std::fmt;

use super::Doubt;
use crate::Nanos;

/// How much later than our last noted write an image may have changed and still count as
/// changed by us. A write is noted when it is asked for, not more often than each 10 ms;
/// the file system notes it when it begins, by a clock that ticks each 10 ms at most.
/// Whoever starts a machine from the image writes to it for longer than this.
pub const NOTED_LATE: Nanos = Nanos::from_millis(100);

/// Where something is stored, as far as it is known again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// It is not known again.
    #[default]
    Unknown,
    /// A file system, from its mounting to its unmounting.
    Mounted {
        /// What the kernel calls this mounting, and no other one of this boot.
        instance: u64,
        /// The file in it.
        file: u64,
    },
    /// A block device, from its coming to its going.
    Device {
        /// The kernel's sequence number of it.
        sequence: u64,
    },
}

impl Storage {
    /// By what it is called in an account; nothing if it is not known again.
    pub fn name(&self) -> Option<String> {
        match self {
            Storage::Unknown => None,
            Storage::Mounted { instance, file } => {
                Some(format!("mounting {instance} file {file}"))
            }
            Storage::Device { sequence } => Some(format!("device {sequence}")),
        }
    }
}

/// An image, as far as it is known again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Where it is.
    pub storage: Storage,
    /// Its size in bytes.
    pub size: u64,
}

/// An image as it is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What it is known by.
    pub origin: Origin,
    /// When it last changed, by this machine's clock (since 1970), if that is known.
    pub changed: Option<Nanos>,
}

/// What a map says of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// Which boot of the machine it was.
    pub boot: [u8; 16],
    /// Where the map was.
    pub map: Storage,
    /// What was copied.
    pub source: Origin,
    /// Where to.
    pub destination: Origin,
    /// When something was last written to either image, at the latest (since 1970).
    pub wrote: Nanos,
    /// The same of the destination alone: while a migration stands still, its guest goes on
    /// writing to the source, and what others write to the copy is not to hide behind that.
    pub copied: Nanos,
}

/// What is there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// Which boot of the machine it is.
    pub boot: [u8; 16],
    /// Where the map is.
    pub map: Storage,
    /// What is to be copied.
    pub source: Found,
    /// Where to.
    pub destination: Found,
    /// The time (since 1970).
    pub now: Nanos,
}

/// Why a map is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
    /// The map does not say of which time it is: an earlier Sterna made it, which believed
    /// answers, or that part of it is damaged.
    Undated,
    /// The machine was started anew.
    Boot,
    /// The map's own file system was mounted anew, or it is not known whether it was.
    Map,
    /// The image's storage is not the one that it was.
    Another(Side),
    /// The image's storage is not of a kind that is known again.
    Unknown(Side),
    /// Somebody else wrote to the image, or gave it another size.
    Written(Side),
    /// Whether somebody else wrote to the image is not known.
    Unwatched(Side),
}

/// Of which image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The source.
    Source,
    /// The destination.
    Destination,
}

impl Suspicion {
    /// What is not believed because of it.
    pub fn doubt(self) -> Doubt {
        match self {
            Suspicion::Undated | Suspicion::Boot | Suspicion::Map => Doubt::Everything,
            // Somebody may have written where the copy never did.
            Suspicion::Another(Side::Destination)
            | Suspicion::Written(Side::Destination)
            | Suspicion::Unknown(Side::Destination)
            | Suspicion::Unwatched(Side::Destination) => Doubt::Everything,
            // What it is now is the truth, and the destination has got nothing by that.
            Suspicion::Another(Side::Source)
            | Suspicion::Written(Side::Source)
            | Suspicion::Unknown(Side::Source)
            | Suspicion::Unwatched(Side::Source) => Doubt::Equal,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Source => "source",
            Side::Destination => "destination",
        })
    }
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Suspicion::Undated => {
                f.write_str("the region map does not say when it was written")
            }
            Suspicion::Boot => f.write_str("this machine was restarted"),
            Suspicion::Map => f.write_str(
                "the state directory's file system was mounted anew, or may have been",
            ),
            Suspicion::Another(side) => {
                write!(
                    f,
                    "the {side}'s storage was mounted anew, or is different storage"
                )
            }
            Suspicion::Unknown(side) => {
                write!(f, "it is unknown whether the {side}'s storage is the same")
            }
            Suspicion::Written(side) => {
                write!(f, "another program may have written to the {side} image")
            }
            Suspicion::Unwatched(side) => {
                write!(f, "it is unknown whether another program wrote to the {side}")
            }
        }
    }
}

/// Why a map of that past is not believed now, the gravest reason first; nothing if it is.
/// A map without a past is not.
pub fn suspicion(past: Option<&Past>, present: &Present) -> Option<Suspicion> {
    let Some(past) = past else { return Some(Suspicion::Undated) };
    if past.boot != present.boot {
        return Some(Suspicion::Boot);
    }
    if past.map == Storage::Unknown || past.map != present.map {
        return Some(Suspicion::Map);
    }
    let of = |side, was, is, left| suspicion_of(side, was, is, left, present.now);
    let (there, copied) = (&past.destination, past.copied);
    let destination = of(Side::Destination, there, &present.destination, copied);
    let source = of(Side::Source, &past.source, &present.source, past.wrote);
    let grave = |it: &Suspicion| it.doubt() == Doubt::Everything;
    destination.filter(grave).or(source).or(destination)
}

/// The same of one image, which was left at `wrote` at the latest: it is opened anew.
pub fn suspicion_of(
    side: Side,
    was: &Origin,
    is: &Found,
    wrote: Nanos,
    now: Nanos,
) -> Option<Suspicion> {
    if was.storage == Storage::Unknown || is.origin.storage == Storage::Unknown {
        return Some(Suspicion::Unknown(side));
    }
    if was.storage != is.origin.storage {
        return Some(Suspicion::Another(side));
    }
    if was.size != is.origin.size {
        return Some(Suspicion::Written(side));
    }
    match is.changed {
        // A clock that was set back says nothing.
        None => Some(Suspicion::Unwatched(side)),
        Some(_) if wrote > now => Some(Suspicion::Unwatched(side)),
        Some(at) => (at > wrote.plus(NOTED_LATE)).then_some(Suspicion::Written(side)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WROTE: Nanos = Nanos::from_secs(1000);

    fn origin(file: u64) -> Origin {
        Origin { storage: Storage::Mounted { instance: 7, file }, size: 1 << 30 }
    }

    fn past() -> Past {
        Past {
            boot: [1; 16],
            map: Storage::Mounted { instance: 6, file: 1 },
            source: origin(2),
            destination: origin(3),
            wrote: WROTE,
            copied: WROTE,
        }
    }

    fn present() -> Present {
        let past = past();
        let found = |origin| Found { origin, changed: Some(WROTE.plus(NOTED_LATE)) };
        Present {
            boot: past.boot,
            map: past.map,
            source: found(past.source),
            destination: found(past.destination),
            now: Nanos::from_secs(2000),
        }
    }

    fn of(change: impl FnOnce(&mut Past, &mut Present)) -> Option<Suspicion> {
        let (mut past, mut present) = (past(), present());
        change(&mut past, &mut present);
        suspicion(Some(&past), &present)
    }

    #[test]
    fn a_map_is_believed_where_nothing_but_its_writer_can_have_changed_anything() {
        assert_eq!(of(|_, _| ()), None);
    }

    #[test]
    fn whatever_has_changed_is_named_and_doubted() {
        use Side::{Destination, Source};
        let remounted = Storage::Mounted { instance: 8, file: 3 };
        let later = Some(WROTE.plus(NOTED_LATE).plus(Nanos(1)));
        let boot = of(|_, now| now.boot = [2; 16]);
        assert_eq!(boot, Some(Suspicion::Boot));
        let map = of(|_, now| now.map = remounted);
        assert_eq!(map, Some(Suspicion::Map));
        let mounted = of(|_, now| now.destination.origin.storage = remounted);
        assert_eq!(mounted, Some(Suspicion::Another(Destination)));
        assert_eq!(mounted.unwrap().doubt(), Doubt::Everything);
        let written = of(|_, now| now.source.changed = later);
        assert_eq!(written, Some(Suspicion::Written(Source)));
        assert_eq!(written.unwrap().doubt(), Doubt::Equal);
        let longer = of(|_, now| now.destination.origin.size += 512);
        assert_eq!(longer, Some(Suspicion::Written(Destination)));
    }

    #[test]
    fn where_others_may_have_written_to_the_destination_no_hole_is_believed() {
        use Side::{Destination, Source};
        let whys = [
            Suspicion::Another,
            Suspicion::Written,
            Suspicion::Unknown,
            Suspicion::Unwatched,
        ];
        for why in whys {
            assert_eq!(why(Destination).doubt(), Doubt::Everything);
            assert_eq!(why(Source).doubt(), Doubt::Equal, "it is the truth as it is");
        }
    }

    #[test]
    fn the_guests_own_writes_do_not_hide_what_others_write_to_the_copy() {
        // It stood still, and the guest went on.
        let hidden = of(|was, now| {
            was.wrote = Nanos::from_secs(1500);
            now.source.changed = Some(was.wrote);
            now.destination.changed = Some(Nanos::from_secs(1200));
        });
        assert_eq!(hidden, Some(Suspicion::Written(Side::Destination)));
    }

    #[test]
    fn what_is_not_known_is_doubted() {
        use Side::{Destination, Source};
        let server = of(|_, now| now.destination = Found::default());
        assert_eq!(server, Some(Suspicion::Unknown(Destination)));
        let other_clock = of(|_, now| now.source.changed = None);
        assert_eq!(other_clock, Some(Suspicion::Unwatched(Source)));
        let set_back = of(|_, now| now.now = Nanos::from_secs(999));
        assert!(matches!(set_back, Some(Suspicion::Unwatched(_))));
        assert_eq!(suspicion(None, &present()), Some(Suspicion::Undated));
    }

    #[test]
    fn the_gravest_reason_counts() {
        let both = of(|_, now| {
            now.source.changed = None;
            now.destination.origin.size = 0;
        });
        assert_eq!(both.unwrap().doubt(), Doubt::Everything);
        let device = Storage::Device { sequence: 4 };
        let replaced = of(|was, now| {
            was.destination.storage = device;
            now.destination.origin.storage = Storage::Device { sequence: 5 };
        });
        assert_eq!(replaced, Some(Suspicion::Another(Side::Destination)));
    }
}
