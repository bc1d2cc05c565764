//! `sterna completion` and `sterna man`: what the command line says of itself.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Arg, ArgAction, Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::args::{Cli, EXIT_CODES, VARIABLES};
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
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    write_pages(&command, &args.dir, &mut pages)
        .with_context(|| format!("write manual pages into {dir}"))?;
    pages.sort();
    output.answer(&pages, |_| {
        let example = args.dir.join("sterna.1");
        format!("The manual pages are in {dir}; see: man {}", example.display())
    })
}

/// Writes the page of a command and of all below it; notes their names.
fn write_pages(command: &Command, dir: &Path, pages: &mut Vec<String>) -> io::Result<()> {
    for below in command.get_subcommands() {
        write_pages(below, dir, pages)?;
    }
    let man = manual(command);
    fs::write(dir.join(man.get_filename()), page(&man)?)?;
    pages.push(man.get_filename());
    Ok(())
}

/// A command's page; each is of the program and its version, also where clap knows no
/// version, as of all but the first.
fn manual(command: &Command) -> Man {
    let command = command.clone().override_usage(synopsis(command));
    Man::new(command).source(concat!("sterna ", env!("CARGO_PKG_VERSION")))
}

/// What clap knows of a command, and what holds for all of them.
fn page(man: &Man) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render(&mut page)?;
    let mut common = Roff::new();
    section(&mut common, "EXIT STATUS", &EXIT_CODES);
    section(&mut common, "ENVIRONMENT", &VARIABLES);
    common.to_writer(&mut page)?;
    Ok(page)
}

fn section(roff: &mut Roff, title: &str, entries: &[(&str, &str)]) {
    roff.control("SH", [title]);
    for (name, meaning) in entries {
        roff.control("TP", []);
        roff.text([bold(*name)]);
        roff.text([roman(*meaning)]);
    }
}

/// The command with all that it takes, values included, which clap's manual pages
/// leave out.
fn synopsis(command: &Command) -> String {
    let mut words = vec![command.get_bin_name().unwrap_or("sterna").to_owned()];
    let asks_for_text = |arg: &Arg| matches!(arg.get_id().as_str(), "help" | "version");
    let (values, options): (Vec<&Arg>, Vec<&Arg>) = command
        .get_arguments()
        .filter(|arg| !asks_for_text(arg))
        .partition(|arg| arg.is_positional());
    for arg in options.into_iter().chain(values) {
        let again = match arg.get_action() {
            ArgAction::Append => "...",
            _ => "",
        };
        words.push(match arg.is_required_set() {
            true => format!("{arg}{again}"),
            false => format!("[{arg}]{again}"),
        });
    }
    if command.has_subcommands() {
        words.push("<COMMAND>".into());
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(name: &str) -> String {
        let mut command = Cli::command();
        command.build();
        let command = command.find_subcommand(name).unwrap();
        let man = manual(command);
        // Hyphens are escaped for `man`.
        String::from_utf8(page(&man).unwrap()).unwrap().replace('\\', "")
    }

    #[test]
    fn a_manual_page_shows_the_values_of_options() {
        let page = page_of("migrate");
        assert!(page.contains("[--rate <BYTES>]"), "{page}");
        assert!(page.contains(" --to <DATASTORE>"), "{page}");
        assert!(page_of("serve").contains("[--listen <ADDR:PORT>]..."));
    }

    #[test]
    fn a_manual_page_is_of_the_program_and_its_version() {
        let title = format!("\"sterna {}\"", env!("CARGO_PKG_VERSION"));
        for name in ["class", "migrate"] {
            let page = page_of(name);
            let head = page.lines().find(|line| line.starts_with(".TH")).unwrap();
            assert!(head.contains(&title), "{head}");
        }
    }

    #[test]
    fn a_manual_page_tells_exit_codes_and_variables() {
        let page = page_of("status");
        assert!(page.contains("EXIT STATUS"), "{page}");
        assert!(page.contains("STERNA_SOCKET"), "{page}");
    }

    #[test]
    fn completion_offers_only_what_the_help_shows() {
        let hidden = |command: &Command| {
            command.get_subcommands().any(|below| below.is_hide_set())
        };
        assert!(!hidden(&Cli::command()));
    }
}
