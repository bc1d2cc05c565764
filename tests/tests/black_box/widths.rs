//! What people read fits 80 columns, whatever the names: every command is run with names of
//! 63 characters.

use std::collections::BTreeSet;

use sterna_tests::programs::sterna;
use sterna_tests::vms::{Vm, write_guest};
use sterna_tests::{Answer, MIB, Stage, programs};

use crate::memory;

/// The longest name there is.
const NAME_MAX: usize = 63;
const WIDTH: usize = 80;

/// Commands that are not run here: they run on, take minutes, or ask no daemon. Their help
/// fits, too (a unit test), and tests of their own look at what they print.
const ELSEWHERE: [&str; 16] = [
    "serve",
    "lab qos",
    "lab nas250",
    "lab svmotion",
    "lab overcommit",
    "sim run",
    "bench dvdstore",
    "completion",
    "man",
    "datastore probe",
    "vm adopt",
    "vm release",
    "drs migration show",
    "drs migration watch",
    "drs migration cancel",
    "help",
];

/// One after the other, where `@db` is a long name that begins so. What is refused is
/// printed, too.
const LINES: &str = "\
datastore list
disk list
class list
policy list
plan list
migration list
host list
vm list
drs pool list
drs rule list
drs migration list
storage-drs rule list
datastore add @fast FAST
datastore add @slow SLOW --shape mbps=3000,iops=50000,latency=0ms
datastore add @no /nowhere/at/all
datastore list
datastore show @fast
disk create @db --size 16M --on @fast
disk create @log --size 16M --on @fast --provision thick
disk create @any --size 16M
disk create @db --size 16M --on @fast
disk import @old --on @fast IMAGE
disk import @none --on @fast FAST/none.raw
disk list
disk show @db
disk show @none
disk uri @db
disk attach @db --vhost-user SOCKET
disk qemu-args @db
disk detach @db
disk stats @db
disk stats @db --histogram
disk recover --dry-run
disk recover
top --count 1
top --count 1 --by datastore
class create @oltp @db --reservation 500iops --shares 2000
class add @oltp @log
class remove-disk @oltp @log
class set @oltp --shares 500
top --count 1 --by class
top --count 1 --by vm
class list
class show @oltp
policy limit @oltp 200M --schedule 22:00-06:00
policy cruise @oltp 15M --tolerance 10% --fallback limit=2M
policy queue-depth @oltp 8
policy list
policy show 1
policy explain @oltp
policy remove 1
predict @db --to @slow
migrate @db --to @slow --keep-source
migrate @db --to @slow
predict @db --to @fast
migration list
migration show 1
migration show @db
migration watch 1
migrate @old --to @slow --rate 1M --detach --keep 97%
migration set @old --rate 2M
migration pause @old
migration list
migration show @old
status
migration resume @old
migration cancel @old
datastore images @fast
datastore remove-image @fast none.raw
datastore maintenance @slow
datastore maintenance @slow --off
plan evacuate @slow --to @fast --space 100% --virtual
plan evacuate @slow --to @fast --space 100%
plan show 1
plan apply 1
plan show 1
plan list
plan pause 1
plan resume 1
plan cancel 1
plan report 1
plan remove 1
storage-drs rule together @near @db @log
storage-drs rule apart @far @db @log @old --should
storage-drs rule list
storage-drs set --automation manual
storage-drs recommend
storage-drs apply
storage-drs status
storage-drs rule remove @near
host add @one --cpu 16 --memory 64G
host add @two --cpu 16 --memory 64G
host program @one /bin/true
host program @one --none
vm add @web --qmp QMP
vm add @off --qmp /nowhere/qmp
vm add @mail --libvirt test:///nowhere
vm list
vm show @web
vm move @web vda --to @slow
datastore images @slow
memory sleep @web
swap list
swap add @flash --on @fast --size 64M
swap list
memory sleep @web --all
memory show
memory show @web
memory explain @web
memory set @web --reservation 64M --limit 1G --shares 2000 --wake-within 3s
memory auto
memory auto partial --reserve 1G
memory wake @web --hold 0s
swap remove @flash
host assign @one @web
host list
host show @one
drs pool create @gold --cpu-reservation 4 --cpu-limit 8 --shares 2000
drs pool add @gold @web
drs pool set @gold --cpu-limit none
drs pool list
drs pool show @gold
drs rule affinity @near @web @mail
drs rule anti-affinity @apart @web @mail --must
drs rule host @pin @web --on @two --must
drs rule list
drs set --automation manual
drs status
drs recommend
drs explain @web
drs apply
drs migration list
drs rule remove @pin
drs pool remove-vm @gold @web
drs pool delete @gold
host unassign @web
host remove @two
advise
advise @db
activity
dashboard
status
vm remove @web
disk remove @db
disk remove @log
class delete @oltp --with-policies
datastore remove @slow
status";

/// A name that is as long as names may be.
fn long(short: &str) -> String {
    format!("{short}-{}", "x".repeat(NAME_MAX - 1 - short.len()))
}

/// A path or an address that somebody copies stays whole, on a line of its own.
fn fits(line: &str) -> bool {
    line.chars().count() <= WIDTH || line.contains('/') && !line.trim().contains(' ')
}

/// All commands that there are, as their help says.
fn commands(of: &str) -> Vec<String> {
    let args = of.split_whitespace().chain(["--help"]);
    let help = programs::run(&sterna().display().to_string(), args);
    let Some((_, list)) = help.split_once("\nCommands:\n") else {
        return vec![of.to_owned()];
    };
    let list = list.lines().take_while(|line| !line.is_empty());
    // What goes on in the next line is indented further.
    let names = list.filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let mut all = Vec::new();
    for name in names {
        let command = format!("{of} {name}").trim().to_owned();
        match name {
            "help" if !of.is_empty() => {}
            "help" => all.push(command),
            _ => all.extend(commands(&command)),
        }
    }
    all
}

#[test]
fn no_line_is_wider_than_80_columns_however_long_the_names_are() {
    let Some(stage) = Stage::given(&["qemu-system-x86_64"]) else { return };
    let _turn = memory::turn();
    let (fast, slow) = (stage.scratch.dir("fast"), stage.scratch.dir("slow"));
    let image = fast.join("image.raw");
    write_guest(&image, 16 * MIB, MIB);
    let of_vm = fast.join("vm.raw");
    write_guest(&of_vm, 16 * MIB, MIB);
    let vm = Vm::start(&stage.scratch, "web", &of_vm, "raw", &[]);
    let places = [
        ("FAST", fast.display().to_string()),
        ("SLOW", slow.display().to_string()),
        ("IMAGE", image.display().to_string()),
        ("SOCKET", stage.scratch.socket("vhost.sock").display().to_string()),
        ("QMP", vm.socket().display().to_string()),
    ];
    let word = |word: &str| match word.strip_prefix('@') {
        Some(short) => long(short),
        None => places
            .iter()
            .fold(word.to_owned(), |word, (name, place)| word.replace(name, place)),
    };
    let mut too_wide = Vec::new();
    for line in LINES.lines() {
        let words: Vec<String> = line.split_whitespace().map(word).collect();
        let Answer { code, stdout, stderr, .. } = stage.daemon.sterna(&words.join(" "));
        assert!(code == 0 || code == 1, "{line}: {code}\n{stderr}");
        let lines = stdout.lines().chain(stderr.lines()).filter(|line| !fits(line));
        too_wide.extend(lines.map(|wide| format!("{line}: {wide}")));
    }
    assert!(too_wide.is_empty(), "{too_wide:#?}");
    let is_run = |command: &String| {
        let begins = |line: &str| {
            line.strip_prefix(command.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        LINES.lines().any(begins) || ELSEWHERE.contains(&command.as_str())
    };
    let all: BTreeSet<String> = commands("").into_iter().collect();
    assert!(all.len() > 80, "{all:?}");
    let missing: Vec<&String> = all.iter().filter(|command| !is_run(command)).collect();
    assert!(missing.is_empty(), "add these to LINES: {missing:?}");
}
