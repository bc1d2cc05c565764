//! `sterna completion` and `sterna man`: what the command line says of itself.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::output::Output;

/// For which shell.
#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Where to.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The directory; made if it is not there
    dir: PathBuf,
}

/// Prints a completion script.
pub(crate) fn completion(args: &CompletionArgs, output: Output) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "sterna", &mut script);
    let script = String::from_utf8(script).context("the script is not text")?;
    output.answer(&script, Clone::clone)
}

/// Writes one manual page for each command.
pub(crate) fn man(args: &ManArgs, output: Output) -> anyhow::Result<()> {
    let dir = args.dir.display();
    fs::create_dir_all(&args.dir).with_context(|| format!("make the directory {dir}"))?;
    clap_mangen::generate_to(Cli::command(), &args.dir)
        .with_context(|| format!("write manual pages into {dir}"))?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(&args.dir).with_context(|| format!("list {dir}"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("sterna") && name.ends_with(".1") {
            pages.push(name);
        }
    }
    pages.sort();
    output.answer(&pages, |pages| {
        let example = args.dir.join("sterna.1");
        format!("{} pages in {dir}; see: man {}", pages.len(), example.display())
    })
}
