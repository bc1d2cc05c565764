//! What VMs are promised of memory, and what Sterna does by itself, as people say it.

use clap::{Args, ValueEnum};
use sterna_api::{
    ChangeMemory, ChangeMemoryTerms, Client, MemoryAutomation, MemorySettings,
};
use sterna_console::format::bytes;
use sterna_core::{Bytes, Nanos};

use super::explain::automation;

#[derive(Clone, Copy, Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct TermsArgs {
    /// What the VM keeps in any case
    #[arg(long, value_name = "SIZE")]
    reservation: Option<Bytes>,
    /// What the VM holds at most; 0 for no limit
    #[arg(long, value_name = "SIZE")]
    limit: Option<Bytes>,
    /// The VM's part of what is left, against the shares of the others (1000 at first)
    #[arg(long, value_name = "N")]
    shares: Option<u32>,
    /// What the VM's balloon may take at most (65 % of its memory at first)
    #[arg(long, value_name = "SIZE")]
    balloon_max: Option<Bytes>,
    /// How long a wake of the VM may take; 0s for any time
    #[arg(long, value_name = "TIME")]
    wake_within: Option<Nanos>,
}

impl From<TermsArgs> for ChangeMemoryTerms {
    fn from(args: TermsArgs) -> Self {
        ChangeMemoryTerms {
            reservation: args.reservation.map(|it| it.0),
            limit: args.limit.map(|it| it.0),
            shares: args.shares,
            balloon_max: args.balloon_max.map(|it| it.0),
            wake_within_s: args.wake_within.map(Nanos::as_secs_f64),
        }
    }
}

/// What Sterna does automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AutoLevel {
    /// Sterna does nothing, and says what it would do
    Manual,
    /// Balloons take what guests do not need, and give it back
    Partial,
    /// Memory of idle VMs goes to swap as well
    Full,
}

impl From<AutoLevel> for MemoryAutomation {
    fn from(level: AutoLevel) -> Self {
        match level {
            AutoLevel::Manual => MemoryAutomation::Manual,
            AutoLevel::Partial => MemoryAutomation::Partial,
            AutoLevel::Full => MemoryAutomation::Full,
        }
    }
}

/// Changes the settings, if something was said; gives them as they are then.
pub(super) async fn auto(
    client: &Client,
    level: Option<AutoLevel>,
    reserve: Option<Bytes>,
) -> anyhow::Result<MemorySettings> {
    if level.is_none() && reserve.is_none() {
        return Ok(client.host_memory().await?.settings);
    }
    let reserve = reserve.map(|it| it.0);
    let change = ChangeMemory { automation: level.map(Into::into), reserve };
    Ok(client.change_memory(&change).await?)
}

/// The settings, in words.
pub(super) fn settings(settings: &MemorySettings) -> String {
    let does = match settings.automation {
        MemoryAutomation::Manual => "Sterna takes no memory of VMs automatically",
        MemoryAutomation::Partial => {
            "balloons take what guests do not need while the host lacks memory"
        }
        MemoryAutomation::Full => {
            "balloons take what guests do not need while the host lacks memory, and memory of \
             idle VMs goes to swap"
        }
    };
    let keeps = match settings.reserve {
        None => "the usual part of its memory".to_owned(),
        Some(reserve) => bytes(reserve),
    };
    format!(
        "Automation {}: {does}. The host is to keep {keeps} available.",
        automation(settings.automation)
    )
}
