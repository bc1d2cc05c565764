//! Why a move does not begin, and which of these reasons no wait changes.

use super::task::Fault;

/// Why a move was refused before it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The move makes no sense as it stands: the disk is gone, or is not what was planned
    /// for; the destination is the place of a disk already, perhaps under another address;
    /// or the image of another disk is in the way there.
    Senseless,
    /// The destination has no room.
    Full,
    /// The destination is not known any more, or takes nothing new.
    Closed,
    /// The destination answers, and cannot be used.
    Unusable,
    /// The destination does not answer.
    DestinationAway,
    /// The datastore that the disk leaves does not answer.
    SourceAway,
    /// The state directory takes nothing new, which is neither datastore's fault.
    Unrecorded,
    /// The disk is not served, or something else has to do with it, or with the destination.
    Busy,
}

impl Refusal {
    /// Whose fault it is.
    pub fn fault(self) -> Fault {
        match self {
            Refusal::Senseless => Fault::Lasting,
            Refusal::Full => Fault::Full,
            Refusal::Closed | Refusal::Unusable => Fault::Destination,
            Refusal::DestinationAway => Fault::Away,
            Refusal::SourceAway => Fault::Source,
            Refusal::Unrecorded => Fault::Unrecorded,
            Refusal::Busy => Fault::Passing,
        }
    }

    /// Whether the move would be refused again, however often it is tried and wherever else
    /// there is room: somebody has to decide something.
    pub fn is_final(self) -> bool {
        self.fault() == Fault::Lasting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_person_can_change_is_final() {
        assert!(Refusal::Senseless.is_final());
        for refusal in [
            Refusal::Full,
            Refusal::Closed,
            Refusal::Unusable,
            Refusal::DestinationAway,
            Refusal::SourceAway,
            Refusal::Unrecorded,
            Refusal::Busy,
        ] {
            assert!(!refusal.is_final(), "{refusal:?}");
        }
    }
}
