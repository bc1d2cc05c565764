//! `sterna memory`: the memory of VMs.

mod explain;
mod follow;
mod set;
mod show;

use clap::{Args, Subcommand};
use sterna_api::{ErrorCode, SleepVm, WakeVm};
use sterna_console::connect::{Failure, Link};
use sterna_console::output::Output;
use sterna_core::{Bytes, Nanos};

use self::follow::{Until, follow};
use self::set::{AutoLevel, TermsArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// Show the memory of the host and its VMs, or of one VM
    Show {
        /// The VM
        vm: Option<String>,
    },
    /// Explain why a VM has the memory that it has, and what it would have to give
    Explain {
        /// The VM
        vm: String,
    },
    /// Change what a VM is promised of the host's memory, and held to
    #[command(override_usage = "sterna memory set <VM> [OPTIONS]")]
    Set {
        /// The VM
        vm: String,
        #[command(flatten)]
        terms: TermsArgs,
    },
    /// Say what Sterna does automatically if the host runs short of memory
    Auto {
        /// Nothing, balloons, or balloons and swap; without it, show the settings
        #[arg(value_enum)]
        level: Option<AutoLevel>,
        /// What the host is to keep available; 0 for the usual part of its memory
        #[arg(long, value_name = "SIZE")]
        reserve: Option<Bytes>,
    },
    /// Move a VM's memory to the swap tiers
    Sleep {
        /// The VM
        vm: String,
        /// Also move what the VM needs at once when it wakes
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        wait: WaitArgs,
    },
    /// Bring a VM's memory back
    Wake {
        /// The VM
        vm: String,
        /// Hold the VM this long at most at the beginning; 0s never holds it
        #[arg(long, value_name = "TIME")]
        hold: Option<Nanos>,
        #[command(flatten)]
        wait: WaitArgs,
    },
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct WaitArgs {
    /// Return at once
    #[arg(long)]
    detach: bool,
}

/// Carries out a command.
pub(crate) fn run(
    command: MemoryCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    link.ask(async move |client| match command {
        MemoryCommand::Show { vm: None } => {
            let host = client.host_memory().await?;
            output.answer(&host, |host| show::host(host, output))
        }
        MemoryCommand::Show { vm: Some(vm) } => {
            let one = client.vm_memory(&vm).await?;
            output.answer(&one, |one| show::vm(one, output))
        }
        MemoryCommand::Explain { vm } => {
            let one = client.explain_memory(&vm).await?;
            output.answer(&one, |one| explain::explanation(one, output))
        }
        MemoryCommand::Set { vm, terms } => {
            let one = client.change_memory_terms(&vm, &terms.into()).await?;
            output.answer(&one, |one| show::vm(one, output))
        }
        MemoryCommand::Auto { level, reserve } => {
            let settings = set::auto(client, level, reserve).await?;
            output.answer(&settings, set::settings)
        }
        MemoryCommand::Sleep { vm, all, wait } => {
            let mut one = client.sleep_vm(&vm, &SleepVm { all }).await?;
            if !wait.detach {
                one = follow(client, one, Until::Asleep, output).await?;
            }
            if let (Some(problem), None) = (&one.problem, &one.work) {
                return Err(Failure {
                    code: ErrorCode::Unavailable,
                    message: format!("VM {vm}: {problem}"),
                    hint: format!("see `sterna memory show {vm}`"),
                }
                .into());
            }
            output.answer(&one, |one| show::slept(one, output))
        }
        MemoryCommand::Wake { vm, hold, wait } => {
            let hold_ms = hold.map(|hold| hold.0 / 1_000_000);
            let mut one = client.wake_vm(&vm, &WakeVm { hold_ms }).await?;
            if !wait.detach {
                one = follow(client, one, Until::Back, output).await?;
            }
            output.answer(&one, |one| show::woke(one, output))
        }
    })
}
