//! What the last word of a command line could name: a disk, a datastore and so on, for
//! the completion of shells.
//!
//! The words are followed through clap's own definition of the command line, so all
//! shells complete alike and their scripts know nothing of commands. Somebody waits at
//! a prompt and asked for nothing: whatever goes wrong, there are no names then, and
//! the daemon has but a moment to answer.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, Command};
use sterna_api::{Client, ClientError, ImageUse, PlanState};
use sterna_console::connect::{Link, block_on};
use sterna_console::output::Output;

/// How long the daemon has: longer than any list takes, and short enough that a key
/// does not seem to have been lost.
const ANSWER_WITHIN: Duration = Duration::from_millis(300);

/// What has a name, or a number to go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Disk,
    Datastore,
    /// An old copy in a datastore, which the values before it name.
    OldCopy,
    /// A disk, a datastore or a VM.
    Advised,
    Class,
    Policy,
    /// A rule of Storage DRS.
    StorageRule,
    Vm,
    SwapTier,
    Host,
    Pool,
    Rule,
    /// A disk of a VM, which the values before it name.
    Device,
    /// Any migration, also of the past.
    Migration,
    /// A migration that something can still be done with.
    OpenMigration,
    /// The same, by its number alone.
    OpenMigrationNumber,
    /// A VM's move to another host that has not ended.
    OpenTransfer,
    /// Any plan, also of the past.
    Plan,
    /// A plan that something can still be done with.
    OpenPlan,
    /// A plan that can be forgotten: it has ended, or has never begun.
    IdlePlan,
}

/// What the last word of a command line is to be.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    kind: Kind,
    /// The values before it that belong to no option.
    values: Vec<String>,
    /// What of it is there already.
    begun: String,
    /// The socket that the line names.
    socket: Option<PathBuf>,
}

/// The names that the last of these words could be; none if it is to name nothing, or
/// if the daemon does not say.
pub(crate) fn names(words: &[String], sterna: Command, link: &Link) -> Vec<String> {
    let Some(wanted) = wanted(words, sterna) else {
        return Vec::new();
    };
    let named = wanted.socket.map(|socket| Link::new(Some(socket), Output::new(false)));
    let client = named.as_ref().unwrap_or(link).client();
    let asked = block_on(async {
        Ok(tokio::time::timeout(ANSWER_WITHIN, ask(wanted.kind, &wanted.values, client))
            .await??)
    });
    let mut names = asked.unwrap_or_default();
    names.retain(|name| name.starts_with(&wanted.begun));
    names
}

/// The long options of all commands that name something.
pub(crate) fn options(sterna: &Command) -> Vec<String> {
    fn collect(command: &Command, path: &mut Vec<String>, found: &mut Vec<String>) {
        let named = command.get_arguments().filter(|arg| kind(path, arg).is_some());
        found.extend(named.filter_map(Arg::get_long).map(ToOwned::to_owned));
        for below in command.get_subcommands() {
            path.push(below.get_name().to_owned());
            collect(below, path, found);
            path.pop();
        }
    }
    let mut found = Vec::new();
    collect(sterna, &mut Vec::new(), &mut found);
    found.sort();
    found.dedup();
    found
}

async fn ask(
    kind: Kind,
    values: &[String],
    client: &Client,
) -> Result<Vec<String>, ClientError> {
    fn all<T>(found: Vec<T>, name: impl Fn(T) -> String) -> Vec<String> {
        found.into_iter().map(name).collect()
    }
    Ok(match kind {
        Kind::Disk => all(client.disks().await?, |one| one.name),
        Kind::Datastore => all(client.datastores().await?, |one| one.name),
        Kind::OldCopy => match values.first() {
            Some(datastore) => {
                let mut found = client.datastore_images(datastore).await?.images;
                found.retain(|one| one.is == ImageUse::OldCopy);
                all(found, |one| one.image)
            }
            None => Vec::new(),
        },
        Kind::Advised => {
            let disks = all(client.disks().await?, |one| one.name);
            let datastores = all(client.datastores().await?, |one| one.name);
            let vms = all(client.vm_names().await?, |one| one.name);
            [disks, datastores, vms].concat()
        }
        Kind::Class => all(client.classes().await?, |one| one.name),
        Kind::Policy => all(client.policies().await?, |one| one.id.to_string()),
        Kind::StorageRule => all(client.storage_rules().await?, |one| one.name),
        // A list with figures takes as long as the measuring, which is longer than anybody waits.
        Kind::Vm => all(client.vm_names().await?, |one| one.name),
        Kind::SwapTier => all(client.swap_tiers().await?, |one| one.name),
        Kind::Host => all(client.hosts().await?, |one| one.name),
        Kind::Pool => all(client.pools().await?, |one| one.name),
        Kind::Rule => all(client.rules().await?, |one| one.name),
        Kind::Device => match values.first() {
            Some(vm) => {
                let mut found = client.vm_names().await?.into_iter();
                found.find(|one| one.name == *vm).map_or(Vec::new(), |one| one.devices)
            }
            None => Vec::new(),
        },
        Kind::Migration | Kind::OpenMigration | Kind::OpenMigrationNumber => {
            let mut found = client.migrations().await?;
            found.retain(|one| kind == Kind::Migration || !one.state.ended());
            let mut disks: Vec<String> =
                found.iter().map(|one| one.disk.clone()).collect();
            disks.retain(|_| kind != Kind::OpenMigrationNumber);
            disks.sort();
            disks.dedup();
            [all(found, |one| one.id.to_string()), disks].concat()
        }
        Kind::OpenTransfer => {
            let mut found = client.transfers().await?;
            found.retain(|one| !one.state.ended());
            all(found, |one| one.id.to_string())
        }
        Kind::Plan | Kind::OpenPlan | Kind::IdlePlan => {
            let mut found = client.plans().await?;
            found.retain(|one| match kind {
                Kind::OpenPlan => !one.state.ended(),
                Kind::IdlePlan => one.state.ended() || one.state == PlanState::Planned,
                _ => true,
            });
            all(found, |one| one.id.to_string())
        }
    })
}

/// What an argument of a command names.
fn kind(path: &[String], arg: &Arg) -> Option<Kind> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match (path.as_slice(), arg.get_id().as_str()) {
        // These are new.
        (["disk" | "class", "create"] | ["drs", "pool", "create"], "name") => None,
        ([_, "add" | "import"], "name") if path != ["class", "add"] => None,
        (["disk", _], "name")
        | (["migrate" | "predict"], "disk")
        | (["class", _], "disks") => Some(Kind::Disk),
        (["advise"], "about") => Some(Kind::Advised),
        (["datastore", _], "name") | (["plan", "evacuate"], "datastore") => {
            Some(Kind::Datastore)
        }
        (["datastore", "remove-image"], "image") => Some(Kind::OldCopy),
        (["plan", "show" | "report"], "id") => Some(Kind::Plan),
        (["plan", "remove"], "id") => Some(Kind::IdlePlan),
        (["plan", _], "id") => Some(Kind::OpenPlan),
        (["class", _], "name") | (["policy", _], "class") => Some(Kind::Class),
        (["policy", _], "id") => Some(Kind::Policy),
        (["storage-drs", "rule", _], "disks") => Some(Kind::Disk),
        (["storage-drs", "rule", "remove"], "name") => Some(Kind::StorageRule),
        (["vm", _], "name")
        | (["host" | "drs" | "memory", _] | ["drs", "pool", _], "vm")
        | (["drs", "rule", _], "vms") => Some(Kind::Vm),
        (["swap", _], "name") => Some(Kind::SwapTier),
        (["drs", "migration", "cancel"], "id") => Some(Kind::OpenTransfer),
        (["host", _], "name" | "host") => Some(Kind::Host),
        (["drs", "pool", _], "name") => Some(Kind::Pool),
        (["drs", "rule", "remove"], "name") => Some(Kind::Rule),
        (["vm", _], "device") => Some(Kind::Device),
        (["migration", "show"], "id") => Some(Kind::Migration),
        (["migration", _], "id") => Some(Kind::OpenMigration),
        (["policy", _], "until_job") => Some(Kind::OpenMigrationNumber),
        _ => {
            let values = arg.get_value_names().unwrap_or_default();
            values.iter().find_map(|value| match value.as_str() {
                "DATASTORE" => Some(Kind::Datastore),
                "HOST" => Some(Kind::Host),
                "POOL" => Some(Kind::Pool),
                _ => None,
            })
        }
    }
}

/// What the last of these words is to be, if it is to name something.
fn wanted(words: &[String], mut sterna: Command) -> Option<Wanted> {
    let (last, before) = words.split_last()?;
    sterna.build();
    let mut walk = Walk {
        command: &sterna,
        path: Vec::new(),
        values: Vec::new(),
        open: None,
        socket: None,
    };
    for word in before {
        walk.step(word)?;
    }
    let (arg, begun) = walk.end(last)?;
    let begun = begun.to_owned();
    let kind = kind(&walk.path, arg)?;
    Some(Wanted { kind, values: walk.values, begun, socket: walk.socket })
}

/// The way along a command line.
struct Walk<'a> {
    /// The command that the words so far name, and how it was reached.
    command: &'a Command,
    path: Vec<String>,
    /// Its values that belong to no option.
    values: Vec<String>,
    /// The option whose value comes next.
    open: Option<&'a Arg>,
    socket: Option<PathBuf>,
}

impl<'a> Walk<'a> {
    /// Goes past a word; `None` if it is not one of this command line.
    fn step(&mut self, word: &str) -> Option<()> {
        if let Some(arg) = self.open {
            // bash makes three words of `--on=fast`.
            if word != "=" {
                self.open = None;
                self.note(arg, word);
            }
        } else if let Some(option) = word.strip_prefix("--") {
            match option.split_once('=') {
                Some((option, value)) => self.note(self.option(option)?, value),
                None => {
                    let arg = self.option(option)?;
                    self.open = arg.get_action().takes_values().then_some(arg);
                }
            }
        } else if let Some(below) = self.command.find_subcommand(word) {
            self.command = below;
            self.path.push(below.get_name().to_owned());
        } else if !self.command.has_subcommands() {
            self.values.push(word.to_owned());
        } else {
            return None;
        }
        Some(())
    }

    /// Which argument the last word is of, and what of its value is there.
    fn end<'w>(&self, word: &'w str) -> Option<(&'a Arg, &'w str)> {
        match (self.open, word.strip_prefix("--")) {
            (Some(arg), _) => Some((arg, word.strip_prefix('=').unwrap_or(word))),
            (None, Some(option)) => {
                let (option, value) = option.split_once('=')?;
                Some((self.option(option)?, value))
            }
            (None, None) => {
                // The last one may take all that is left.
                let all: Vec<&Arg> = self.command.get_positionals().collect();
                let again = |arg: &&Arg| matches!(arg.get_action(), ArgAction::Append);
                let last = || all.last().copied().filter(again);
                Some((all.get(self.values.len()).copied().or_else(last)?, word))
            }
        }
    }

    fn option(&self, long: &str) -> Option<&'a Arg> {
        self.command.get_arguments().find(|arg| arg.get_long() == Some(long))
    }

    fn note(&mut self, arg: &Arg, value: &str) {
        if arg.get_id() == "socket" {
            self.socket = Some(value.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    /// Words as a shell hands them over: the last one is behind the last space.
    fn of(line: &str) -> Option<Wanted> {
        let words: Vec<String> = line.split(' ').map(Into::into).collect();
        wanted(&words, Cli::command())
    }

    #[test]
    fn each_argument_asks_for_what_it_names() {
        for (line, kind) in [
            ("disk show ", Kind::Disk),
            ("disk rm --keep-image ", Kind::Disk),
            ("migrate ", Kind::Disk),
            ("predict ", Kind::Disk),
            ("advise ", Kind::Advised),
            ("predict db --to ", Kind::Datastore),
            ("--json migrate --rate 5M --no-verify ", Kind::Disk),
            ("class create oltp a b ", Kind::Disk),
            ("class add oltp ", Kind::Disk),
            ("disk create new --size 1G --on ", Kind::Datastore),
            ("migrate db --to ", Kind::Datastore),
            ("datastore remove ", Kind::Datastore),
            ("class add ", Kind::Class),
            ("policy limit ", Kind::Class),
            ("policy explain ", Kind::Class),
            ("policy show ", Kind::Policy),
            ("policy limit oltp 2M --until-job ", Kind::OpenMigrationNumber),
            ("migration show ", Kind::Migration),
            ("migration pause ", Kind::OpenMigration),
            ("plan evacuate ", Kind::Datastore),
            ("plan evacuate old --to ", Kind::Datastore),
            ("plan show ", Kind::Plan),
            ("plan apply ", Kind::OpenPlan),
            ("plan rm ", Kind::IdlePlan),
            ("datastore maintenance ", Kind::Datastore),
            ("vm move ", Kind::Vm),
            ("vm move web ", Kind::Device),
            ("vm adopt web vda --on ", Kind::Datastore),
            ("storage-drs rule apart pair a ", Kind::Disk),
            ("storage-drs rule remove ", Kind::StorageRule),
            ("host show ", Kind::Host),
            ("host assign ", Kind::Host),
            ("host assign a ", Kind::Vm),
            ("drs pool add ", Kind::Pool),
            ("drs pool add gold ", Kind::Vm),
            ("drs pool create inner --parent ", Kind::Pool),
            ("drs rule remove ", Kind::Rule),
            ("drs rule affinity near web ", Kind::Vm),
            ("drs rule host pin web --on ", Kind::Host),
            ("host program ", Kind::Host),
            ("drs explain ", Kind::Vm),
            ("drs apply ", Kind::Vm),
            ("drs migration cancel ", Kind::OpenTransfer),
        ] {
            let found = of(line).unwrap_or_else(|| panic!("{line}: nothing"));
            assert_eq!((found.kind, found.begun.as_str()), (kind, ""), "{line}");
        }
    }

    #[test]
    fn a_device_is_asked_for_of_the_machine_before_it() {
        let found = of("vm move --rate 5M web vd").expect("it names a device");
        assert_eq!((found.values, found.begun.as_str()), (vec!["web".into()], "vd"));
    }

    #[test]
    fn what_is_new_or_names_nothing_asks_for_nothing() {
        for line in [
            "",
            "disk ",
            "disk create ",
            "disk import ",
            "datastore add ",
            "class create ",
            "vm add ",
            "storage-drs rule together ",
            "host add ",
            "drs pool create ",
            "drs rule affinity ",
            "vm adopt web vda --name ",
            "vm release web vda --to ",
            "migrate db ",
            "migrate db --rate ",
            "migrate --t",
            "policy limit oltp ",
            "no such thing ",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn the_socket_and_what_is_begun_are_read_in_all_their_forms() {
        let wanted = |values: &[&str], begun: &str| Wanted {
            kind: Kind::Datastore,
            values: values.iter().map(|value| (*value).into()).collect(),
            begun: begun.into(),
            socket: Some("/run/x".into()),
        };
        for (line, values) in [
            ("--socket /run/x datastore show fa", &[] as &[_]),
            ("migrate --socket=/run/x db --to=fa", &["db"]),
            ("migrate --socket = /run/x db --to = fa", &["db"]),
        ] {
            assert_eq!(of(line), Some(wanted(values, "fa")), "{line}");
        }
        assert_eq!(of("migrate --socket /run/x db --to ="), Some(wanted(&["db"], "")));
    }

    #[test]
    fn a_daemon_that_does_not_answer_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("deaf.sock");
        let _deaf = UnixListener::bind(&socket).unwrap();
        let words = ["disk", "show", ""].map(Into::into);
        let link = Link::new(Some(socket), Output::new(false));
        assert!(names(&words, Cli::command(), &link).is_empty());
    }

    #[test]
    fn the_options_that_name_something_are_known() {
        assert_eq!(
            options(&Cli::command()),
            ["not-on", "on", "parent", "to", "until-job"]
        );
    }
}
