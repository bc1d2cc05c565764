//! The experiment in virtual time, at the study's size: what was published, what the
//! model says, and how far off it is.
//!
//! The model is `sim::svmotion`: the daemon's own mirror between modelled arrays. A
//! requirement is that each published figure comes out within a tenth; which of them
//! the model was fitted to, and which check it, is said at each.

use sterna_api::ErrorCode;
use sterna_console::connect::Failure;
use sterna_console::output::{Output, note};
use sterna_console::table::{Cell, Column, Style, Table};
use sterna_sim::svmotion::{
    ASSUMED, Basis, Disk, Extent, FITTED, Figure, Load, Parameters, Published, Scene,
    Side, Study,
};

use super::virtual_report::report;
use super::{Files, SvmotionArgs};

/// Runs it, and tells it.
pub(super) fn run(
    args: &SvmotionArgs,
    files: &Files,
    output: Output,
) -> anyhow::Result<()> {
    let extent = if args.quick { Extent::SAMPLE } else { Extent::WHOLE };
    let study = Study::run(Parameters::default(), extent, args.seed, |scene| {
        if !output.is_json() {
            note(&format!("{scene}: done"));
        }
    });
    let report = report(&study, args.seed);
    files.write(&report)?;
    let places = files.places();
    output.answer(&report, |_| format!("{}\n{places}", words(&study, output)))?;
    if report.passed {
        return Ok(());
    }
    let published = study.published();
    let failed = published.iter().filter(|figure| !figure.holds()).count();
    let total = published.len();
    let message = format!("{failed} of {total} published figures are not met");
    let hint = "the table shows how far off they are".into();
    Err(Failure { code: ErrorCode::Unmet, message, hint }.into())
}

fn words(study: &Study, output: Output) -> String {
    let title = |title: &str| format!("\n{}\n", output.head(title));
    let mut text = output.table(&published(&study.published()));
    text += &title("Derived from published figures; not judged");
    text += &output.table(&published(&study.follows()));
    text += &title("Predictions: without published figures, and nothing was fitted");
    let mut table = Table::new(&[
        ("PREDICTED", Column::Flexible),
        ("TIME", Column::Right),
        ("MiB/s", Column::Right),
        ("READ", Column::Right),
        ("WRITE", Column::Right),
        ("ORDERS/s", Column::Right),
        ("Mcycles", Column::Right),
    ]);
    for (scene, cells) in predictions(study) {
        let name = std::iter::once(scene.to_string().into());
        table.row(name.chain(cells.map(Cell::from)).collect());
    }
    text += &output.table(&table);
    text += "READ, WRITE: the copy's, in ms. `=`: see above. back: new to old array.\n\n";
    let mut table = Table::new(&[
        ("FITTED NUMBER", Column::Left),
        ("VALUE", Column::Left),
        ("FITTED TO", Column::Flexible),
    ]);
    for it in FITTED {
        table.row(vec![it.what.into(), it.value.into(), it.to.into()]);
    }
    text += &output.table(&table);
    text += &title("Assumed");
    ASSUMED.iter().for_each(|assumed| text += &format!("- {assumed}\n"));
    text
}

/// Published figures and ours.
fn published(figures: &[Figure]) -> Table {
    let mut table = Table::new(&[
        ("FIGURE", Column::Flexible),
        ("PUBLISHED", Column::Right),
        ("OURS", Column::Right),
        ("DIFFERENCE", Column::Right),
        ("", Column::Left),
    ]);
    for figure in figures {
        let style = if figure.holds() { Style::Good } else { Style::Bad };
        table.row(vec![
            figure.what.into(),
            told(figure).into(),
            with_unit(figure.ours, figure.unit).into(),
            Cell::styled(difference(figure), style),
            basis(figure.basis).into(),
        ]);
    }
    table
}

/// What was published: `1843 s`, or `>= 3731 s`.
pub(super) fn told(figure: &Figure) -> String {
    match figure.published {
        Published::Value(value) => with_unit(value, figure.unit),
        Published::AtLeast(value) => format!(">= {}", with_unit(value, figure.unit)),
    }
}

/// How far off ours is: `-1.4 %`.
pub(super) fn difference(figure: &Figure) -> String {
    match figure.published {
        Published::AtLeast(_) if figure.off() == 0.0 => "-".into(),
        _ => format!("{:+.1} %", 100.0 * figure.off()),
    }
}

/// What a figure shows.
pub(super) fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Fitted => "fitted",
        Basis::Check => "checked",
    }
}

pub(super) fn with_unit(value: f64, unit: &str) -> String {
    format!("{} {unit}", number(value)).trim_end().into()
}

/// A number with as many digits as mean something.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        ..99.995 => format!("{value:.2}"),
        99.995..999.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// What was published of a scene, as far as the columns of `predictions` go.
fn known(scene: Scene) -> [bool; 6] {
    let yes = |columns: &[usize]| std::array::from_fn(|at| columns.contains(&at));
    match (scene.from, scene.load, scene.disk) {
        (Side::New, ..) => yes(&[]),
        (_, Load::Off, Some(Disk::Data)) => yes(&[0, 1, 2, 3]),
        // A rate is a size over a time.
        (_, Load::Off, _) => yes(&[0, 1]),
        (_, Load::Low | Load::High, None) => yes(&[4, 5]),
        (_, Load::Low, Some(Disk::Data)) => yes(&[0, 1, 4]),
        (_, Load::High, Some(Disk::Data)) => yes(&[1, 4]),
        (_, Load::High, Some(Disk::Index(_))) => yes(&[0, 1, 4]),
        _ => yes(&[]),
    }
}

/// Of each scene: time, throughput, the copy's latencies, orders per second, and the
/// processor's cycles of an order; `=` where it was published, and so no prediction.
pub(super) fn predictions(study: &Study) -> Vec<(Scene, [String; 6])> {
    let row = |scene: Scene| {
        let course = study.course(scene)?;
        let whole = &course.whole;
        let per_second = |times| Some(whole.per_second(times)).filter(|rate| *rate > 0.0);
        let chunk = study.parameters.chunk as f64 / f64::from(1 << 20);
        let values = [
            course.moved.map(|seconds| format!("{seconds:.0} s")),
            per_second(whole.copy_read).map(|rate| format!("{:.0}", rate * chunk)),
            whole.copy_read.mean_ms().map(number),
            whole.copy_write.mean_ms().map(number),
            per_second(whole.orders).map(number),
            whole.megacycles_per_order().map(number),
        ];
        let known = known(scene);
        let mut cells = values.map(|value| value.unwrap_or("-".into()));
        for (cell, _) in cells.iter_mut().zip(known).filter(|(_, known)| *known) {
            *cell = "=".into();
        }
        cells.iter().any(|cell| cell != "=" && cell != "-").then_some((scene, cells))
    };
    Scene::all().into_iter().filter_map(row).collect()
}
