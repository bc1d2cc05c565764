//! Disks that are hurt, in words.

use sterna_api::{Aim, Goal, HurtHelp, Policy, RecommendedMove, is_name};
use sterna_core::hurt::{Again, Cause, Help, Hurt, Proven, Turn};
use sterna_core::qos::Rate;
use sterna_core::qos::policy::BYTES_MIN;
use sterna_core::{Bytes, Nanos, Percent};
use sterna_service_levels::Bound;

/// What is around a disk that is hurt.
pub(super) struct Around {
    pub(super) disk: String,
    pub(super) datastore: String,
    pub(super) class: Option<String>,
    /// The limit that holds its class back, if the class reaches one.
    pub(super) binds: Option<Bound>,
    /// Whether there are classes or policies, that may hold it.
    pub(super) is_ruled: bool,
    /// Whether another class has disks there that are asked for something.
    pub(super) has_rivals: bool,
    /// For how long the neighbour has had its load, if the disk was slow before that.
    pub(super) later: Option<Nanos>,
    /// The neighbour that does most of the work, with its class.
    pub(super) neighbour: Option<(String, Option<String>)>,
    /// What is reserved for the neighbour's class, and in bytes per second.
    pub(super) reserved: Option<(Rate, f64)>,
    /// Moves from the datastore and to it, by number and disk.
    pub(super) copies: Vec<(u64, String)>,
    /// How many datastores there are.
    pub(super) datastores: usize,
}

/// A response time, as the dashboard has it: `0.50 ms`, `7.9 ms`, `1.2 s`.
pub(super) fn time(span: Nanos) -> String {
    match span.as_millis_f64() {
        ms if ms < 1.0 => format!("{ms:.2} ms"),
        ms if ms < 1000.0 => format!("{ms:.1} ms"),
        ms => format!("{:.1} s", ms / 1e3),
    }
}

/// How long something lasted: `45 s`, `12 min`, `3 h 05 min`.
pub(super) fn span(lasted: Nanos) -> String {
    let seconds = lasted.0 / 1_000_000_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// What requests take now, and what they should.
pub(super) fn takes(hurt: &Hurt) -> String {
    let Some(took) = hurt.took else { return "requests hang".into() };
    let promised = hurt.promised.map(|most| format!(", promised {}", time(most)));
    let usual = hurt.usual.map(|usual| format!(", usually {}", time(usual)));
    let should = promised.or(usual).unwrap_or_default();
    let again = if hurt.recovers { " again" } else { "" };
    format!("requests take {}{again}{should}", time(took))
}

/// The worst of a time that is over.
pub(super) fn worst(turn: &Turn) -> String {
    match turn {
        Turn::Fell { worst: Some(worst), .. } => format!(", at worst {}", time(*worst)),
        _ => String::new(),
    }
}

/// By what the disk is hurt.
pub(super) fn why(cause: &Cause, around: &Around) -> String {
    let datastore = &around.datastore;
    match cause {
        Cause::Hangs => format!("Datastore {datastore} answers none of its requests"),
        Cause::Queued { part } => {
            let class = around.class.as_deref().unwrap_or("(no class)");
            let why = match &around.binds {
                Some(Bound { policy, limit, target_of: Some(other) }) => format!(
                    "class {class} is held to {limit} for the target of class {other} \
                     (policy {policy})"
                ),
                Some(Bound { policy, limit, target_of: None }) => {
                    format!("policy {policy} limits class {class} to {limit}")
                }
                None if around.has_rivals => {
                    format!("other classes of datastore {datastore} go first")
                }
                None if !around.is_ruled => {
                    "memory for requests is short, for example because clients do not read \
                     their answers"
                        .into()
                }
                None => format!(
                    "class {class} was held for the target of another class, or by a limit, \
                     within the last 30 s"
                ),
            };
            format!(
                "Its requests wait for their turn {} of their time: {why}",
                Percent(*part)
            )
        }
        Cause::Itself { times } => {
            format!("Its application sends {times:.1} times as many requests as usual")
        }
        Cause::Neighbour { part, .. } => {
            let name = around.neighbour.as_ref().map_or("", |(name, _)| name);
            let does = format!(
                "neighbour {name} does {} of the work of datastore {datastore}",
                Percent(*part)
            );
            match around.later {
                Some(ago) => format!(
                    "For {} its {does}; the disk was slow before, for another reason",
                    span(ago)
                ),
                None => format!("Its {does}"),
            }
        }
        Cause::Copies { part } => {
            let of: Vec<String> = around
                .copies
                .iter()
                .map(|(id, disk)| format!("{disk} (move {id})"))
                .collect();
            let of = match of.is_empty() {
                true => "of moves".into(),
                false => format!("of {}", of.join(", ")),
            };
            format!(
                "Copies {of} do {} of the work of datastore {datastore}",
                Percent(*part)
            )
        }
        Cause::Device => format!(
            "No neighbour and no copy does most of the work: datastore {datastore} itself is \
             slower"
        ),
    }
}

fn response(load: &sterna_api::DatastoreLoad) -> Option<Nanos> {
    load.p95_us.map(|micros| Nanos((micros * 1e3) as u64))
}

/// What 95 of 100 requests of the disk that is hurt take up to now, and with a move: of the
/// datastore that it leaves, if another one moves; of the one that it goes to, if it moves.
pub(super) fn brings(one: &RecommendedMove, hurt: &str) -> Option<[Nanos; 2]> {
    let then = if one.disk == hurt { &one.destination[1] } else { &one.source[1] };
    Some([response(&one.source[0])?, response(then)?])
}

/// A move that Storage DRS would recommend.
pub(super) fn help_by_move(one: &RecommendedMove, hurt: &str) -> HurtHelp {
    let RecommendedMove { disk, from, to, .. } = one;
    let effect = brings(one, hurt).map_or(String::new(), |times| {
        let [before, after] = times.map(time);
        match disk == hurt {
            true => format!(
                "; 95 of 100 requests there then take up to {after}, on {from} now {before}"
            ),
            false => format!(
                "; 95 of 100 requests on {from} then take up to {after}, now {before}"
            ),
        }
    });
    HurtHelp {
        text: format!("move {disk} to datastore {to}{effect}"),
        command: Some(format!("sterna migrate {disk} --to {to} --keep 97%")),
    }
}

/// Limits that were better than none, and were taken back.
pub(super) fn help_again(proven: Proven) -> HurtHelp {
    let Proven { limits, ago, took } = proven;
    let (ago, took) = (span(ago), time(took));
    let policies: Vec<String> = limits.iter().map(|one| one.policy.to_string()).collect();
    let commands: Vec<String> = limits.into_iter().map(|one| one.command).collect();
    let text = match &policies[..] {
        [policy] => format!(
            "make policy {policy} again, which was removed {ago} ago; requests took {took} \
             with it"
        ),
        policies => format!(
            "make policies {} again, which were removed {ago} ago; one of them, or all \
             together, made requests take {took}",
            policies.join(", ")
        ),
    };
    HurtHelp { text, command: Some(commands.join(" && ")) }
}

/// What a disk needs whose requests take what they should again.
pub(super) fn help_recovers() -> HurtHelp {
    let text = "nothing more: the disk recovers".into();
    HurtHelp { text, command: None }
}

/// What ends the wait of a disk that is slowed on purpose.
pub(super) fn help_slowed(help: HurtHelp) -> HurtHelp {
    let text = "nothing, if that is what you want; to see what binds".into();
    HurtHelp { text, ..help }
}

/// A limit on the neighbour.
pub(super) fn help_by_limit(hurt: &Hurt, help: Help, around: &Around) -> HurtHelp {
    let (rate, effect) = match help {
        Help::Limit { bytes_per_second, then } => {
            let short = hurt.promised.filter(|most| then > *most);
            let short = short.map_or(String::new(), |most| {
                format!(", which is not enough for the promised {}", time(most))
            });
            let (disk, then) = (&around.disk, time(then));
            let effect = format!("requests of {disk} then take about {then}{short}");
            (bytes_per_second, effect)
        }
        Help::Unforeseen { bytes_per_second } => {
            let effect = format!(
                "what that brings is not known before `sterna datastore probe {}`",
                around.datastore
            );
            (bytes_per_second, effect)
        }
        Help::InVain => return help_without(&Cause::Device, around),
    };
    let rate = round(rate);
    let Some((name, class)) = &around.neighbour else {
        return help_without(&Cause::Device, around);
    };
    let goal = goal(rate);
    let breaks = match (class, around.reserved) {
        (Some(class), Some((reserved, bytes))) if bytes > rate as f64 => {
            format!("; this breaks the reservation of class {class}, {reserved}")
        }
        _ => String::new(),
    };
    let command = match class {
        Some(class) if around.class.as_ref() != Some(class) => {
            format!("sterna policy limit {class} {goal}")
        }
        // A class of its own, so that the limit holds nobody else.
        own => {
            let new = format!("{name}-limited");
            let new = if is_name(&new) { new } else { "limited".into() };
            let leave = own.as_ref().map_or(String::new(), |class| {
                format!("sterna class remove-disk {class} {name} && ")
            });
            format!(
                "{leave}sterna class create {new} {name} && sterna policy limit {new} {goal}"
            )
        }
    };
    HurtHelp {
        text: format!("hold {name} to {}/s; {effect}{breaks}", Bytes(rate)),
        command: Some(command),
    }
}

/// Where neither a move nor a limit helps.
pub(super) fn help_without(cause: &Cause, around: &Around) -> HurtHelp {
    let Around { disk, datastore, .. } = around;
    let (text, command) = match cause {
        Cause::Hangs => (
            "see what is wrong with the datastore".into(),
            Some(format!("sterna datastore show {datastore}")),
        ),
        Cause::Queued { .. } => match &around.class {
            Some(class) => (
                "raise the limit, or accept that another class goes first; to see what binds"
                    .into(),
                Some(format!("sterna policy explain {class}")),
            ),
            None if !around.is_ruled => (
                "find out which clients do not read their answers".into(),
                Some("sterna status".into()),
            ),
            None => (
                "give the disk a class with shares or a reservation".into(),
                Some(format!("sterna class create important {disk} --shares 4000")),
            ),
        },
        Cause::Copies { .. } => match &around.copies[..] {
            [(id, _), ..] => (
                "pause the move, and resume it when the disk is quiet".into(),
                Some(format!("sterna migration pause {id}")),
            ),
            [] => ("wait until the copies have ended".into(), None),
        },
        _ if around.datastores < 2 => (
            "nothing is known: there is no other datastore. Add one, then Sterna says what \
             would move there"
                .into(),
            Some("sterna datastore add NAME PATH".into()),
        ),
        _ => (
            format!(
                "nothing is known: no move makes datastore {datastore} faster without making \
                 another one too slow or too full. A probe says what the device can do"
            ),
            Some(format!("sterna datastore probe {datastore}")),
        ),
    };
    HurtHelp { text, command }
}

/// The command that makes a limit again that was removed; nothing of another policy.
pub(super) fn make_again(policy: &Policy) -> Option<Again> {
    let Aim::Limit { goal: Goal::BytesPerSecond(rate) } = policy.aim else { return None };
    let schedule = policy.schedule.as_ref();
    let schedule = schedule.map_or(String::new(), |it| format!(" --schedule '{it}'"));
    let written = match rate % (256 << 10) {
        0 => goal(rate),
        _ => rate.to_string(),
    };
    Some(Again {
        policy: policy.id,
        class: policy.class.clone(),
        bytes_per_second: rate,
        command: format!("sterna policy limit {} {written}{schedule}", policy.class),
    })
}

/// Two figures of it, and no less than may be asked for.
fn round(rate: f64) -> u64 {
    let unit: u64 = if rate >= f64::from(10 << 20) { 1 << 20 } else { 256 << 10 };
    ((rate as u64) / unit * unit).max(BYTES_MIN)
}

/// A rate as a command has it: `20M`, `256K`.
fn goal(rate: u64) -> String {
    match rate % (1 << 20) {
        0 => format!("{}M", rate >> 20),
        _ => format!("{}K", rate >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(neighbour: Option<&str>) -> Around {
        Around {
            disk: "db".into(),
            datastore: "array".into(),
            class: Some("gold".into()),
            binds: None,
            is_ruled: true,
            has_rivals: true,
            later: None,
            neighbour: Some(("etl".into(), neighbour.map(str::to_owned))),
            reserved: None,
            copies: Vec::new(),
            datastores: 1,
        }
    }

    fn hurt() -> Hurt {
        Hurt {
            since: Nanos(0),
            took: Some(Nanos::from_micros(7_900)),
            usual: Some(Nanos::from_micros(500)),
            promised: None,
            recovers: false,
        }
    }

    #[test]
    fn a_disk_says_what_it_takes_and_what_is_usual_or_promised() {
        assert_eq!(takes(&hurt()), "requests take 7.9 ms, usually 0.50 ms");
        let promised = Hurt { promised: Some(Nanos::from_millis(5)), ..hurt() };
        assert_eq!(takes(&promised), "requests take 7.9 ms, promised 5.0 ms");
        assert_eq!(takes(&Hurt { took: None, ..hurt() }), "requests hang");
        let by = why(&Cause::Neighbour { at: 0, part: 0.9, later: None }, &around(None));
        assert_eq!(by, "Its neighbour etl does 90% of the work of datastore array");
        let later = Around { later: Some(Nanos::from_secs(240)), ..around(None) };
        assert_eq!(
            why(&Cause::Neighbour { at: 0, part: 0.9, later: None }, &later),
            "For 4 min its neighbour etl does 90% of the work of datastore array; the disk \
             was slow before, for another reason"
        );
    }

    #[test]
    fn a_class_that_is_alone_on_its_datastore_does_not_wait_for_others_there() {
        let queued = |has_rivals| {
            why(&Cause::Queued { part: 0.9 }, &Around { has_rivals, ..around(None) })
        };
        assert!(queued(true).ends_with("other classes of datastore array go first"));
        let nobody = Around { has_rivals: false, is_ruled: false, ..around(None) };
        let alone = Around { class: None, ..nobody };
        let by = why(&Cause::Queued { part: 0.9 }, &alone);
        assert!(by.contains("memory for requests is short") && !by.contains("class"));
        assert!(queued(false).contains("class gold was held for the target of another"));
    }

    #[test]
    fn times_are_in_the_dashboards_words() {
        let times = [490, 7_900, 1_234_000].map(|us| time(Nanos::from_micros(us)));
        assert_eq!(times, ["0.49 ms", "7.9 ms", "1.2 s"]);
        let spans = [45, 750, 11_100].map(|s| span(Nanos::from_secs(s)));
        assert_eq!(spans, ["45 s", "12 min", "3 h 05 min"]);
    }

    #[test]
    fn a_limit_is_a_command_that_holds_nobody_else() {
        let limit =
            Help::Limit { bytes_per_second: 20_500_000.0, then: Nanos::from_millis(2) };
        let other = help_by_limit(&hurt(), limit, &around(Some("batch")));
        assert_eq!(
            other.text,
            "hold etl to 19.0 MiB/s; requests of db then take about 2.0 ms"
        );
        assert_eq!(other.command.as_deref(), Some("sterna policy limit batch 19M"));
        let none = help_by_limit(&hurt(), limit, &around(None)).command.unwrap();
        let made =
            "sterna class create etl-limited etl && sterna policy limit etl-limited 19M";
        assert_eq!(none, made);
        let same = help_by_limit(&hurt(), limit, &around(Some("gold"))).command.unwrap();
        assert_eq!(same, format!("sterna class remove-disk gold etl && {made}"));
        let small = Help::Unforeseen { bytes_per_second: 900.0 };
        let least = help_by_limit(&hurt(), small, &around(Some("batch"))).command;
        assert_eq!(least.as_deref(), Some("sterna policy limit batch 256K"));
    }

    #[test]
    fn a_limit_says_if_it_is_not_enough_and_what_it_breaks() {
        let then = Nanos::from_micros(7_100);
        let limit = Help::Limit { bytes_per_second: 14_700_000.0, then };
        let promised = Hurt { promised: Some(Nanos::from_micros(6_600)), ..hurt() };
        let reserved = Some((Rate::Requests(1200), 39_321_600.0));
        let around = Around { reserved, ..around(Some("bulk")) };
        assert_eq!(
            help_by_limit(&promised, limit, &around).text,
            "hold etl to 14.0 MiB/s; requests of db then take about 7.1 ms, which is not \
             enough for the promised 6.6 ms; this breaks the reservation of class bulk, 1200 \
             IO/s"
        );
        let kept =
            Around { reserved: Some((Rate::Requests(100), 3_276_800.0)), ..around };
        assert!(!help_by_limit(&promised, limit, &kept).text.contains("breaks"));
    }

    #[test]
    fn a_wait_names_the_limit_that_binds() {
        let waits = |bound| {
            let around = Around { class: Some("bulk".into()), ..around(None) };
            why(&Cause::Queued { part: 0.9 }, &Around { binds: Some(bound), ..around })
        };
        let limit = sterna_core::qos::Goal::Bytes(18 << 20);
        let own = Bound { policy: 3, limit, target_of: None };
        assert!(waits(own.clone()).ends_with("policy 3 limits class bulk to 18.0 MiB/s"));
        let held = waits(Bound { policy: 2, target_of: Some("gold".into()), ..own });
        let end =
            "class bulk is held to 18.0 MiB/s for the target of class gold (policy 2)";
        assert!(held.ends_with(end), "{held}");
    }

    #[test]
    fn a_limit_that_helped_and_was_removed_is_offered_again() {
        let again = |policy| Again {
            policy,
            class: "batch".into(),
            bytes_per_second: 10 << 20,
            command: "sterna policy limit batch 10M".into(),
        };
        let proven = Proven {
            limits: vec![again(5)],
            ago: Nanos::from_secs(180),
            took: Nanos::from_micros(6_500),
        };
        let help = help_again(proven.clone());
        assert_eq!(
            help.text,
            "make policy 5 again, which was removed 3 min ago; requests took 6.5 ms with it"
        );
        assert_eq!(help.command.as_deref(), Some("sterna policy limit batch 10M"));
        let both = help_again(Proven { limits: vec![again(3), again(9)], ..proven });
        assert!(both.text.starts_with("make policies 3, 9 again"), "{}", both.text);
        let line = "sterna policy limit batch 10M && sterna policy limit batch 10M";
        assert_eq!(both.command.as_deref(), Some(line));
    }

    #[test]
    fn where_nothing_is_known_it_says_what_to_set_up() {
        let alone = help_without(&Cause::Device, &around(None));
        assert!(alone.text.starts_with("nothing is known"), "{}", alone.text);
        assert_eq!(alone.command.as_deref(), Some("sterna datastore add NAME PATH"));
        let two = Around { datastores: 2, ..around(None) };
        let probe = help_without(&Cause::Device, &two).command;
        assert_eq!(probe.as_deref(), Some("sterna datastore probe array"));
    }
}
