//! Which migration a word of the command line means: its number, or what it moves.
//!
//! A disk has one migration at a time, so its name is enough: `db`, or `web/vda` for a disk
//! that QEMU serves itself, or `web` if no other disk of that VM moves. A number is always
//! a migration's number. A name means the migration that has not ended; a command that only
//! looks takes the disk's last one if all have ended. A command that changes a migration
//! never does: the migration that its user meant is over. If a disk moves, and a disk of a VM
//! of the same name as well, the name is not enough.
//!
//! The choice is made once, and the command goes on with the number: a migration that
//! begins meanwhile is not touched.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use sterna_api::{Client, ErrorCode, Migration};
use sterna_console::connect::Failure;

/// One migration, as the command line names it.
#[derive(Clone, Debug, Args)]
pub(crate) struct WhichArg {
    /// Its number (see `sterna migration list`), or the disk that moves: `db`, or
    /// `web/vda` for disk vda of VM web
    #[arg(value_name = "ID|DISK")]
    id: Which,
}

/// A migration's number, or what it moves.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Which {
    Number(u64),
    Moving(String),
}

impl FromStr for Which {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.parse().map(Which::Number);
        Ok(number.unwrap_or_else(|_| Which::Moving(text.to_owned())))
    }
}

/// What a command does to the migration that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The command shows a migration, running or ended.
    Look,
    /// The command changes a running migration.
    Change,
}

impl WhichArg {
    /// The migration's number. Asks the daemon only for a name.
    pub(crate) async fn id(
        &self,
        client: &Client,
        purpose: Purpose,
    ) -> anyhow::Result<u64> {
        match &self.id {
            Which::Number(id) => Ok(*id),
            Which::Moving(name) => {
                Ok(choose(&client.migrations().await?, name, purpose)?)
            }
        }
    }
}

/// The number of the migration of what has this name.
fn choose(all: &[Migration], name: &str, purpose: Purpose) -> Result<u64, Failure> {
    // If a disk and a VM have this name, the name means the disk.
    let is_disk = all.iter().any(|one| one.disk == name);
    let named = |one: &&Migration| {
        if is_disk { one.disk == name } else { vm_of(one) == Some(name) }
    };
    let open: Vec<&Migration> =
        all.iter().filter(named).filter(|one| !one.state.ended()).collect();
    let is_open_of_vm = |one: &&Migration| vm_of(one) == Some(name) && !one.state.ended();
    let of_vm: Vec<&Migration> = all.iter().filter(is_open_of_vm).collect();
    if is_disk && !open.is_empty() && !of_vm.is_empty() {
        return Err(both(name, open[0].id, &of_vm));
    }
    match (open.as_slice(), purpose) {
        ([one], _) => Ok(one.id),
        ([], Purpose::Look) => {
            let last = all.iter().filter(named).max_by_key(|one| one.id);
            last.map(|one| one.id).ok_or_else(|| none(name, "has never been moved"))
        }
        ([], Purpose::Change) => Err(none(name, "is not being moved")),
        (several, _) => Err(ambiguous(name, several)),
    }
}

/// The VM of whose disk a migration is.
fn vm_of(one: &Migration) -> Option<&str> {
    one.disk.split_once('/').map(|(vm, _)| vm)
}

/// A disk of this name moves, and so do disks of the VM of this name.
fn both(name: &str, disk: u64, of_vm: &[&Migration]) -> Failure {
    let of_vm: Vec<String> =
        of_vm.iter().map(|one| format!("{} ({})", one.id, one.disk)).collect();
    Failure {
        code: ErrorCode::Invalid,
        message: format!("{name} is a disk and a VM, and both are being moved"),
        hint: format!("give a number: {disk} ({name}), {}", of_vm.join(", ")),
    }
}

fn none(name: &str, why: impl fmt::Display) -> Failure {
    Failure {
        code: ErrorCode::NotFound,
        message: format!("{name} {why}"),
        hint: "see `sterna migration list`".into(),
    }
}

fn ambiguous(name: &str, several: &[&Migration]) -> Failure {
    let disks: Vec<&str> = several.iter().map(|one| one.disk.as_str()).collect();
    Failure {
        code: ErrorCode::Invalid,
        message: format!("{} disks of {name} are being moved", several.len()),
        hint: format!("name one: {}", disks.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sterna_api::MigrationState;

    use super::*;

    fn migration(id: u64, disk: &str, state: MigrationState) -> Migration {
        let text = json!({
            "id": id, "disk": disk, "size": 1, "from": "a", "to": "b",
            "provision": "thin", "rate": null, "verify": true, "keep_source": false,
            "state": state, "reason": null, "hint": null, "started": 1, "ended": null,
            "progress": null, "application": {}, "report": null, "unclear": false,
        });
        serde_json::from_value(text).expect("a migration")
    }

    fn site() -> Vec<Migration> {
        use MigrationState::{Cancelled, Completed, Copying, Paused};
        vec![
            migration(1, "db", Completed),
            migration(2, "db", Copying),
            migration(3, "log", Completed),
            migration(4, "log", Cancelled),
            migration(5, "web/vda", Paused),
            migration(6, "mail/vda", Copying),
            migration(7, "mail/vdb", Copying),
        ]
    }

    fn chosen(name: &str, purpose: Purpose) -> Result<u64, String> {
        choose(&site(), name, purpose)
            .map_err(|error| format!("{}; {}", error.message, error.hint))
    }

    #[test]
    fn a_disk_means_its_migration_that_has_not_ended() {
        assert_eq!(chosen("db", Purpose::Change), Ok(2));
        assert_eq!(chosen("db", Purpose::Look), Ok(2));
        assert_eq!(chosen("web/vda", Purpose::Change), Ok(5));
    }

    #[test]
    fn a_vm_of_which_one_disk_moves_means_that_disk() {
        assert_eq!(chosen("web", Purpose::Change), Ok(5));
        let said = chosen("mail", Purpose::Change).unwrap_err();
        let asks = "2 disks of mail are being moved; name one: mail/vda, mail/vdb";
        assert_eq!(said, asks);
    }

    #[test]
    fn a_disk_goes_before_a_vm_of_its_name() {
        let mut site = site();
        site.push(migration(8, "web", MigrationState::Completed));
        assert!(choose(&site, "web", Purpose::Change).is_err());
        assert_eq!(choose(&site, "web", Purpose::Look).ok(), Some(8));
    }

    #[test]
    fn a_name_that_a_disk_and_a_vm_have_that_both_move_means_neither() {
        let mut site = site();
        site.push(migration(8, "web", MigrationState::Copying));
        let asks = "web is a disk and a VM, and both are being moved; give a number: 8 \
                    (web), 5 (web/vda)";
        for purpose in [Purpose::Change, Purpose::Look] {
            let said = choose(&site, "web", purpose).unwrap_err();
            assert_eq!(format!("{}; {}", said.message, said.hint), asks);
        }
        site[4].state = MigrationState::Completed;
        assert_eq!(choose(&site, "web", Purpose::Change).ok(), Some(8));
    }

    #[test]
    fn what_has_ended_can_be_looked_at_and_is_never_changed() {
        assert_eq!(chosen("log", Purpose::Look), Ok(4));
        let said = chosen("log", Purpose::Change).unwrap_err();
        assert_eq!(said, "log is not being moved; see `sterna migration list`");
        let said = chosen("tmp", Purpose::Look).unwrap_err();
        assert_eq!(said, "tmp has never been moved; see `sterna migration list`");
    }

    #[test]
    fn a_number_is_always_a_number() {
        assert_eq!("7".parse(), Ok(Which::Number(7)));
        assert_eq!("db7".parse(), Ok(Which::Moving("db7".into())));
    }
}
