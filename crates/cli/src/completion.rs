//! `sterna completion` and `sterna man`: what the command line says of itself.
//!
//! clap's scripts know commands and options, but not what there is: the names of disks
//! and so on. So the scripts of bash, zsh and fish first ask `sterna completion` what
//! the word at hand could name, and fall back to what clap knows if it names nothing.
//! (clap's own dynamic completion is not stable yet.)

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Arg, ArgAction, Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use sterna_api::paths::SOCKET_VARIABLE;
use sterna_console::connect::Link;
use sterna_console::output::Output;

#[cfg(feature = "bench")]
use crate::commands::bench::PASSWORD_VARIABLE;
use crate::names;

/// What the exit codes say.
const EXIT_CODES: [(&str, &str); 3] = [
    ("0", "Done."),
    ("1", "The command failed; stderr has the reason and the remedy."),
    ("2", "The command line is wrong; Sterna sent nothing to the daemon."),
];

/// The environment variables that are looked at.
const VARIABLES: &[(&str, &str)] = &[
    (SOCKET_VARIABLE, "The daemon's API socket, if --socket is not given."),
    (
        "STERNA_LOG",
        "The log level of the daemon: error, warn, info (default), debug, trace.",
    ),
    ("XDG_RUNTIME_DIR", "The directory of the sockets, unless the user is root."),
    ("XDG_STATE_HOME", "The directory of the state, unless the user is root."),
    #[cfg(feature = "bench")]
    (
        PASSWORD_VARIABLE,
        "The password of a bench's database, unless the URI has a password.",
    ),
    ("NO_COLOR", "Any value: no colour on terminals."),
];

/// For which shell, or for which words.
#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
    /// Print the possible names for the last of these words instead of the script (used
    /// by the scripts)
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
}

/// Ours in bash. clap's function is `_sterna_words` beside it.
const BASH: &str = r#"_sterna() {
    mapfile -t COMPREPLY < <(
        "$1" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null
    )
    [[ ${#COMPREPLY[@]} -gt 0 ]] || _sterna_words "$@"
}

"#;

/// Ours in zsh, likewise.
const ZSH: &str = r#"_sterna() {
    local -a names
    names=(${(f)"$(
        "${words[1]}" completion zsh -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null
    )"})
    if (( $#names )); then
        compset -P '--*='
        compadd -a names
    else
        _sterna_words "$@"
    fi
}

"#;

/// Ours in fish, where completions add up.
const FISH: &str = r#"
function __fish_sterna_names
    set -l words (commandline -opc)
    set -g __fish_sterna_found (
        $words[1] completion fish -- $words[2..-1] (commandline -ct) 2>/dev/null
    )
    test (count $__fish_sterna_found) -gt 0
end
"#;

/// Where to.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The directory; Sterna creates it if necessary
    dir: PathBuf,
}

/// Prints a completion script, or names.
pub(crate) fn completion(
    args: &CompletionArgs,
    mut sterna: Command,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    if args.words.is_empty() {
        return output.to_paste(&script(args.shell, &mut sterna)?, Clone::clone);
    }
    let names = names::names(&args.words, sterna, link);
    match names.is_empty() && !output.is_json() {
        // An empty line would be a name.
        true => Ok(()),
        false => output.to_paste(&names, |names| names.join("\n")),
    }
}

/// clap's script, with ours in it.
fn script(shell: Shell, sterna: &mut Command) -> anyhow::Result<String> {
    let mut script = Vec::new();
    clap_complete::generate(shell, sterna, "sterna", &mut script);
    let script = String::from_utf8(script).context("the script is not text")?;
    // The function that the shell calls is ours, and clap's has another name.
    let before = |ours: &str| {
        script.replacen("_sterna() {", &format!("{ours}_sterna_words() {{"), 1)
    };
    Ok(match shell {
        Shell::Bash => before(BASH),
        Shell::Zsh => before(ZSH),
        Shell::Fish => {
            let rule = "complete -c sterna -n __fish_sterna_names";
            let names = "-a '$__fish_sterna_found'";
            let mut script = format!("{script}{FISH}{rule} -f {names}\n");
            // The value of an option comes from rules of the option alone.
            for option in names::options(sterna) {
                script.push_str(&format!("{rule} -l {option} -x {names}\n"));
            }
            script
        }
        _ => script,
    })
}

/// Writes one manual page for each command.
pub(crate) fn man(args: &ManArgs, sterna: Command, output: Output) -> anyhow::Result<()> {
    let dir = args.dir.display();
    fs::create_dir_all(&args.dir)
        .with_context(|| format!("cannot make the directory {dir}"))?;
    let mut command = sterna.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    write_pages(&command, &args.dir, &mut pages)
        .with_context(|| format!("cannot write manual pages into {dir}"))?;
    pages.sort();
    output.to_paste(&pages, |_| {
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
    section(&mut common, "ENVIRONMENT", VARIABLES);
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
        // What `--help` does not name, this does not either.
        .filter(|arg| !asks_for_text(arg) && !arg.is_hide_set())
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
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

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
    fn a_manual_page_has_no_options_that_the_help_does_not_show() {
        let page = page_of("migrate");
        assert!(page.contains("[--no-verify]"), "{page}");
        assert!(!page.contains("[--verify]"), "{page}");
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
    fn scripts_ask_for_names_before_they_fall_back_to_what_clap_knows() {
        for shell in [Shell::Bash, Shell::Zsh] {
            let script = script(shell, &mut Cli::command()).unwrap();
            let ours =
                script.find("\n_sterna() {").or(script.find("_sterna() {")).unwrap();
            let claps = script.find("\n_sterna_words() {\n").unwrap();
            assert!(ours < claps, "{script}");
            assert_eq!(script.matches("_sterna() {").count(), 1, "{script}");
        }
        let script = script(Shell::Fish, &mut Cli::command()).unwrap();
        assert!(script.contains("-n __fish_sterna_names -l on -x -a"), "{script}");
    }

    #[test]
    fn completion_offers_only_what_the_help_shows() {
        let hidden = |command: &Command| {
            command.get_subcommands().any(|below| below.is_hide_set())
        };
        assert!(!hidden(&Cli::command()));
    }
}
