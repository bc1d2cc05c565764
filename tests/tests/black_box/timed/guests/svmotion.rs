//! The experiment that moves a database's disk, with a guest of its own.

use serde_json::Value;
use sterna_tests::{Scratch, guest};

use crate::timed::lab::{end, entries, lab, place};

#[test]
fn the_quick_svmotion_moves_a_disk_under_a_database_and_reports() {
    let _turn = sterna_tests::guest::turn();
    let Some(guest) = guest::image() else { return };
    let guest = guest.display().to_string();
    let scratch = Scratch::new();
    let (place, out) = (place(&scratch), scratch.path("report"));
    let out_text = out.display().to_string();
    let arguments =
        ["svmotion", "--quick", "--json", "--guest", &guest, "--out", &out_text];
    let done = end(lab(&place, &arguments));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let report: Value = serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|error| panic!("no JSON ({error}): {said}"));
    let verdicts = report["verdicts"].as_array().expect("verdicts");
    let of = |about: &str| {
        let mut all = verdicts.iter();
        let found = all.find(|one| one["what"].as_str().expect("words").contains(about));
        found.unwrap_or_else(|| panic!("no verdict on `{about}`: {verdicts:#?}"))
    };
    // What an emulated guest keeps on a host under test means little; that nothing
    // is lost holds on any host.
    for path in ["old → new", "new → old"] {
        let about = &format!("data, high, {path}, vhost-user: orders kept");
        assert!(of(about)["value"].as_f64() > Some(0.0), "{verdicts:#?}");
    }
    for about in ["switch-over", "missing", "failed", "complain"] {
        assert_eq!(of(about)["passed"], true, "{verdicts:#?}");
    }
    let passed = verdicts.iter().all(|verdict| verdict["passed"] == true);
    assert_eq!(done.status.code(), Some(if passed { 0 } else { 1 }), "{said}");
    // Two states and two ways, there and back.
    let times = &report["sheets"][0];
    let rows = times["rows"].as_array().expect("rows");
    let by = |way: &str| {
        let named = |row: &&Value| row[0].as_str().is_some_and(|it| it.ends_with(way));
        rows.iter().filter(named).count()
    };
    assert_eq!((by("vhost-user"), by("QEMU's mirror")), (4, 4), "{times}");
    let page = std::fs::read_to_string(out.join("svmotion.html")).expect("the page");
    assert!(page.starts_with("<!doctype html>") && page.contains("uPlot"));
    assert!(out.join("svmotion.json").is_file());
    assert!(entries(&place).is_empty(), "left behind: {:?}", entries(&place));
}
