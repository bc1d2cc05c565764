//! Whether an image may go: the old copy that a move has left, and nothing else.
//!
//! A name proves nothing. An image goes only if the records say that a disk has left it; if
//! the file is the very one that was left, and nobody has written to it since; if whoever
//! left it works with another image now; and if nobody else uses it. What is not known
//! counts as the worst that it may be, so each refusal has its reason.
//!
//! What is asked first is what people can least do about. Whether another program has the
//! file open is not decided here: that holds only while the file is removed.

/// Marks a digest of a file's handle, which stands for the moment at which the file was made
/// where its file system does not say that. A moment has this bit from the year 2116 on.
pub const HANDLE: u64 = 1 << 62;
/// Of those, one of a file system of this machine: another handle is another file for certain.
pub const LOCAL_HANDLE: u64 = 1 << 61;

/// Whether a file server gave what stands for the moment at which a file was made. A server that
/// was exchanged, or restored from a backup, may give a file that it has kept another handle.
pub const fn is_by_server(made: u64) -> bool {
    made & HANDLE != 0 && made & LOCAL_HANDLE == 0
}

/// What a file is known by, and what it was like at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Its number in its file system.
    pub number: u64,
    /// When it was made, in nanoseconds since 1970; 0 if its file system does not say.
    pub made: u64,
    /// Its length in bytes.
    pub size: u64,
    /// When it was written last, in nanoseconds since 1970.
    pub modified: u64,
}

impl FileFacts {
    /// Whether it may be the same file still, of which its file server gives another handle now.
    /// If size or the moment of the last write differ as well, it is another file: servers give
    /// the number of a removed file to the next one that is made.
    pub fn may_be_rehandled(&self, now: &FileFacts) -> bool {
        is_by_server(self.made)
            && is_by_server(now.made)
            && self.made != now.made
            && (self.number, self.size, self.modified)
                == (now.number, now.size, now.modified)
    }
}

/// What is found at an image's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// The file.
    pub file: FileFacts,
    /// Whether it is a file, and not a link to one or something else.
    pub is_file: bool,
    /// How many names it has.
    pub names: u64,
}

/// What the records say of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Nothing.
    Nothing,
    /// A disk, a VM or a move has it.
    Used,
    /// Its move has ended, and nobody has seen in which image the last writes are; or
    /// something of the move is still to be put away.
    Unclear,
    /// A disk has left it.
    Left,
}

/// What the image has to be by what was kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The record of the move has the file as it was left, if it was seen then. Such an
    /// image has no sidecar, unless it has become a disk's since.
    Record {
        /// The file.
        file: Option<FileFacts>,
        /// Whether there is a sidecar.
        has_sidecar: bool,
    },
    /// A sidecar says what the image is.
    Sidecar {
        /// Whether it calls the image the one that this disk has left, in this generation.
        is_left: bool,
        /// The file's number, and when it was made, if it says so.
        file: Option<(u64, u64)>,
        /// When the move ended, in seconds since 1970: nobody writes to the image after it.
        ended: u64,
    },
}

/// How it goes with the disk or the VM that has left an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// It works with another image now.
    Elsewhere,
    /// It works with this one.
    Here,
    /// It is not known any more.
    Forgotten,
    /// A VM that is on its way to another host.
    OnItsWay,
    /// A VM that is off: nobody knows with which image it starts.
    Off,
    /// A VM that is on, and has no such disk any more.
    Unplugged,
    /// It cannot be asked, or cannot be used.
    Silent,
}

/// Who else may have an image: a disk, a move or a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Nobody who is known.
    Nobody,
    /// Somebody has it.
    Use,
    /// Somebody may have it, and cannot be asked.
    MayUse,
}

/// All that is known of an image that is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What the records say.
    pub recorded: Recorded,
    /// What is there.
    pub found: Option<FoundFile>,
    /// What has to be there.
    pub evidence: Evidence,
    /// How it goes with what has left it.
    pub owner: Owner,
    /// Who else may have it.
    pub others: Others,
}

/// Why an image stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It is not there.
    Absent,
    /// Nothing is recorded of it.
    Unknown,
    /// It is in use, by the records.
    Used,
    /// It may have the last writes.
    Unclear,
    /// It is a link, or no file at all.
    NoFile,
    /// The file has further names.
    Linked,
    /// Nobody has recorded what the file was.
    Unrecorded,
    /// Its file system does not say when files were made, so it may be another one.
    Undated,
    /// Its file server gave it another handle, so it may be another one.
    Rehandled,
    /// Another file has its name.
    Another,
    /// It was written to after the disk had left it.
    Written,
    /// Its sidecar does not call it an old copy.
    Sidecar,
    /// What has left it does not clearly work with another image.
    Owner(Owner),
    /// Somebody else has it.
    OthersUse,
    /// Somebody else may have it.
    OthersMayUse,
}

const NANOS: u64 = 1_000_000_000;

/// Whether an image may go.
///
/// # Errors
///
/// Why it stays.
pub fn may_go(facts: &Facts) -> Result<(), Keep> {
    let Some(found) = &facts.found else { return Err(Keep::Absent) };
    match facts.recorded {
        Recorded::Nothing => {
            check_others(facts.others)?;
            return Err(Keep::Unknown);
        }
        Recorded::Used => return Err(Keep::Used),
        Recorded::Unclear => return Err(Keep::Unclear),
        Recorded::Left => {}
    }
    if !found.is_file {
        return Err(Keep::NoFile);
    }
    check_evidence(&facts.evidence, &found.file)?;
    if found.names != 1 {
        return Err(Keep::Linked);
    }
    match facts.owner {
        Owner::Elsewhere => {}
        owner => return Err(Keep::Owner(owner)),
    }
    check_others(facts.others)
}

/// Whether nobody else has it.
fn check_others(others: Others) -> Result<(), Keep> {
    match others {
        Others::Nobody => Ok(()),
        Others::Use => Err(Keep::OthersUse),
        Others::MayUse => Err(Keep::OthersMayUse),
    }
}

/// Whether the file is the one that was left, as it was left.
fn check_evidence(evidence: &Evidence, found: &FileFacts) -> Result<(), Keep> {
    match *evidence {
        Evidence::Record { file: None, .. } => Err(Keep::Unrecorded),
        Evidence::Record { file: Some(left), has_sidecar } => {
            check_same((left.number, left.made), found).map_err(|why| match why {
                Keep::Rehandled if !left.may_be_rehandled(found) => Keep::Another,
                why => why,
            })?;
            if (left.size, left.modified) != (found.size, found.modified) {
                return Err(Keep::Written);
            }
            if has_sidecar { Err(Keep::Sidecar) } else { Ok(()) }
        }
        Evidence::Sidecar { is_left: false, .. } => Err(Keep::Sidecar),
        Evidence::Sidecar { file: None, .. } => Err(Keep::Unrecorded),
        Evidence::Sidecar { file: Some(left), ended, .. } => {
            check_same(left, found)?;
            // Ends are known to the second.
            let is_later = found.modified / NANOS > ended;
            if is_later { Err(Keep::Written) } else { Ok(()) }
        }
    }
}

/// Numbers are given again once a file is gone, so they prove nothing by themselves.
fn check_same((number, made): (u64, u64), found: &FileFacts) -> Result<(), Keep> {
    if number != found.number {
        return Err(Keep::Another);
    }
    if made == 0 || found.made == 0 {
        return Err(Keep::Undated);
    }
    match made == found.made {
        true => Ok(()),
        false if is_by_server(made) && is_by_server(found.made) => Err(Keep::Rehandled),
        false => Err(Keep::Another),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileFacts =
        FileFacts { number: 7, made: 3 * NANOS, size: 512, modified: 9 * NANOS };

    /// An image that a VM's disk has left, and that may go.
    fn of_vm() -> Facts {
        Facts {
            recorded: Recorded::Left,
            found: Some(FoundFile { file: FILE, is_file: true, names: 1 }),
            evidence: Evidence::Record { file: Some(FILE), has_sidecar: false },
            owner: Owner::Elsewhere,
            others: Others::Nobody,
        }
    }

    /// The same of one of Sterna's disks.
    fn of_disk() -> Facts {
        let evidence =
            Evidence::Sidecar { is_left: true, file: Some((7, 3 * NANOS)), ended: 9 };
        Facts { evidence, ..of_vm() }
    }

    fn found(change: impl FnOnce(&mut FoundFile)) -> Option<FoundFile> {
        let mut found = FoundFile { file: FILE, is_file: true, names: 1 };
        change(&mut found);
        Some(found)
    }

    #[test]
    fn what_a_disk_has_left_goes_if_nothing_speaks_against_it() {
        assert_eq!(may_go(&of_vm()), Ok(()));
        assert_eq!(may_go(&of_disk()), Ok(()));
        // What was written within the second in which the move ended came before its end.
        let late = found(|it| it.file.modified += NANOS - 1);
        assert_eq!(may_go(&Facts { found: late, ..of_disk() }), Ok(()));
    }

    #[test]
    fn a_file_of_which_nothing_is_recorded_is_somebodys_if_somebody_has_it() {
        for (others, why) in [
            (Others::Nobody, Keep::Unknown),
            (Others::Use, Keep::OthersUse),
            (Others::MayUse, Keep::OthersMayUse),
        ] {
            let facts = Facts { recorded: Recorded::Nothing, others, ..of_vm() };
            assert_eq!(may_go(&facts), Err(why));
        }
    }

    #[test]
    fn whatever_speaks_against_it_keeps_an_image() {
        let record = |file| Evidence::Record { file, has_sidecar: false };
        let other = |number, made| Some(FileFacts { number, made, ..FILE });
        let sidecar = |is_left, file| Evidence::Sidecar { is_left, file, ended: 9 };
        let cases = [
            (Facts { found: None, ..of_vm() }, Keep::Absent),
            (Facts { recorded: Recorded::Nothing, ..of_vm() }, Keep::Unknown),
            (Facts { recorded: Recorded::Used, ..of_vm() }, Keep::Used),
            (Facts { recorded: Recorded::Unclear, ..of_vm() }, Keep::Unclear),
            (Facts { found: found(|it| it.is_file = false), ..of_vm() }, Keep::NoFile),
            (Facts { found: found(|it| it.names = 2), ..of_vm() }, Keep::Linked),
            (Facts { found: found(|it| it.names = 0), ..of_disk() }, Keep::Linked),
            (Facts { evidence: record(None), ..of_vm() }, Keep::Unrecorded),
            (Facts { evidence: record(other(8, FILE.made)), ..of_vm() }, Keep::Another),
            (Facts { evidence: record(other(7, 4)), ..of_vm() }, Keep::Another),
            (Facts { evidence: record(other(7, 0)), ..of_vm() }, Keep::Undated),
            (Facts { found: found(|it| it.file.made = 0), ..of_vm() }, Keep::Undated),
            (Facts { found: found(|it| it.file.made = 0), ..of_disk() }, Keep::Undated),
            (Facts { found: found(|it| it.file.size = 1024), ..of_vm() }, Keep::Written),
            (
                Facts { found: found(|it| it.file.modified += 1), ..of_vm() },
                Keep::Written,
            ),
            (
                Facts { found: found(|it| it.file.modified -= 1), ..of_vm() },
                Keep::Written,
            ),
            (
                Facts { found: found(|it| it.file.modified += NANOS), ..of_disk() },
                Keep::Written,
            ),
            (
                Facts {
                    evidence: Evidence::Record { file: Some(FILE), has_sidecar: true },
                    ..of_vm()
                },
                Keep::Sidecar,
            ),
            (
                Facts { evidence: sidecar(false, Some((7, FILE.made))), ..of_disk() },
                Keep::Sidecar,
            ),
            (Facts { evidence: sidecar(true, None), ..of_disk() }, Keep::Unrecorded),
            (
                Facts { evidence: sidecar(true, Some((8, FILE.made))), ..of_disk() },
                Keep::Another,
            ),
            (Facts { evidence: sidecar(true, Some((7, 4))), ..of_disk() }, Keep::Another),
            (Facts { others: Others::Use, ..of_vm() }, Keep::OthersUse),
            (Facts { others: Others::MayUse, ..of_vm() }, Keep::OthersMayUse),
        ];
        for (facts, why) in cases {
            assert_eq!(may_go(&facts), Err(why), "{facts:?}");
        }
        let owners = [
            Owner::Here,
            Owner::Forgotten,
            Owner::OnItsWay,
            Owner::Off,
            Owner::Unplugged,
            Owner::Silent,
        ];
        for owner in owners {
            let facts = Facts { owner, ..of_vm() };
            assert_eq!(may_go(&facts), Err(Keep::Owner(owner)));
        }
    }

    #[test]
    fn another_handle_from_a_file_server_is_not_taken_for_another_file() {
        let same = |was, is| check_same((7, was), &FileFacts { made: is, ..FILE });
        assert_eq!(same(HANDLE | 1, HANDLE | 1), Ok(()));
        assert_eq!(same(HANDLE | 1, HANDLE | 2), Err(Keep::Rehandled));
        let local = HANDLE | LOCAL_HANDLE;
        assert_eq!(same(local | 1, local | 2), Err(Keep::Another));
        assert_eq!(same(1, 2), Err(Keep::Another), "moments");
    }

    #[test]
    fn a_new_file_that_a_file_server_gave_the_number_of_an_old_copy_is_another_file() {
        let left = FileFacts { made: HANDLE | 1, ..FILE };
        let now = FileFacts { made: HANDLE | 2, ..FILE };
        let kept = |now: FileFacts| {
            let evidence = Evidence::Record { file: Some(left), has_sidecar: false };
            may_go(&Facts { evidence, found: found(|it| it.file = now), ..of_vm() })
        };
        assert_eq!(kept(now), Err(Keep::Rehandled), "as it was left");
        for another in [
            FileFacts { size: FILE.size + 512, ..now },
            FileFacts { modified: FILE.modified + 1, ..now },
            FileFacts { number: 8, ..now },
        ] {
            assert!(!left.may_be_rehandled(&another), "{another:?}");
            assert_eq!(kept(another), Err(Keep::Another), "{another:?}");
        }
        assert!(!left.may_be_rehandled(&left), "the very same");
    }
}
