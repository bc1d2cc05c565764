//! The API does what HTTP and its own document say, whoever asks.

use sterna_tests::Stage;
use sterna_tests::http::{Reply, ask};

fn asks(stage: &Stage, method: &str, path: &str, body: &str) -> Reply {
    ask(stage.daemon.api_socket(), method, path, body)
}

#[test]
fn a_body_that_is_no_object_is_refused_and_changes_nothing() {
    let stage = Stage::new();
    for (method, path, body) in [
        ("POST", "/v1/classes", r#"["byplace", [], 77, null]"#),
        ("PATCH", "/v1/storage-drs", r#"["full", 0.5]"#),
        ("POST", "/v1/disks", r#"["d", 1048576, "here"]"#),
        ("POST", "/v1/disks", "null"),
        ("POST", "/v1/disks", ""),
    ] {
        let reply = asks(&stage, method, path, body);
        assert_eq!(reply.status, 400, "{method} {path} {body}: {reply:?}");
        assert_eq!(reply.json()["code"], "invalid");
    }
    assert_eq!(
        asks(&stage, "GET", "/v1/classes", "").json().as_array().map(Vec::len),
        Some(1)
    );
    assert_eq!(
        asks(&stage, "GET", "/v1/disks", "").json().as_array().map(Vec::len),
        Some(0)
    );
}

#[test]
fn an_object_that_is_given_as_an_array_is_refused_with_the_name_of_its_field() {
    let stage = Stage::new();
    let guard = r#"{"guard": {"keep": 0.5}}"#;
    assert_eq!(asks(&stage, "PATCH", "/v1/storage-drs", guard).status, 200);
    let settings =
        || asks(&stage, "GET", "/v1/storage-drs", "").json()["settings"].clone();
    let before = settings();
    for (method, path, body, field) in [
        ("PATCH", "/v1/storage-drs", r#"{"guard": []}"#, "`guard`"),
        ("PATCH", "/v1/storage-drs", r#"{"guard": [0.9, 5000, "8h"]}"#, "`guard`"),
        ("POST", "/v1/pools", r#"{"name": "p", "cpu": [0, 5, 7]}"#, "`cpu`"),
        (
            "POST",
            "/v1/policies",
            r#"{"class": "default", "aim": ["limit", {"goal": {"iops": 5}}]}"#,
            "`aim`",
        ),
    ] {
        let reply = asks(&stage, method, path, body);
        let said = reply.json()["message"].to_string();
        assert_eq!(reply.status, 400, "{method} {path} {body}: {reply:?}");
        assert!(said.contains(field) && said.contains("sequence"), "{body}: {said}");
    }
    assert_eq!(settings(), before);
}

#[test]
fn a_method_that_a_path_has_not_is_answered_with_those_that_it_has() {
    let stage = Stage::new();
    for (method, path, has) in [
        ("PUT", "/v1/disks", "POST"),
        ("DELETE", "/v1/disks", "GET"),
        ("TRACE", "/v1/disks", "GET"),
        ("POST", "/v1/status", "GET"),
        ("GET", "/v1/migrations/7/pause", "POST"),
    ] {
        let reply = asks(&stage, method, path, "");
        assert_eq!(reply.status, 405, "{method} {path}: {reply:?}");
        let allowed = reply.header("allow").unwrap_or_default().to_uppercase();
        assert!(allowed.contains(has), "{method} {path}: {reply:?}");
        assert!(!reply.json()["hint"].as_str().unwrap_or_default().is_empty());
    }
    let options = asks(&stage, "OPTIONS", "/v1/disks", "");
    assert_eq!((options.status, options.body.as_str()), (204, ""));
    assert_eq!(options.header("allow"), Some("get,head,post"), "{options:?}");
    for (method, path) in [
        ("GET", "/v1/nosuch"),
        ("PUT", "/v1/nosuch"),
        ("OPTIONS", "/v1/nosuch"),
        ("GET", "//v1/status"),
    ] {
        let reply = asks(&stage, method, path, "");
        assert_eq!(
            (reply.status, reply.json()["code"].as_str()),
            (404, Some("not_found"))
        );
    }
}

#[test]
fn a_body_that_is_too_large_is_refused_as_that() {
    let stage = Stage::new();
    let body = format!(r#"{{"name": "{}"}}"#, "x".repeat(3 << 20));
    let reply = asks(&stage, "POST", "/v1/disks", &body);
    assert_eq!(reply.status, 413, "{}", reply.head);
    assert!(reply.body.contains("larger than 2 MiB"), "{}", reply.body);
}

#[test]
fn a_path_with_control_characters_is_refused_and_shown_as_what_it_is() {
    let stage = Stage::new();
    for path in ["x\ny", "\u{1b}[31mred"] {
        let directory = stage.scratch.dir(path);
        let body = serde_json::json!({"name": "odd", "location": directory}).to_string();
        let reply = asks(&stage, "POST", "/v1/datastores", &body);
        assert_eq!(reply.status, 400, "{reply:?}");
        let said = reply.json()["message"].as_str().unwrap_or_default().to_owned();
        assert!(said.contains("control characters"), "{said}");
        let answer = std::process::Command::new(sterna_tests::programs::sterna())
            .args(["--socket".as_ref(), stage.daemon.api_socket().as_os_str()])
            .args(["datastore", "add", "odd"])
            .arg(&directory)
            .output()
            .expect("start sterna");
        let text = String::from_utf8_lossy(&answer.stderr);
        assert_eq!(answer.status.code(), Some(1), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
    let list = stage.daemon.sterna("datastore list").ok().stdout;
    assert_eq!(list.lines().count(), 3, "{list}");
}
