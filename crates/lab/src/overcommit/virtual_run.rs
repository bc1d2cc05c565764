//! The experiment in virtual time: what was published, what the model says, and what Sterna makes
//! of it.

use sterna_console::output::{Output, note};
use sterna_console::table::{Column, Table};
use sterna_report::{Files, UNKNOWN};
use sterna_sim::overcommit::{
    Course, Medium, NUMBERS, Parameters, Published, Study, Way,
};

use super::bars::{EARLY, FIRST, FLASH, Wakes, percent};
use super::virtual_report::report;
use crate::verdicts;

/// Runs it, and tells it.
pub(super) fn run(seed: u64, files: &Files, output: Output) -> anyhow::Result<()> {
    let study = Study::run(Parameters::default(), seed, |medium, way| {
        if !output.is_json() {
            note(&format!("{medium}, {way}: done"));
        }
    });
    let report = report(&study, seed);
    files.write(&report)?;
    verdicts::tell(files, &report, &words(&study, output), true, output)
}

/// The wakes of each medium, as they are judged.
pub(super) fn wakes(study: &Study) -> Vec<Wakes> {
    let of = |medium, way| study.course(medium, way).map(|course| study.each(course));
    let wakes = |medium| Wakes {
        medium,
        alone: of(medium, Way::Alone),
        held: of(medium, Way::Held),
    };
    Medium::ALL.into_iter().map(wakes).collect()
}

fn words(study: &Study, output: Output) -> String {
    let title = |title: &str| format!("{}\n", output.head(title));
    let mut text = title("Orders kept, of a guest that was never swapped out");
    let mut table = Table::new(&[
        ("MEDIUM", Column::Left),
        ("WAY", Column::Left),
        ("10 s", Column::Right),
        ("30 s", Column::Right),
        ("120 s", Column::Right),
        ("88 % FROM", Column::Right),
        ("HELD", Column::Right),
        ("ALL BACK", Column::Right),
    ]);
    for (medium, way, course) in &study.wakes {
        let names = [medium.to_string(), way.to_string()];
        let row = names.into_iter().chain(figures(study, course));
        table.row(row.map(Into::into).collect());
    }
    text += &output.table(&table);
    text += "\n";
    text += &title("Published figures, to which nothing was fitted");
    let mut table = Table::new(&[
        ("ORDERS KEPT, PAGE BY PAGE", Column::Left),
        ("PUBLISHED", Column::Right),
        ("OURS", Column::Right),
    ]);
    for [what, told, ours] in published(study) {
        table.row(vec![what.into(), told.into(), ours.into()]);
    }
    text += &output.table(&table);
    text += "\n";
    let mut table = Table::new(&[
        ("NUMBER", Column::Left),
        ("VALUE", Column::Left),
        ("FROM", Column::Left),
        ("WHY", Column::Wrapped),
    ]);
    for it in NUMBERS {
        let cells = [it.what, it.value, it.basis.word(), it.why];
        table.row(cells.map(Into::into).into());
    }
    text + &output.table(&table) + "\n"
}

/// What a wake kept in its first seconds and in all, from when on it kept what flash does, how long
/// the guest was held, and when all was back.
pub(super) fn figures(study: &Study, course: &Course) -> [String; 6] {
    let kept = |until: usize| percent(study.kept(course, 0, until));
    let above = course.above_from(FLASH * study.baseline.whole());
    let unknown = || UNKNOWN.to_owned();
    let wake = course.wake;
    let held = wake.map(|wake| wake.held).filter(|held| held.0 > 0);
    let all = wake.and_then(|wake| wake.all).map(|all| all.as_secs_f64());
    [
        kept(FIRST),
        kept(EARLY),
        kept(course.orders.len()),
        above.map_or("never".into(), |from| format!("{from} s")),
        held.map_or_else(unknown, |held| format!("{:.2} s", held.as_secs_f64())),
        all.map_or_else(unknown, |all| format!("{all:.1} s")),
    ]
}

/// What was published, and ours.
pub(super) fn published(study: &Study) -> Vec<[String; 3]> {
    let all = Published::all(study.parameters.seconds as usize);
    let row = |it: &Published| {
        let what = format!("{}, the first {} s", it.medium, it.until);
        let ours = it.ours(study).map_or(UNKNOWN.into(), percent);
        [what, percent(it.kept), ours]
    };
    all.iter().map(row).collect()
}
