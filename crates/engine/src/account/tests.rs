use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const DISK: DiskId = DiskId(9);
const BOOT: BootId = BootId([3; 16]);
/// One that drops with a connection what was not flushed on it.
const DROPS: Keeper = Keeper::Server { address: 7, shares: false };
const SHARES: Keeper = Keeper::Server { address: 7, shares: true };

/// A place for an account, of which nothing stays in memory either.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        Place { directory }
    }

    fn spec(&self) -> AccountSpec {
        AccountSpec { path: self.directory.path().join("account"), boot: BOOT }
    }

    /// A daemon takes the disk up.
    fn take_up(&self, now: Option<Keeper>) -> (Arc<Account>, Option<Line>) {
        Account::take_up(&self.spec(), DISK, now).unwrap()
    }

    /// What it finds.
    fn finds(&self, now: Option<Keeper>) -> (Option<Loss>, bool) {
        let (account, line) = self.take_up(now);
        (account.left().0, line.is_some_and(|line| line.is_unflushed()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.spec().remove().unwrap();
    }
}

/// The daemon is killed: nothing of it is dropped in good order.
fn kill((account, line): (Arc<Account>, Option<Line>)) {
    std::mem::forget((account, line));
}

/// The file in memory of the account at `path`.
fn memory_of(path: &Path) -> PathBuf {
    let record = record::read(path).unwrap().unwrap();
    Name::Account(record.generation).path()
}

#[test]
fn a_kill_leaves_whether_writes_are_unflushed() {
    let place = Place::new();
    for (unflushed, found) in [(false, None), (true, Some(Loss::DaemonEnded))] {
        let (account, mut line) = place.take_up(Some(DROPS));
        line.as_mut().unwrap().set(true);
        line.as_mut().unwrap().set(unflushed);
        kill((account, line));
        assert_eq!(place.finds(Some(DROPS)), (found, false));
        // It is owed until somebody says that it was heard.
        assert_eq!(place.finds(Some(DROPS)).0, found);
        let (account, _line) = place.take_up(Some(DROPS));
        account.owes(None, Clients::default());
        drop(account);
        assert_eq!(place.finds(Some(DROPS)).0, None);
    }
}

#[test]
fn a_kill_leaves_how_many_clients_there_were() {
    let place = Place::new();
    let many = Clients { all: 70_000, owed: 0 };
    for clients in [Clients::default(), Clients { all: 3, owed: 1 }, many] {
        let (account, mut line) = place.take_up(Some(DROPS));
        account.owes(None, clients);
        line.as_mut().unwrap().set(true);
        kill((account, line));
        let all = clients.all.clamp(1, Clients::MOST);
        let (account, _line) = place.take_up(Some(DROPS));
        assert_eq!(account.left().1, Clients { all, owed: all });
        // And some of them have heard it.
        let clients = Clients { all, owed: 1 };
        account.owes(Some(Loss::DaemonEnded), clients);
        drop(account);
        let (account, _line) = place.take_up(Some(DROPS));
        assert_eq!(account.left(), (Some(Loss::DaemonEnded), clients));
    }
}

#[test]
fn an_account_of_an_earlier_version_counts_nobody() {
    let place = Place::new();
    let (account, mut line) = place.take_up(Some(DROPS));
    line.as_mut().unwrap().set(true);
    kill((account, line));
    let memory = memory_of(&place.spec().path);
    let mut bytes = fs::read(&memory).unwrap();
    bytes[16 * 8..17 * 8].fill(0);
    fs::write(&memory, bytes).unwrap();
    let (account, _line) = place.take_up(Some(DROPS));
    let one = Clients { all: 1, owed: 1 };
    assert_eq!(account.left(), (Some(Loss::DaemonEnded), one));
}

#[test]
fn what_a_server_has_for_all_connections_is_inherited_from_kill_to_kill() {
    let place = Place::new();
    let (account, mut line) = place.take_up(Some(SHARES));
    line.as_mut().unwrap().set(true);
    kill((account, line));
    for _ in 0..3 {
        let (account, line) = place.take_up(Some(SHARES));
        assert_eq!(account.left().0, None);
        assert!(line.as_ref().is_some_and(Line::is_unflushed));
        kill((account, line));
    }
    // The server is another one by now.
    assert_eq!(place.finds(Some(DROPS)), (Some(Loss::DaemonEnded), false));
}

#[test]
fn after_a_good_end_nothing_is_left_and_no_memory_is_needed() {
    let place = Place::new();
    let (account, line) = place.take_up(Some(DROPS));
    let memory = memory_of(&place.spec().path);
    assert!(memory.exists());
    drop(line);
    account.end();
    assert!(!memory.exists());
    assert_eq!(place.finds(Some(DROPS)), (None, false));
    // What could not be flushed is left as by a kill.
    let (account, mut line) = place.take_up(Some(DROPS));
    line.as_mut().unwrap().set(true);
    drop(line);
    account.end();
    assert_eq!(place.finds(Some(DROPS)).0, Some(Loss::DaemonEnded));
}

#[test]
fn a_copy_has_a_line_of_its_own() {
    let place = Place::new();
    let copy = Keeper::Server { address: 8, shares: false };
    let (account, line) = place.take_up(Some(DROPS));
    let mut of_copy = account.line(copy, false).unwrap();
    of_copy.set(true);
    kill((account, line));
    std::mem::forget(of_copy);
    assert_eq!(place.finds(Some(DROPS)), (None, false));
}

#[test]
fn a_disk_has_lines_for_all_its_images_again_and_again() {
    let place = Place::new();
    let (account, _line) = place.take_up(Some(DROPS));
    for _ in 0..100 {
        let lines: Vec<Line> =
            (1..words::LINES).map(|_| account.line(SHARES, false).unwrap()).collect();
        assert!(account.line(SHARES, false).is_err());
        drop(lines);
    }
}

#[test]
fn a_memory_that_is_gone_or_not_ours_counts_as_a_loss() {
    let ways: [fn(&Path); 3] = [
        |memory| fs::remove_file(memory).unwrap(),
        |memory| {
            let all = std::os::unix::fs::PermissionsExt::from_mode(0o666);
            fs::set_permissions(memory, all).unwrap();
        },
        |memory| fs::write(memory, [0; 4096]).unwrap(),
    ];
    for way in ways {
        let place = Place::new();
        kill(place.take_up(Some(DROPS)));
        way(&memory_of(&place.spec().path));
        assert_eq!(place.finds(Some(DROPS)), (Some(Loss::Unknown), false));
    }
}

#[test]
fn a_disk_in_a_file_whose_memory_is_gone_tells_a_client_and_one_without_account_nobody() {
    let place = Place::new();
    assert_eq!(place.finds(None), (None, false), "it never had an account");
    let place = Place::new();
    let (account, line) = place.take_up(None);
    account.owes(Some(Loss::FlushFailed), Clients { all: 2, owed: 1 });
    kill((account, line));
    fs::remove_file(memory_of(&place.spec().path)).unwrap();
    let (account, _line) = place.take_up(None);
    assert_eq!(account.left(), (Some(Loss::Unknown), Clients { all: 1, owed: 1 }));
    // It has been heard, and a daemon that ends well leaves nothing to be alarmed about.
    account.owes(None, Clients::default());
    account.end();
    assert_eq!(place.finds(None), (None, false));
}

/// A file in a mounting.
fn file(mounting: u32) -> Option<Keeper> {
    Some(Keeper::Kernel { address: mounting })
}

#[test]
fn without_its_memory_an_account_of_a_file_knows_the_mounting() {
    for (mounting, found) in [(4, (None, true)), (5, (Some(Loss::Unknown), false))] {
        let place = Place::new();
        kill(place.take_up(file(4)));
        fs::remove_file(memory_of(&place.spec().path)).unwrap();
        assert_eq!(place.finds(file(mounting)), found);
    }
    // And it is the mounting that the last daemon has found.
    let place = Place::new();
    kill(place.take_up(file(4)));
    kill(place.take_up(file(5)));
    fs::remove_file(memory_of(&place.spec().path)).unwrap();
    assert_eq!(place.finds(file(5)), (None, true));
}

#[test]
fn without_its_memory_an_account_knows_that_clients_were_to_be_told() {
    let place = Place::new();
    let (account, line) = place.take_up(file(4));
    let clients = Clients { all: 2, owed: 1 };
    account.owes(Some(Loss::FlushFailed), clients);
    let end = Instant::now() + Duration::from_secs(20);
    while !record::read(&place.spec().path).unwrap().unwrap().says.owed {
        assert!(Instant::now() < end, "nobody has noted it");
        std::thread::yield_now();
    }
    kill((account, line));
    fs::remove_file(memory_of(&place.spec().path)).unwrap();
    assert_eq!(place.finds(file(4)), (Some(Loss::Unknown), true));
    // With its memory the next daemon knows when all have heard.
    let (account, line) = place.take_up(file(4));
    account.owes(None, clients);
    kill((account, line));
    kill(place.take_up(file(4)));
    fs::remove_file(memory_of(&place.spec().path)).unwrap();
    assert_eq!(place.finds(file(4)), (None, true));
}

#[test]
fn a_record_of_the_first_version_is_believed() {
    let place = Place::new();
    let (account, mut line) = place.take_up(Some(DROPS));
    line.as_mut().unwrap().set(true);
    kill((account, line));
    let mut bytes = fs::read(&place.spec().path).unwrap();
    bytes[8] = 1;
    let crc = crc32c::crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    fs::write(&place.spec().path, bytes).unwrap();
    assert_eq!(place.finds(Some(DROPS)).0, Some(Loss::DaemonEnded));
}

#[test]
fn after_another_boot_nothing_is_known() {
    let place = Place::new();
    let (account, mut line) = place.take_up(Some(DROPS));
    line.as_mut().unwrap().set(true);
    kill((account, line));
    fs::remove_file(memory_of(&place.spec().path)).unwrap();
    let booted = AccountSpec { boot: BootId([4; 16]), ..place.spec() };
    let (account, _line) = Account::take_up(&booted, DISK, Some(DROPS)).unwrap();
    assert_eq!(account.left().0, None);
}

#[test]
fn an_account_of_another_disk_and_one_of_a_newer_sterna_are_not_believed() {
    let place = Place::new();
    kill(place.take_up(Some(DROPS)));
    let first = memory_of(&place.spec().path);
    let (account, _line) =
        Account::take_up(&place.spec(), DiskId(10), Some(DROPS)).unwrap();
    assert_eq!(account.left().0, Some(Loss::Unknown));
    let second = memory_of(&place.spec().path);
    let mut bytes = fs::read(&place.spec().path).unwrap();
    bytes[8] = 3;
    let crc = crc32c::crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    fs::write(&place.spec().path, bytes).unwrap();
    assert_eq!(place.finds(Some(DROPS)).0, Some(Loss::Unknown));
    // What nobody can read a name of is left to the machine's next start.
    for memory in [first, second] {
        fs::remove_file(memory).unwrap();
    }
}

#[test]
fn without_its_memory_what_was_in_doubt_at_the_end_is_owed_and_what_was_not_is_inherited()
{
    let file = Keeper::Kernel { address: 7 };
    for doubtful in [true, false] {
        let place = Place::new();
        let (account, line) = place.take_up(Some(file));
        let mut line = line.unwrap();
        line.set(true);
        // Nothing but the end waits for the record to say so.
        account.words.set_doubts(u32::from(doubtful) << line.at);
        account.end();
        kill((account, Some(line)));
        fs::remove_file(memory_of(&place.spec().path)).unwrap();
        let expected = match doubtful {
            true => (Some(Loss::Unknown), true),
            false => (None, true),
        };
        assert_eq!(place.finds(Some(file)), expected, "doubtful: {doubtful}");
    }
}

#[test]
fn a_doubt_is_in_the_record_soon() {
    let place = Place::new();
    let (account, line) = place.take_up(Some(Keeper::Kernel { address: 7 }));
    let mut line = line.unwrap();
    line.set(true);
    line.set_doubtful(true);
    while !record::read(&place.spec().path).unwrap().unwrap().says.owed {
        std::thread::yield_now();
    }
    kill((account, Some(line)));
}

#[test]
fn a_state_directory_that_is_away_does_not_say_that_nothing_is_owed() {
    let place = Place::new();
    let file = Some(Keeper::Kernel { address: 7 });
    kill(place.take_up(file));
    let away = place.directory.path().with_extension("away");
    fs::rename(place.directory.path(), &away).unwrap();
    assert!(Account::is_owed(&place.spec(), DISK, file));
    fs::rename(&away, place.directory.path()).unwrap();
    assert!(!Account::is_owed(&place.spec(), DISK, file));
}

#[test]
fn a_record_that_cannot_be_written_is_an_error() {
    let nowhere = AccountSpec { path: "/nosuch/account".into(), boot: BOOT };
    assert!(Account::take_up(&nowhere, DISK, Some(DROPS)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_record_that_is_damaged_anywhere_is_not_believed(
        at in 0..64_usize, bit in 0..8_u8, ended_well in any::<bool>(),
    ) {
        let place = Place::new();
        let (account, line) = place.take_up(Some(DROPS));
        let memory = memory_of(&place.spec().path);
        drop(line);
        if ended_well {
            account.end();
        }
        let mut bytes = fs::read(&place.spec().path).unwrap();
        bytes[at] ^= 1 << bit;
        fs::write(&place.spec().path, bytes).unwrap();
        prop_assert_eq!(place.finds(Some(DROPS)).0, Some(Loss::Unknown));
        let _ = fs::remove_file(memory);
    }

    #[test]
    fn a_word_that_is_damaged_is_not_believed(
        word in 0..=words::LINES + 2, bit in 0..64_u32,
    ) {
        let place = Place::new();
        kill(place.take_up(Some(DROPS)));
        let memory = memory_of(&place.spec().path);
        let mut bytes = fs::read(&memory).unwrap();
        bytes[(word * 8 + bit / 8) as usize] ^= 1 << (bit % 8);
        fs::write(&memory, bytes).unwrap();
        prop_assert_eq!(place.finds(Some(DROPS)).0, Some(Loss::Unknown));
    }
}
