//! What the command line understands, what it refuses, and how it says so.

use clap::CommandFactory;

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn the_promised_commands_are_understood() {
    for line in [
        "sterna serve",
        "sterna serve --state /s --socket /x.sock --nbd-socket /n.sock",
        "sterna serve --listen 127.0.0.1:10809 --io threads",
        "sterna serve --config /c.toml --check",
        "sterna datastore add fast /mnt/nvme",
        "sterna datastore add slow /d --shape mbps=300,iops=5000,latency=1ms",
        "sterna datastore list --json",
        "sterna datastore show fast",
        "sterna datastore probe fast",
        "sterna datastore probe fast --size 1G --length 64K",
        "sterna datastore remove fast",
        "sterna disk create a --size 10G --on fast --provision thick-zeroed",
        "sterna disk import a --on fast a.raw",
        "sterna disk recover",
        "sterna disk recover --on fast --dry-run",
        "sterna disk list",
        "sterna disk show a",
        "sterna disk remove a --keep-image",
        "sterna disk remove a --delete-image",
        "sterna disk uri a",
        "sterna disk stats a --histogram --json",
        "sterna migrate a --to slow --provision thin --rate 200M --no-verify",
        "sterna migrate a --to slow --keep-source --detach --json",
        "sterna migration list",
        "sterna migration show 3",
        "sterna migration watch 3",
        "sterna migration resume 3",
        "sterna migration cancel 3",
        "sterna migration set 3 --rate 50M",
        "sterna migration set 3 --rate none",
        "sterna migrate a --to slow --keep 97% --finish-by 06:00",
        "sterna migrate a --to slow --p99 5ms --window 22:00-06:00",
        "sterna migrate a --to slow --idle-only",
        "sterna migration set 3 --p99 10ms",
        "sterna migration set 3 --no-guard",
        "sterna class create oltp",
        "sterna class create oltp a b --shares 2000 --reservation 500iops",
        "sterna class add oltp a b",
        "sterna class remove-disk oltp a",
        "sterna class set oltp --shares 500 --reservation none",
        "sterna class list",
        "sterna class show oltp",
        "sterna class delete oltp",
        "sterna class delete oltp --with-policies",
        "sterna policy limit oltp 2M --schedule 22:00-06:00 --until-job 3",
        "sterna policy limit oltp 100iops --schedule Sat,Sun",
        "sterna policy limit oltp 20ms",
        "sterna policy cruise oltp 15M --tolerance 10%",
        "sterna policy cruise oltp 5ms --tolerance 10 --floor 500iops",
        "sterna policy cruise oltp 9iops --tolerance 10% --fallback limit=2M",
        "sterna policy cruise oltp 9iops --tolerance 10% --fallback release",
        "sterna policy queue-depth oltp 8 --schedule Mon",
        "sterna policy list",
        "sterna policy show 3",
        "sterna policy remove 3",
        "sterna policy explain oltp",
        "sterna --json status",
        "sterna top",
        "sterna top --by datastore --interval 100ms",
        "sterna top --by class --batch --count 3 --json",
        "sterna completion bash",
        "sterna man /tmp/man",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn storage_drs_is_understood() {
    for line in [
        "sterna storage-drs recommend",
        "sterna storage-drs recommend --space 75% --latency 5ms --window 600s",
        "sterna storage-drs apply --moves 2 --keep 97%",
        "sterna storage-drs status --json",
        "sterna storage-drs set --automation full --every 1h --keep 95%",
        "sterna storage-drs set --latency 5ms --space 75% --window 10min",
        "sterna storage-drs set --no-guard",
        "sterna storage-drs rule together db-and-log db log",
        "sterna storage-drs rule apart replicas a b c --should",
        "sterna storage-drs rule list",
        "sterna storage-drs rule remove replicas",
        "sterna disk create a --size 10G",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn advice_is_understood() {
    for line in ["sterna advise", "sterna advise db --window 60s --json"] {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn plans_are_understood() {
    for line in [
        "sterna plan evacuate old",
        "sterna plan evacuate old --to a --to b --by 8h --keep 97% --space 90%",
        "sterna plan evacuate old --at-once 4 --window 22:00-06:00 --virtual",
        "sterna plan evacuate old --tile /tmp/tiles.toml",
        "sterna plan evacuate old --p99 5ms --rate 200M --no-verify --json",
        "sterna plan list",
        "sterna plan show 3",
        "sterna plan apply 3",
        "sterna plan pause 3",
        "sterna plan resume 3",
        "sterna plan cancel 3",
        "sterna plan report 3 --json",
        "sterna datastore images fast --json",
        "sterna datastore remove-image fast web.raw",
        "sterna datastore maintenance old",
        "sterna datastore maintenance old --off",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn predictions_are_understood() {
    for line in [
        "sterna predict a --to slow --rate 200M --no-verify",
        "sterna predict a --to slow --keep 97% --p99 5ms --json",
        "sterna predict a --to slow --idle-only",
        "sterna predict a --to slow --keep 97% --at 22:00",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
#[cfg(feature = "lab")]
fn experiments_are_understood() {
    for line in [
        "sterna lab qos",
        "sterna lab qos --quick --out /tmp/lab --seed 7",
        "sterna lab qos --minutes 60 --datastore /mnt/array --shape mbps=80",
        "sterna lab nas250 --virtual --out /tmp/lab",
        "sterna lab nas250 --tiles 10 --scale 500 --seconds 60 --seed 7",
        "sterna lab svmotion --guest /tmp/guest",
        "sterna lab svmotion --guest g --scale 1200 --memory 512M --out o --seed 7",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
#[cfg(feature = "sim")]
fn scenarios_are_understood() {
    let line = "sterna sim run scenarios/nas250.toml --out /tmp/sim --json";
    if let Err(error) = parse(line) {
        panic!("{line}: {error}");
    }
}

#[test]
fn a_command_that_is_not_compiled_in_is_not_there() {
    for (line, compiled_in) in [
        ("sterna lab qos", cfg!(feature = "lab")),
        ("sterna sim run nas250.toml", cfg!(feature = "sim")),
        ("sterna bench dvdstore --uri u", cfg!(feature = "bench")),
    ] {
        assert_eq!(parse(line).is_ok(), compiled_in, "{line}");
    }
}

#[test]
#[cfg(feature = "bench")]
fn what_a_bench_can_be_told_is_understood() {
    for line in [
        "sterna bench dvdstore --uri postgres://me@localhost/shop",
        "sterna bench dvdstore --uri postgres:///shop?host=/run/pg --size 500M --users 4 --think 0.5 --minutes 0.1 --warm-up 0",
        "sterna bench dvdstore --uri u --rate 20 --reload --data-tablespace d --index-tablespace i --seed 7",
        "sterna bench dvdstore --uri u --acknowledged orders --minutes 5 --json",
        "sterna bench dvdstore --uri u --check orders",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn the_commands_for_machines_are_understood() {
    for line in [
        "sterna vm add web --qmp /run/web.qmp",
        "sterna vm add web --libvirt qemu:///system web-1",
        "sterna vm list",
        "sterna vm show web --json",
        "sterna vm move web vda --to slow --keep 97% --rate 50M --detach",
        "sterna vm remove web",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn the_commands_for_hosts_are_understood() {
    for line in [
        "sterna host add a --cpu 16 --memory 64G",
        "sterna host list",
        "sterna host show a",
        "sterna host remove a",
        "sterna host assign a web",
        "sterna host unassign web",
        "sterna drs pool create gold --cpu-reservation 4 --cpu-limit 8 --shares 2000",
        "sterna drs pool create inner --parent gold --memory-reservation 8G",
        "sterna drs pool set gold --cpu-limit none --memory-limit none",
        "sterna drs pool set gold --cpu-shares 5 --memory-shares 7",
        "sterna drs pool list",
        "sterna drs pool show gold",
        "sterna drs pool add gold web",
        "sterna drs pool remove-vm gold web",
        "sterna drs pool delete gold",
        "sterna drs rule affinity near web db",
        "sterna drs rule anti-affinity far web db mail --must",
        "sterna drs rule host pin web db --on a b --must",
        "sterna drs rule host off web --not-on a",
        "sterna drs rule affinity near web db --should",
        "sterna storage-drs rule apart replicas a b --must",
        "sterna drs rule list",
        "sterna drs rule remove far",
        "sterna drs status",
        "sterna drs recommend --json",
        "sterna drs explain web",
        "sterna drs apply",
        "sterna drs apply web --qmp /run/web-b.qmp --rate 200M --detach",
        "sterna drs apply 1 --json",
        "sterna drs migration list",
        "sterna drs set --automation full",
        "sterna host program b /usr/local/bin/start-vm",
        "sterna host program b --none",
        "sterna drs set --threshold 5 --round 10s --hold 1 --cooldown 600s --moves 3",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn a_wrong_command_line_for_hosts_is_a_usage_error() {
    for line in [
        "sterna host add a --cpu 16",
        "sterna host add a --cpu many --memory 64G",
        "sterna host assign a",
        "sterna drs pool create gold --shares 5 --cpu-shares 5",
        "sterna drs pool set gold",
        "sterna drs rule affinity near web",
        "sterna drs rule host pin web",
        "sterna drs rule host pin web --on a --not-on b",
        "sterna drs set",
        "sterna drs set --threshold 6",
        "sterna drs set --automation sometimes",
        "sterna drs apply --qmp /run/web-b.qmp",
        "sterna drs migration cancel web",
        "sterna host program b",
        "sterna drs set --round 10",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
}

#[test]
fn a_group_of_commands_alone_asks_for_its_help() {
    for line in [
        "sterna",
        "sterna disk",
        "sterna datastore",
        "sterna migration",
        "sterna class",
        "sterna policy",
        "sterna plan",
        #[cfg(feature = "lab")]
        "sterna lab",
        #[cfg(feature = "sim")]
        "sterna sim",
        #[cfg(feature = "bench")]
        "sterna bench",
        "sterna vm",
        "sterna host",
        "sterna drs pool",
        "sterna drs rule",
        "sterna drs",
    ] {
        let help = clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        assert_eq!(parse(line).unwrap_err().kind(), help, "{line}");
    }
}

#[test]
fn a_policy_ends_with_a_migration_that_its_number_names() {
    let line = "sterna policy limit oltp 2M --until-job db";
    let error = parse(line).unwrap_err().to_string();
    assert!(error.contains("sterna migration list"), "{error}");
}

#[test]
fn help_fits_a_terminal() {
    fn check(command: &mut clap::Command) {
        let help = command.render_long_help().to_string();
        assert!(help.lines().all(|line| line.chars().count() <= WIDTH), "{help}");
        command.get_subcommands_mut().for_each(check);
    }
    let mut command = Cli::command();
    command.build();
    check(&mut command);
}

#[test]
fn where_things_should_be_cannot_be_asked_for_like_this() {
    for line in [
        "sterna storage-drs set",
        "sterna storage-drs set --automation sometimes",
        "sterna storage-drs set --no-guard --keep 97%",
        "sterna storage-drs set --every 1s",
        "sterna storage-drs rule apart pair a",
        "sterna storage-drs rule",
        "sterna plan evacuate",
        "sterna plan evacuate old --at-once 0",
        "sterna plan evacuate old --space 0%",
        "sterna plan evacuate old --keep 97% --idle-only",
        "sterna plan apply old",
        "sterna datastore probe old --size 1K",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    for line in [
        "sterna",
        "sterna disk create a --on fast",
        "sterna disk create a --size ten --on fast",
        "sterna migrate a",
        "sterna disk remove a --keep-image --delete-image",
        "sterna migration show",
        "sterna migrate a --to b --rate fast",
        "sterna migrate a --to b --keep 0%",
        "sterna predict a",
        "sterna predict a --to b --p99 5ms --idle-only",
        "sterna migrate a --to b --keep 97% --idle-only",
        "sterna migrate a --to b --window sometimes",
        "sterna migration set 3",
        "sterna migration set 3 --no-guard --keep 97%",
        "sterna datastore add a /a --shape colour=red",
        "sterna class add oltp",
        "sterna class set oltp",
        "sterna class create oltp --reservation 5ms",
        "sterna class create oltp --shares many",
        "sterna policy limit oltp",
        "sterna policy limit oltp fast",
        "sterna policy limit oltp 0",
        "sterna policy limit oltp 2M --schedule tonight",
        "sterna policy limit oltp 2M --until-job db",
        "sterna policy cruise oltp 15M",
        "sterna policy cruise oltp 15M --tolerance 60%",
        "sterna policy cruise oltp 15M --tolerance 10% --floor 5ms",
        "sterna policy cruise oltp 15M --tolerance 10% --fallback limit",
        "sterna policy queue-depth oltp 0",
        "sterna policy queue-depth oltp 65536",
        "sterna policy show oltp",
        "sterna vm add web",
        "sterna vm add web --qmp /q --libvirt qemu:///system",
        "sterna vm add web --qmp /q domain",
        "sterna vm move web vda",
        "sterna vm move web --to slow",
        "sterna lab nas250 --tiles 11",
        "sterna lab nas250 --virtual --scale 500",
        "sterna sim run",
        "sterna lab svmotion",
        "sterna lab svmotion --guest g --quick --scale 100",
        "sterna lab qos --minutes 1",
        "sterna lab qos --quick --minutes 20",
        "sterna lab qos --shape fast",
        "sterna bench dvdstore",
        "sterna bench dvdstore --uri u --size tiny",
        "sterna bench dvdstore --uri u --size 2T",
        "sterna bench dvdstore --uri u --users 0",
        "sterna bench dvdstore --uri u --rate 0",
        "sterna bench dvdstore --uri u --rate 5 --think 1",
        "sterna bench dvdstore --uri u --check a --acknowledged b",
        "sterna bench dvdstore --uri u --minutes soon",
        "sterna serve --io psync",
        "sterna top --by host",
        "sterna top --interval 10ms",
        "sterna top --batch --count 0",
        "sterna serve --listen localhost",
        "sterna serve --listen localhost:10809",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
}
