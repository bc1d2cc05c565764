//! A state directory that was renamed while no daemon ran: its memory belongs to the new name.

use std::fs::read_dir;
use std::path::Path;

use crate::account;
use crate::memory::{Home, Name, renew_home};
use crate::mirror::map;

/// Has the memory of all accounts and of all region maps in these directories belong there,
/// wherever it did before: to be called before anybody removes leftovers.
pub fn renew_homes(accounts: &Path, maps: &Path) {
    renew(accounts, account::memory_of);
    renew(maps, map::memory_of);
}

fn renew(directory: &Path, memory_of: impl Fn(&Path) -> Option<Name>) {
    let files = read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    for path in files.map(|file| file.path()) {
        if let (Some(name), Some(home)) = (memory_of(&path), Home::of(&path)) {
            renew_home(name, &home);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, create_dir_all, remove_dir_all, rename};

    use sterna_core::DiskId;
    use sterna_core::durability::Keeper;

    use super::*;
    use crate::account::{Account, AccountSpec};
    use crate::boot::BootId;
    use crate::memory::remove_leftovers;
    use crate::mirror::{MapFile, MapKey};

    const DISK: DiskId = DiskId(9);
    const BOOT: BootId = BootId([3; 16]);
    const DROPS: Keeper = Keeper::Server { address: 7, shares: false };

    #[test]
    fn a_state_directory_that_was_renamed_keeps_its_memory() {
        let above = tempfile::tempdir().unwrap();
        let [was, is] = ["was", "is"].map(|name| above.path().join(name));
        for directory in ["accounts", "maps"] {
            create_dir_all(was.join(directory)).unwrap();
        }
        let account = |state: &Path| {
            let spec = AccountSpec { path: state.join("accounts/9"), boot: BOOT };
            Account::take_up(&spec, DISK, Some(DROPS)).unwrap().0
        };
        drop(account(&was));
        let key = MapKey { migration: 3, disk: DISK, size: 1 << 20, region: 65536 };
        drop(MapFile::create(&was.join("maps/3.map"), key, BOOT).unwrap());
        let names = [
            account::memory_of(&was.join("accounts/9")).unwrap().path(),
            map::memory_of(&was.join("maps/3.map")).unwrap().path(),
        ];
        // Meanwhile other tests remove what is left, too.
        let locked = names.each_ref().map(|path| {
            let file = File::open(path).unwrap();
            file.lock_shared().unwrap();
            file
        });
        rename(&was, &is).unwrap();
        renew_homes(&is.join("accounts"), &is.join("maps"));
        drop(locked);
        remove_leftovers();
        assert!(names.iter().all(|path| path.exists()));
        assert_eq!(account(&is).left().0, None, "no client has lost anything");
        remove_dir_all(&is).unwrap();
        remove_leftovers();
        assert!(!names.iter().any(|path| path.exists()));
    }
}
