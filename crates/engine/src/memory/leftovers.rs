//! What daemons have left in memory that nobody comes back for: their state directory was
//! removed, as that of a test or of a trial is.
//!
//! **Rule.** A file goes if it is ours alone, if it says where it belongs ([`Home`]), if that
//! directory was removed, and if no process has it: whoever uses one has it locked for as
//! long as it is open or mapped. What an older Sterna has made does not say where it belongs,
//! and stays until the machine is started anew.
//!
//! **A state directory that was renamed** while no daemon ran looks like one that was removed.
//! So a daemon that starts first gives all memory of its own state directory its present home
//! ([`renew_home`]): the memory of a disk that comes up late must not be removed meanwhile. If
//! another daemon starts between the renaming and that, the memory is removed all the same.

use std::fs::{File, read_dir};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::home::Home;
use super::{DIRECTORY, Name, is_ours, open_ours};

/// How the names of these files begin.
const BEGINNINGS: [&str; 2] = ["sterna-map-", "sterna-account-"];

/// Removes what nobody comes back for; gives how many files that were. May hang with the file
/// systems that state directories were on.
pub fn remove_leftovers() -> usize {
    let Ok(files) = read_dir(DIRECTORY) else { return 0 };
    let is_named = |name: &str| BEGINNINGS.iter().any(|it| name.starts_with(it));
    let files = files.filter_map(Result::ok);
    let files = files.filter(|file| file.file_name().to_str().is_some_and(is_named));
    files
        .filter(|file| {
            // Nobody can take it up until it is gone.
            let left = left(&file.path());
            left.is_some_and(|_locked| std::fs::remove_file(file.path()).is_ok())
        })
        .count()
}

/// The file, if nobody comes back for it: locked, so that nobody has it.
fn left(path: &Path) -> Option<File> {
    let file = open_ours(path).filter(is_ours)?;
    let is_removed = |file: &File| Home::kept_in(file).is_some_and(|it| it.is_removed());
    // First without the lock: a daemon that takes its memory up finds it free.
    let is_left = is_removed(&file)
        && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        && is_removed(&file);
    is_left.then_some(file)
}

/// Has what a daemon has left in memory belong to another directory, if it says to which it
/// belongs.
pub(crate) fn renew_home(name: Name, home: &Home) {
    let Some(file) = open_ours(&name.path()).filter(is_ours) else { return };
    // Nobody removes it meanwhile. If that cannot be had, somebody uses it, or removes it now.
    if flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
        return;
    }
    if Home::kept_in(&file).is_some_and(|kept| kept != *home)
        && let Err(error) = home.store_in(&file)
    {
        tracing::warn!(%error, path = %name.path().display(), "cannot say where memory belongs");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{Memory, Name};
    use super::*;

    const LEN: u64 = 4096;

    /// A number that no other test has.
    fn name() -> Name {
        use std::hash::{BuildHasher, RandomState};
        Name::Account(RandomState::new().hash_one(0))
    }

    /// Memory that belongs to a state directory, and that directory.
    fn of_a_state() -> (tempfile::TempDir, Name, Memory) {
        let state = tempfile::tempdir().unwrap();
        let name = name();
        let home = Home::of(&state.path().join("account"));
        let memory = Memory::create(name, LEN, home.as_ref()).unwrap();
        (state, name, memory)
    }

    #[test]
    fn what_a_killed_daemon_has_left_goes_with_its_state_directory_and_not_before() {
        let (state, name, memory) = of_a_state();
        drop(memory);
        remove_leftovers();
        assert!(name.path().exists());
        drop(state);
        remove_leftovers();
        assert!(!name.path().exists());
    }

    #[test]
    fn what_somebody_has_open_or_mapped_stays() {
        let (state, name, memory) = of_a_state();
        drop(state);
        remove_leftovers();
        assert!(name.path().exists(), "it is open");
        let mapped = memory.map(1).unwrap();
        drop(memory);
        remove_leftovers();
        assert!(name.path().exists(), "it is mapped");
        drop(mapped);
        remove_leftovers();
        assert!(!name.path().exists());
        // Taken up by another daemon, too.
        let (state, name, memory) = of_a_state();
        drop(memory);
        let found = Memory::open(name, LEN).unwrap();
        drop(state);
        remove_leftovers();
        assert!(name.path().exists(), "it is open again");
        drop(found);
        remove_leftovers();
        assert!(!name.path().exists());
    }

    #[test]
    fn what_does_not_say_where_it_belongs_stays_and_is_still_understood() {
        let name = name();
        drop(Memory::create(name, LEN, None).unwrap());
        remove_leftovers();
        assert!(name.path().exists());
        // As an older Sterna has made it.
        fs::File::options().write(true).open(name.path()).unwrap().set_len(LEN).unwrap();
        remove_leftovers();
        assert!(Memory::open(name, LEN).is_some());
        Memory::remove(name);
    }
}
