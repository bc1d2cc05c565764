//! `sterna sim`: what would happen, without a daemon.
//!
//! A scenario is a file that says what there is, what it does and what is moved
//! (`sterna_sim::fluid`), or what DRS is to do with it (`sterna_sim::hall`). It is read, run
//! in virtual time, and told: `sterna_lab` makes of its outcome what people and reports read.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use sterna_api::ErrorCode;
use sterna_console::connect::Failure;
use sterna_console::output::Output;
use sterna_lab::tell;
use sterna_report::Files;
use sterna_sim::Scenario;

use crate::common::text_file;

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Run a scenario in virtual time, and report the result
    Run(RunArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The scenario file (TOML)
    file: PathBuf,
    /// The directory for the report: FILE's name with .html and .json
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

/// Runs a command.
pub(crate) fn run(command: SimCommand, output: Output) -> anyhow::Result<()> {
    let SimCommand::Run(args) = command;
    let scenario = read(&args.file)?;
    let name = args.file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = name.unwrap_or("scenario".into());
    // Nobody wants to learn after the run that there is no place for it.
    let files = Files::prepare(&args.out, &name)?;
    let (report, words) = tell(&scenario, output);
    files.write(&report)?;
    output.answer(&report, |_| format!("{words}\n{}", files.places()))
}

/// Reads a scenario from its file.
fn read(path: &Path) -> anyhow::Result<Scenario> {
    let refused = |message: String, hint: &str| Failure {
        code: ErrorCode::Invalid,
        message,
        hint: hint.into(),
    };
    let text = text_file::read(path).map_err(|error| {
        let message = format!("{}: {error}", path.display());
        refused(message, "give a readable file; scenarios/ has examples")
    })?;
    text.parse().map_err(|error| {
        let message = format!("{}: {error}", path.display());
        let hint = "docs/manual/sim.md has all keys, and scenarios/ has examples";
        refused(message, hint).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna_console::output::WIDTH;

    /// The scenarios that come with the sources.
    fn ours() -> Vec<PathBuf> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let entries = std::fs::read_dir(dir).expect("scenarios").flatten();
        entries.map(|entry| entry.path()).collect()
    }

    #[test]
    fn every_scenario_of_ours_runs_and_is_told_in_80_columns() {
        assert!(ours().len() >= 7);
        for path in ours() {
            let scenario = read(&path).unwrap_or_else(|error| panic!("{error:#}"));
            let (report, text) = tell(&scenario, Output::new(false));
            assert!(!text.contains("Not moved"), "{text}");
            for line in text.lines() {
                assert!(line.chars().count() <= WIDTH, "{}: {line}", path.display());
            }
            report.html().expect("a page");
        }
    }
}
