//! The dashboard's way in, and what pages read: sessions, live figures, timelines and
//! activities.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use sterna_tests::http::{self, Reply};
use sterna_tests::metrics::Scrape;
use sterna_tests::wait::seconds;
use sterna_tests::{CheckerOptions, MIB, Stage, until};

/// Where a link leads: the address, and the token.
fn link(stage: &Stage, options: &str) -> (String, String) {
    let made = stage.daemon.json(&format!("dashboard --print {options}"));
    let url = made["url"].as_str().expect("a link");
    let (address, token) = url
        .strip_prefix("http://")
        .and_then(|it| it.split_once("/#link="))
        .expect("parts");
    (address.into(), token.into())
}

/// A browser, as far as a server can tell.
struct Browser {
    address: String,
    /// What it says where it is, and where it comes from.
    host: String,
    origin: Option<String>,
    cookie: Option<String>,
}

impl Browser {
    fn at(address: &str) -> Browser {
        Browser {
            address: address.into(),
            host: address.into(),
            origin: Some(format!("http://{address}")),
            cookie: None,
        }
    }

    /// One that has used up a link.
    #[track_caller]
    fn with(link: &(String, String)) -> Browser {
        let mut browser = Browser::at(&link.0);
        let body = json!({"link": link.1}).to_string();
        let reply = browser.asks("POST", "/v1/session", &body);
        assert_eq!(reply.status, 200, "{reply:?}");
        let cookie = reply.header("set-cookie").expect("a cookie");
        assert!(
            cookie.contains("httponly") && cookie.contains("samesite=strict"),
            "{cookie}"
        );
        browser.cookie = cookie.split(';').next().map(str::to_owned);
        browser
    }

    fn asks(&self, method: &str, path: &str, body: &str) -> Reply {
        let mut stream = self.sends(method, path, body);
        let mut answer = Vec::new();
        // It ends with the connection, or with the time that it may take.
        let _ = stream.read_to_end(&mut answer);
        Reply::read(&answer)
    }

    /// Asks, and leaves the answer to be read.
    fn sends(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut stream =
            TcpStream::connect(&self.address).expect("connect to the dashboard");
        stream.set_read_timeout(Some(seconds(20))).expect("set a timeout");
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        for (name, value) in [("Origin", &self.origin), ("Cookie", &self.cookie)] {
            if let Some(value) = value {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        let length = body.len();
        let request = format!(
            "{head}Connection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("ask");
        stream
    }
}

#[test]
fn a_link_opens_one_session_and_is_used_up() {
    let stage = Stage::new();
    let link = link(&stage, "");
    let nobody = Browser::at(&link.0);
    assert_eq!(nobody.asks("GET", "/v1/status", "").status, 401);
    let page = nobody.asks("GET", "/", "");
    assert_eq!(page.status, 200, "{page:?}");
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    let browser = Browser::with(&link);
    let session = browser.asks("GET", "/v1/session", "").json();
    assert_eq!(session["role"], "operator", "{session}");
    assert_eq!(browser.asks("GET", "/v1/status", "").status, 200);
    let again = nobody.asks("POST", "/v1/session", &json!({"link": link.1}).to_string());
    assert_eq!(again.status, 401, "{again:?}");
    assert!(
        again.json()["hint"].as_str().is_some_and(|it| it.contains("sterna dashboard"))
    );
    assert_eq!(browser.asks("DELETE", "/v1/session", "").status, 200);
    assert_eq!(browser.asks("GET", "/v1/status", "").status, 401);
}

#[test]
fn another_page_or_another_name_gets_nowhere() {
    let stage = Stage::new();
    let browser = Browser::with(&link(&stage, ""));
    let body = json!({"name": "gold", "disks": []}).to_string();
    let evil = Browser { host: "evil.example".into(), ..Browser::at(&browser.address) };
    let evil = Browser { cookie: browser.cookie.clone(), ..evil };
    assert_eq!(evil.asks("GET", "/v1/status", "").status, 421);
    for origin in [None, Some("http://evil.example".into()), Some("null".into())] {
        let other = Browser {
            origin,
            cookie: browser.cookie.clone(),
            ..Browser::at(&browser.address)
        };
        let reply = other.asks("POST", "/v1/classes", &body);
        assert_eq!(reply.status, 403, "{reply:?}");
    }
    assert_eq!(stage.daemon.json("class list").as_array().map(Vec::len), Some(1));
    assert_eq!(browser.asks("POST", "/v1/classes", &body).status, 200);
    // The dashboard gives no links to itself.
    let reply = browser.asks("POST", "/v1/dashboard/links", r#"{"role": "operator"}"#);
    assert_eq!(reply.status, 400, "{reply:?}");
}

#[test]
fn a_viewer_sees_everything_and_changes_nothing() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    let viewer = Browser::with(&link(&stage, "--viewer"));
    assert_eq!(viewer.asks("GET", "/v1/disks", "").status, 200);
    for (method, path, body) in [
        ("DELETE", "/v1/disks/a", ""),
        ("POST", "/v1/migrations", r#"{"disk": "a", "to": "there"}"#),
        ("PATCH", "/v1/drs", "{}"),
    ] {
        let reply = viewer.asks(method, path, body);
        assert_eq!(reply.status, 403, "{method} {path}: {reply:?}");
    }
    let predicted =
        viewer.asks("POST", "/v1/predictions", r#"{"disk": "a", "to": "there"}"#);
    assert!(predicted.status != 403, "{predicted:?}");
    assert_eq!(stage.daemon.disk("a")["datastore"], "here");
}

/// A stream of live figures, by curl.
struct Live {
    curl: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Live {
    fn open(stage: &Stage, query: &str) -> Live {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--no-buffer", "--unix-socket"])
            .arg(stage.daemon.api_socket());
        curl.arg(format!("http://sterna/v1/events?{query}")).stdout(Stdio::piped());
        let mut curl = curl.spawn().expect("curl");
        let lines = BufReader::new(curl.stdout.take().expect("its output"));
        Live { curl, lines }
    }

    /// The next event of that name.
    #[track_caller]
    fn next(&mut self, name: &str) -> Value {
        let mut event = String::new();
        loop {
            let mut line = String::new();
            assert!(
                self.lines.read_line(&mut line).expect("read") > 0,
                "the stream ended"
            );
            if let Some(told) = line.strip_prefix("event: ") {
                event = told.trim().into();
            } else if let Some(data) = line.strip_prefix("data: ")
                && event == name
            {
                return serde_json::from_str(data).expect("JSON");
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.curl.kill();
        let _ = self.curl.wait();
    }
}

#[test]
fn live_figures_come_second_by_second() {
    let Some(stage) = Stage::given(&["curl"]) else { return };
    for name in ["a", "b", "c"] {
        stage.disk(name, 64 * MIB);
    }
    let mut checker = stage.checker("b", &CheckerOptions::gentle(200));
    checker.wait_for_intervals(2);
    let query = "topics=status,top,migrations,activity&sort=-iops&count=2";
    let mut live = Live::open(&stage, query);
    let hello = live.next("hello");
    assert!(hello["daemon"].as_str().is_some_and(|it| it.len() == 32), "{hello}");
    until("the busy disk to be first", seconds(20), || {
        let top = live.next("top");
        assert_eq!(
            (top["matched"].as_u64(), top["rows"].as_array().map(Vec::len)),
            (Some(3), Some(2))
        );
        (top["rows"][0]["name"] == "b").then_some(())
    });
    let before = live.next("tick")["now_ms"].as_u64().expect("a clock");
    let after = live.next("tick")["now_ms"].as_u64().expect("a clock");
    assert!((500..5000).contains(&(after - before)), "{before} {after}");
    let id = stage.daemon.migrate("b --to there");
    let moves = live.next("migrations");
    assert!(moves.as_array().is_some_and(|all| all.iter().any(|it| it["id"] == id)));
    let mut told = String::new();
    until("the move to be told", seconds(20), || {
        for entry in live.next("activity").as_array().expect("entries") {
            told.push_str(&format!("{} {}\n", entry["who"], entry["text"]));
        }
        told.contains("start migration").then_some(())
    });
    stage.daemon.completed(id);
    let mut filtered = Live::open(&stage, "topics=top&filter=on:there");
    let top = filtered.next("top");
    assert_eq!(
        (top["matched"].as_u64(), &top["rows"][0]["name"]),
        (Some(1), &json!("b"))
    );
    checker.finish_and_verify();
}

#[test]
fn a_question_that_makes_no_sense_is_refused_with_what_does() {
    let stage = Stage::new();
    for path in [
        "/v1/events?topics=weather",
        "/v1/events?sort=size",
        "/v1/events?filter=slow:soon",
        "/v1/timelines?of=weather:rain",
        "/v1/timelines?of=all&points=0",
        "/v1/timelines?of=all&from=20&to=10",
    ] {
        let reply = http::ask(stage.daemon.api_socket(), "GET", path, "");
        assert_eq!(reply.status, 400, "{path}: {reply:?}");
        assert!(
            !reply.json()["hint"].as_str().unwrap_or_default().is_empty(),
            "{reply:?}"
        );
    }
    let reply =
        http::ask(stage.daemon.api_socket(), "GET", "/v1/timelines?of=disk:no", "");
    assert_eq!(reply.status, 404, "{reply:?}");
}

#[test]
fn a_timeline_has_what_a_disk_did() {
    let stage = Stage::new();
    stage.disk("a", 64 * MIB);
    let checker = stage.checker("a", &CheckerOptions::gentle(200));
    until("some seconds of the disk", seconds(30), || {
        let path = "/v1/timelines?of=disk:a&points=600";
        let timeline = http::ask(stage.daemon.api_socket(), "GET", path, "").json();
        let column =
            |name: &str| timeline["columns"][name].as_array().expect("it").clone();
        let (starts, ends, p99) =
            (column("start_ms"), column("end_ms"), column("p99_us"));
        assert!(starts.len() == ends.len() && starts.len() == p99.len());
        let order =
            starts.iter().zip(&ends).all(|(start, end)| start.as_u64() < end.as_u64());
        assert!(order, "{timeline}");
        (p99.iter().filter(|it| it.is_number()).count() >= 3).then_some(())
    });
    checker.finish_and_verify();
}

#[test]
fn who_did_what_is_known_after_a_restart() {
    let mut stage = Stage::new();
    stage.disk("a", MIB);
    stage.daemon.sterna("migrate nope --to there").fails_with(&["nope"]);
    // Nobody waits for an entry, but whoever reads finds all that were made before.
    let before = stage.daemon.json("activity").as_array().map(Vec::len);
    assert!(before.is_some_and(|count| count >= 2), "{before:?}");
    stage.daemon.kill();
    stage.daemon.restart();
    let all = stage.daemon.json("activity --limit 100");
    let all = all.as_array().expect("entries");
    let find = |text: &str| {
        let is_it =
            |it: &&Value| it["text"].as_str().is_some_and(|have| have.contains(text));
        all.iter().find(is_it).unwrap_or_else(|| panic!("no {text} in {all:#?}"))
    };
    let created = find("create disk");
    assert_eq!((&created["about"], &created["ok"]), (&json!("disk a"), &json!(true)));
    let command = created["command"].as_str().expect("what was typed");
    assert!(
        command.starts_with("sterna ") && command.contains("disk create a"),
        "{command}"
    );
    let refused = find("refused: there is no disk nope");
    assert_eq!((&refused["ok"], &refused["about"]), (&json!(false), &json!("disk nope")));
    assert_eq!(find("ready")["who"], "sterna");
    let about = stage.daemon.json("activity disk:a");
    let only = |it: &Value| it["about"] == "disk a";
    assert!(about.as_array().is_some_and(|it| !it.is_empty() && it.iter().all(only)));
    let none = stage.daemon.sterna("activity disk:nosuch").ok().stdout;
    assert!(none.contains("No entry about disk:nosuch"), "{none}");
    for wrong in ["a", "dsk:a"] {
        let refused = stage.daemon.sterna(&format!("activity {wrong}"));
        refused.fails_with(&["the kinds are disk, datastore"]);
    }
    // A request is told once, by whoever has asked.
    let added = stage.daemon.json("activity datastore:here");
    let added = added.as_array().expect("entries");
    assert_eq!(added.iter().filter(|it| it["who"] == "sterna").count(), 0, "{added:#?}");
}

#[test]
fn a_missed_promise_is_told_while_it_is_missed_and_counted_by_hours() {
    let mut stage = Stage::new();
    stage.disk("a", 64 * MIB);
    stage.daemon.sterna("class create gold a").ok();
    // No storage answers in a microsecond.
    stage.daemon.sterna("policy cruise gold 1us --tolerance 50%").ok();
    let checker = stage.checker("a", &CheckerOptions::gentle(200));
    let hurt = |stage: &Stage| stage.daemon.json("status")["hurt"].clone();
    until("the disk to be hurt", seconds(60), || {
        let hurt = hurt(&stage);
        let missed =
            hurt[0]["promised_us"].as_f64()? < hurt[0]["response_us"].as_f64()?;
        let helps = hurt[0]["help"]["text"].as_str().is_some_and(|it| !it.is_empty());
        (hurt[0]["disk"] == "a" && missed && helps).then_some(())
    });
    let gauge =
        |stage: &Stage| Scrape::of(&stage.daemon).value("sterna_disk_hurt{disk=\"a\"}");
    assert_eq!(gauge(&stage), 1.0);
    let told = stage.daemon.json("activity disk:a").to_string();
    assert!(told.contains("requests take") && told.contains("promised"), "{told}");
    let missed = |stage: &Stage| {
        let path = "/v1/classes/gold/kept";
        let kept = http::ask(stage.daemon.api_socket(), "GET", path, "").json();
        let hours = kept["hours"].as_array().expect("hours").clone();
        hours.iter().map(|it| it["missed_s"].as_f64().expect("seconds")).sum::<f64>()
    };
    let before = missed(&stage);
    assert!(before >= 5.0, "{before}");
    stage.daemon.sterna("policy remove 1").ok();
    until("the disk to be hurt no more", seconds(60), || {
        hurt(&stage).as_array().is_some_and(Vec::is_empty).then_some(())
    });
    assert_eq!(gauge(&stage), 0.0);
    checker.finish_and_verify();
    stage.daemon.stop();
    stage.daemon.restart();
    let after = missed(&stage);
    assert!(after >= before, "a daemon that stops records all of it: {before} {after}");
}
