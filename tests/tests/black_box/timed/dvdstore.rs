//! The DVD store on a real PostgreSQL: what it loads, sells, measures and refuses, and
//! that nothing that was acknowledged is lost.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use sterna_tests::daemon::send_signal;
use sterna_tests::places::TinyFs;
use sterna_tests::postgres::{GUARDED, PASSWORD};
use sterna_tests::programs::{have, root, sterna};
use sterna_tests::wait::{seconds, until};
use sterna_tests::{Answer, Postgres, Scratch};

/// A store of the smallest size.
const TINY: &str = "--size 1M";
/// Three seconds without a warm-up.
const SHORT: &str = "--size 1M --minutes 0.05 --warm-up 0 --users 4";

/// `sterna bench dvdstore` on a database, with these arguments.
fn command(uri: &str, arguments: &str) -> Command {
    let mut command = Command::new(sterna());
    command
        .args(["bench", "dvdstore", "--uri", uri])
        .args(arguments.split_whitespace())
        .env_remove("PGPASSWORD")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn start(uri: &str, arguments: &str) -> Child {
    command(uri, arguments).spawn().expect("start sterna")
}

fn answer(arguments: &str, output: &Output) -> Answer {
    Answer::new(format!("sterna bench dvdstore {arguments}"), output)
}

fn bench(uri: &str, arguments: &str) -> Answer {
    answer(arguments, &command(uri, arguments).output().expect("start sterna"))
}

/// A server with a tiny store.
#[track_caller]
fn store() -> Option<Postgres> {
    let postgres = Postgres::given()?;
    bench(&postgres.uri(), &format!("{TINY} --minutes 0")).ok();
    Some(postgres)
}

fn count(postgres: &Postgres, table: &str) -> u64 {
    let text = postgres.sql(&format!("SELECT count(*) FROM dvdstore.{table}"));
    text.parse().expect("a count")
}

/// A file for acknowledged orders.
fn orders_file(scratch: &Scratch) -> PathBuf {
    scratch.path("orders")
}

/// How many orders are in it.
fn acknowledged(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter(|line| !line.starts_with('#')).count()
}

/// Waits until so many orders more are acknowledged.
#[track_caller]
fn more_orders(file: &Path, bench: &mut Child, more: usize) {
    let from = acknowledged(file);
    until("orders to be acknowledged", seconds(120), || {
        let ended = bench.try_wait().expect("ask for sterna");
        assert!(ended.is_none(), "sterna ended: {ended:?}");
        (acknowledged(file) >= from + more).then_some(())
    });
}

#[test]
fn a_store_is_loaded_whole_and_the_same_from_the_same_seed() {
    let Some(postgres) = Postgres::given() else { return };
    let uri = postgres.uri();
    let load = |seed: u64| {
        let arguments = format!("{TINY} --minutes 0 --reload --json --seed {seed}");
        let said = bench(&uri, &arguments).ok().json();
        assert_eq!(said["customers"], 2000);
        let tables = ["customers", "orders", "orderlines", "cust_hist", "products"];
        tables.map(|table| {
            let rows = "string_agg(t::text, ';' ORDER BY t::text)";
            postgres.sql(&format!("SELECT md5({rows}) FROM dvdstore.{table} t"))
        })
    };
    let first = load(1);
    assert_eq!(first, load(1));
    assert!(first.iter().zip(load(2)).all(|(one, other)| *one != other));
    for (table, rows) in
        [("customers", 2000), ("orders", 1200), ("products", 1000), ("categories", 16)]
    {
        assert_eq!(count(&postgres, table), rows, "{table}");
    }
    assert_eq!(count(&postgres, "orderlines"), count(&postgres, "cust_hist"));
    let invalid = "SELECT count(*) FROM pg_index WHERE NOT indisvalid";
    assert_eq!(postgres.sql(invalid), "0");
}

#[test]
fn users_shop_and_the_report_says_what_it_came_to() {
    let Some(postgres) = store() else { return };
    let before = ["orders", "customers"].map(|table| count(&postgres, table));
    let report = bench(&postgres.uri(), &format!("{SHORT} --json")).ok().json();
    let number = |value: &Value| value.as_u64().expect("a number");
    let orders = number(&report["orders"]);
    assert!(orders > 0, "{report:#}");
    // Orders that were under way at the end are made, but not counted.
    let made = count(&postgres, "orders") - before[0];
    assert!((orders..=orders + 4).contains(&made), "{orders} of {made}");
    assert!(count(&postgres, "customers") > before[1]);
    let times = &report["times"];
    for kind in ["order", "login", "new_customer", "browse", "purchase"] {
        let of = &times[kind];
        assert!(number(&of["count"]) > 0, "{kind}: {of}");
        let quantiles = ["p50_us", "p95_us", "p99_us", "p999_us", "max_us"]
            .map(|one| number(&of[one]));
        assert!(quantiles[0] > 0 && quantiles.is_sorted(), "{kind}: {of}");
    }
    assert_eq!(
        number(&times["purchase"]["count"]),
        orders + number(&report["rollbacks"])
    );
    let rate = report["orders_per_s"].as_f64().expect("a rate");
    assert!((report["opm"].as_f64().expect("opm") - 60.0 * rate).abs() < 1e-6);
    let series = report["series"].as_array().expect("a series");
    let told: u64 = series.iter().map(|window| number(&window["orders"])).sum();
    assert_eq!(told, orders);
    assert_eq!(report["errors"], Value::Array(Vec::new()));
    assert_eq!(report["server"]["durable"], true);
    // The server is on this host, so what orders cost is known.
    assert!(report["cpu"]["seconds_per_order"].as_f64() > Some(0.0), "{report:#}");
}

#[test]
fn in_words_the_report_fits_a_terminal() {
    let Some(postgres) = store() else { return };
    let said = bench(&postgres.uri(), "--size 1M --minutes 0.2 --warm-up 0").ok();
    assert!(
        said.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        said.stdout
    );
    let line = said.stdout.lines().nth(1).expect("a line of figures");
    assert!(line.split_whitespace().nth(1) == Some("s"), "{line}");
    for word in ["ORDERS/S", "whole order", "opm", "rolled back"] {
        assert!(said.stdout.contains(word), "no `{word}`: {}", said.stdout);
    }
}

#[test]
fn a_run_that_is_interrupted_while_it_warms_up_has_measured_nothing_and_fails() {
    let Some(postgres) = store() else { return };
    let scratch = Scratch::new();
    let file = orders_file(&scratch);
    let arguments =
        format!("{TINY} --warm-up 5 --users 4 --acknowledged {}", file.display());
    let mut run = start(&postgres.uri(), &arguments);
    more_orders(&file, &mut run, 10);
    send_signal(&run, Signal::INT);
    let output = run.wait_with_output().expect("wait for sterna");
    let said = answer(&arguments, &output).fails_with(&[
        "warming up",
        "nothing was measured",
        "--warm-up",
    ]);
    assert!(said.stdout.contains("nothing: the run was interrupted"), "{}", said.stdout);
    assert!(!said.stdout.contains("warmed up for 5 min"), "{}", said.stdout);
}

#[test]
fn every_acknowledged_order_is_found_and_a_lost_one_is_named() {
    let Some(postgres) = store() else { return };
    let (uri, scratch) = (postgres.uri(), Scratch::new());
    let file = orders_file(&scratch);
    let path = file.display();
    bench(&uri, &format!("{SHORT} --acknowledged {path}")).ok();
    // Another run goes on with the file.
    let first = acknowledged(&file);
    bench(&uri, &format!("{SHORT} --acknowledged {path}")).ok();
    assert!(first > 0 && acknowledged(&file) > first);
    bench(&uri, &format!("--check {path}")).ok();
    // Of no order it cannot be said that it is there.
    let empty = scratch.path("empty");
    std::fs::write(&empty, "").expect("write");
    let said = bench(&uri, &format!("--check {}", empty.display()));
    said.fails_with(&["no order in", "nothing was compared", "--acknowledged"]);
    let last = postgres.sql("SELECT max(orderid) FROM dvdstore.orderlines");
    let number = format!("WHERE orderid = {last} AND orderlineid = 1");
    postgres.sql(&format!("DELETE FROM dvdstore.orderlines {number}"));
    let said = bench(&uri, &format!("--check {path}")).fails_with(&["1 of", "not there"]);
    assert!(said.stdout.contains(&last), "{}", said.stdout);
    let said = bench(&uri, &format!("--check {path} --json")).json();
    assert_eq!(said["missing"][0]["order"].to_string(), last);
}

#[test]
fn a_killed_server_loses_nothing_acknowledged_and_the_users_go_on() {
    let Some(mut postgres) = store() else { return };
    let (uri, scratch) = (postgres.uri(), Scratch::new());
    let file = orders_file(&scratch);
    let path = file.display().to_string();
    let arguments = format!("{TINY} --warm-up 0 --users 4 --acknowledged {path} --json");
    let mut run = start(&uri, &arguments);
    for _ in 0..2 {
        more_orders(&file, &mut run, 100);
        postgres.kill();
        postgres.restart();
    }
    more_orders(&file, &mut run, 100);
    // It ends in good order, with its report.
    send_signal(&run, Signal::INT);
    let output = run.wait_with_output().expect("wait for sterna");
    let report = answer(&arguments, &output).ok().json();
    assert_eq!(report["interrupted"], true);
    assert!(report["reconnects"].as_u64() >= Some(2), "{report:#}");
    let errors = report["errors"].as_array().expect("errors");
    assert!(errors.iter().any(|error| error["count"].as_u64() > Some(0)), "{report:#}");
    // Nothing is measured of a server that has begun anew.
    assert_eq!(report["cpu"], Value::Null);
    let verdict = bench(&uri, &format!("--check {path} --json")).ok().json();
    assert_eq!(verdict["acknowledged"].as_u64(), Some(acknowledged(&file) as u64));
}

#[test]
fn a_purchase_of_what_is_not_in_stock_leaves_nothing_behind() {
    let Some(postgres) = store() else { return };
    // What has an odd number is gone, and nothing is delivered: most purchases fail,
    // after some of their lines.
    postgres.sql("ALTER TABLE dvdstore.inventory DISABLE TRIGGER restock");
    let stock = "CASE WHEN prod_id % 2 = 0 THEN 1000000 ELSE 0 END";
    postgres.sql(&format!("UPDATE dvdstore.inventory SET quan_in_stock = {stock}"));
    let orders = count(&postgres, "orders");
    let report = bench(&postgres.uri(), &format!("{SHORT} --json")).ok().json();
    assert!(report["rollback_percent"].as_f64() > Some(50.0), "{report:#}");
    assert_eq!(report["errors"], Value::Array(Vec::new()));
    assert!(count(&postgres, "orders") > orders);
    let odd = "prod_id % 2 = 1 AND orderid > 1200";
    let of = |table: &str| {
        postgres.sql(&format!("SELECT count(*) FROM dvdstore.{table} WHERE {odd}"))
    };
    assert_eq!((of("orderlines"), of("cust_hist")), ("0".into(), "0".into()));
    let sold = "SELECT sum(sales) = (SELECT sum(quantity) FROM dvdstore.orderlines
        WHERE orderid > 1200) FROM dvdstore.inventory";
    assert_eq!(postgres.sql(sold), "t");
    let bare = "SELECT count(*) FROM dvdstore.orders o WHERE NOT EXISTS
        (SELECT FROM dvdstore.orderlines l WHERE l.orderid = o.orderid)";
    assert_eq!(postgres.sql(bare), "0");
}

#[test]
fn what_runs_low_is_delivered() {
    let Some(postgres) = store() else { return };
    postgres.sql("ALTER TABLE dvdstore.inventory DISABLE TRIGGER restock");
    postgres.sql("UPDATE dvdstore.inventory SET quan_in_stock = 3");
    postgres.sql("ALTER TABLE dvdstore.inventory ENABLE TRIGGER restock");
    bench(&postgres.uri(), SHORT).ok();
    assert!(count(&postgres, "reorder") > 0);
    let low = "SELECT count(*) FROM dvdstore.inventory WHERE quan_in_stock < 3";
    assert_eq!(postgres.sql(low), "0");
}

#[test]
fn orders_that_come_at_a_rate_count_the_time_that_they_wait() {
    let Some(postgres) = store() else { return };
    let scratch = Scratch::new();
    let file = orders_file(&scratch);
    let arguments = format!(
        "{TINY} --minutes 0.2 --warm-up 0 --users 2 --rate 30 --json --acknowledged {}",
        file.display()
    );
    let mut run = start(&postgres.uri(), &arguments);
    more_orders(&file, &mut run, 10);
    let lock = "BEGIN; LOCK TABLE dvdstore.orders; SELECT pg_sleep(3); COMMIT";
    postgres.begin(lock).wait().expect("wait for psql");
    let output = run.wait_with_output().expect("wait for sterna");
    let report = answer(&arguments, &output).ok().json();
    let rate = report["orders_per_s"].as_f64().expect("a rate");
    assert!((20.0..40.0).contains(&rate), "{rate} orders a second");
    // Two users alone would see two slow orders in four hundred. A quarter of the
    // time stands still, and the orders that come in it wait half of it on average.
    let p95 = report["times"]["order"]["p95_us"].as_u64().expect("a time");
    assert!(p95 > 1_000_000, "{p95} us");
    let series = report["series"].as_array().expect("a series");
    let waiting = series.iter().filter_map(|window| window["waiting_us"].as_u64()).max();
    assert!(waiting > Some(1_000_000), "{waiting:?} us");
}

#[test]
fn users_who_think_make_as_many_orders_as_their_thinking_lets_them() {
    let Some(postgres) = store() else { return };
    let arguments = "--size 1M --minutes 0.1 --warm-up 0 --users 8 --think 0.5 --json";
    let report = bench(&postgres.uri(), arguments).ok().json();
    // Sixteen, less what answers take.
    let rate = report["orders_per_s"].as_f64().expect("a rate");
    assert!((8.0..20.0).contains(&rate), "{rate} orders a second");
}

#[test]
fn a_store_that_is_there_is_not_replaced_unless_asked_for() {
    let Some(postgres) = store() else { return };
    let uri = postgres.uri();
    postgres.sql("UPDATE dvdstore.categories SET categoryname = 'mine'");
    let mine = "SELECT count(*) FROM dvdstore.categories WHERE categoryname = 'mine'";
    bench(&uri, "--size 2M --minutes 0")
        .fails_with(&["1.00 MiB", "2.00 MiB", "--reload"]);
    bench(&uri, &format!("{TINY} --minutes 0")).ok();
    assert_eq!(postgres.sql(mine), "16");
    postgres.sql("DELETE FROM dvdstore.store");
    bench(&uri, TINY).fails_with(&["not finished", "--reload"]);
    bench(&uri, "--size 2M --minutes 0 --reload").ok();
    assert_eq!(postgres.sql(mine), "0");
    assert_eq!(count(&postgres, "customers"), 4000);
    postgres.sql("DROP SCHEMA dvdstore CASCADE; CREATE SCHEMA dvdstore");
    bench(&uri, &format!("{TINY} --reload")).fails_with(&["somebody else", "createdb"]);
}

#[test]
fn what_cannot_be_reached_is_named_with_what_to_do() {
    let Some(postgres) = Postgres::given() else { return };
    let shop = |user: &str| postgres.uri_of(user, "shop");
    let nowhere =
        format!("postgres:///shop?host={}/no&user=me", postgres.dir().display());
    bench(&nowhere, "").fails_with(&["no PostgreSQL server answers", "pg_isready"]);
    bench("postgres://localhost:1/shop", "").fails_with(&["localhost:1", "refused"]);
    bench("http://shop", "").fails_with(&["URI", "postgres://USER@"]);
    bench(&postgres.uri_of("owner", "mall"), "").fails_with(&["no database mall"]);
    bench(&shop("stranger"), "").fails_with(&["does not let stranger in", "pg_hba"]);
    bench(&shop(GUARDED), "").fails_with(&["asks for a password", "PGPASSWORD"]);
    let guarded = |password: &str| {
        let mut command = command(&shop(GUARDED), &format!("{TINY} --minutes 0"));
        let output = command.env("PGPASSWORD", password).output().expect("start sterna");
        answer("with a password", &output)
    };
    guarded("sesame").fails_with(&["does not let guarded in", "password"]);
    guarded(PASSWORD).fails_with(&["permission denied", "GRANT CREATE"]);
    postgres.sql(&format!("GRANT CREATE ON DATABASE shop TO {GUARDED}"));
    guarded(PASSWORD).ok();
    bench(&postgres.uri(), "--users 500 --size 1M")
        .fails_with(&["connections", "--users"]);
    let json = bench(&postgres.uri(), "--check /nowhere/orders --json");
    assert!(json.fails_with(&["/nowhere/orders"]).stderr.contains("\"message\""));
}

#[test]
fn an_order_is_not_looked_for_where_there_is_no_store() {
    let Some(postgres) = Postgres::given() else { return };
    let scratch = Scratch::new();
    let file = orders_file(&scratch);
    std::fs::write(&file, "1 2 3.00 1 5\n").expect("write");
    let arguments = format!("--check {}", file.display());
    bench(&postgres.uri(), &arguments).fails_with(&["no store"]);
}

#[test]
fn tables_and_indexes_are_where_they_were_asked_for() {
    let Some(postgres) = Postgres::given() else { return };
    let uri = postgres.uri();
    for name in ["heap", "index"] {
        postgres.tablespace(name, &postgres.dir().join(name));
    }
    let spaces = format!("{TINY} --minutes 0 --data-tablespace heap --index-tablespace");
    bench(&uri, &format!("{spaces} fast")).fails_with(&["no tablespace fast", "heap"]);
    bench(&uri, &format!("{spaces} index")).ok();
    let elsewhere = |kind: &str, space: &str| {
        postgres.sql(&format!(
            "SELECT string_agg(c.relname, ' ') FROM pg_class c
                LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace
             WHERE c.relnamespace = 'dvdstore'::regnamespace AND c.relkind = '{kind}'
                AND t.spcname IS DISTINCT FROM '{space}'"
        ))
    };
    assert_eq!((elsewhere("r", "heap"), elsewhere("i", "index")), Default::default());
    // A store that is elsewhere is not taken for the one that is asked for.
    bench(&uri, &format!("{spaces} heap")).fails_with(&["index", "heap", "--reload"]);
}

#[test]
fn a_full_disk_is_said_and_a_load_that_it_ended_is_made_anew() {
    if !have(&["mkfs.ext4", "losetup"]) || !root() {
        return;
    }
    let Some(postgres) = Postgres::given() else { return };
    let scratch = Scratch::new();
    let mount = postgres.dir().join("tiny");
    let tiny = TinyFs::new(&scratch.path("tiny.raw"), &mount, 8 << 20);
    postgres.tablespace("tiny", &tiny.dir().join("data"));
    let uri = postgres.uri();
    let load = "--size 10M --minutes 0 --data-tablespace tiny";
    bench(&uri, load).fails_with(&["disk is full", "--reload"]);
    bench(&uri, TINY).fails_with(&["not finished"]);
    bench(&uri, &format!("{TINY} --minutes 0 --reload")).ok();
    postgres.sql("DROP TABLESPACE tiny");
}
