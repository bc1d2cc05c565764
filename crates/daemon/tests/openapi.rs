//! The OpenAPI document is one, and the one in the repository is that which the code makes.

use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;

#[test]
fn the_committed_document_is_the_one_that_the_code_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi/sterna.json");
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == sterna_daemon::openapi_document(),
        "openapi/sterna.json has drifted; write it anew: \
         cargo run -p sterna-daemon --example openapi > openapi/sterna.json"
    );
}

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

fn document() -> Value {
    serde_json::from_str(&sterna_daemon::openapi_document()).unwrap()
}

/// Each operation: its path, its method, and what is said of it.
fn operations(document: &Value) -> Vec<(&String, &String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, item)| {
        let item = item.as_object().unwrap();
        item.iter().map(move |(method, operation)| (path, method, operation))
    });
    all.collect()
}

#[test]
fn it_has_all_that_openapi_requires() {
    let document = document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
    for needed in ["title", "version"] {
        assert!(document["info"][needed].is_string(), "info.{needed}");
    }
    let mut names = HashSet::new();
    for (path, method, operation) in operations(&document) {
        let what = format!("{method} {path}");
        assert!(METHODS.contains(&method.as_str()), "{what}");
        assert!(path.starts_with("/v1/"), "{what}");
        let name = operation["operationId"].as_str().unwrap_or(&what);
        assert!(names.insert(name.to_owned()), "{what}: there are two {name}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("200") && responses.contains_key("default"));
        for (status, response) in responses {
            let described =
                response["description"].as_str().is_some_and(|it| !it.is_empty());
            assert!(described, "{what}: {status} has no description");
            let content = response["content"].as_object().expect("its content");
            assert!(content.values().all(|it| it["schema"].is_object()));
            // Programs of others read metrics, and have a format for them.
            let kind = match path.as_str() {
                "/v1/metrics" if status == "200" => "text/plain",
                "/v1/events" if status == "200" => "text/event-stream",
                _ => "application/json",
            };
            assert_eq!(content.keys().collect::<Vec<_>>(), [kind]);
        }
    }
}

#[test]
fn every_part_of_a_path_is_a_parameter_and_every_parameter_of_a_path_is_in_it() {
    let document = document();
    for (path, method, operation) in operations(&document) {
        let parts = path.split('/').filter_map(|part| part.strip_prefix('{'));
        let parts: HashSet<&str> = parts.filter_map(|it| it.strip_suffix('}')).collect();
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let mut declared = HashSet::new();
        for parameter in &parameters {
            assert!(parameter["schema"].is_object(), "{method} {path}: {parameter}");
            if parameter["in"] == "path" {
                assert_eq!(parameter["required"], true, "{method} {path}: {parameter}");
                declared.insert(parameter["name"].as_str().unwrap());
            }
        }
        assert_eq!(parts, declared, "{method} {path}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = document();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 100, "{}", references.len());
    for reference in references {
        let place = reference.strip_prefix('#').unwrap_or_default();
        assert!(document.pointer(place).is_some(), "{reference}");
    }
}

fn collect(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(all) => {
            if let Some(Value::String(reference)) = all.get("$ref") {
                into.push(reference.clone());
            }
            all.values().for_each(|value| collect(value, into));
        }
        Value::Array(all) => all.iter().for_each(|value| collect(value, into)),
        _ => {}
    }
}
