//! `sterna migrate`: starts a migration and waits for its end.

use clap::Args;
use sterna_api::{Migration, StartMigration};
use sterna_console::connect::Link;
use sterna_console::output::Output;
use sterna_core::Bytes;

use crate::commands::disk::ProvisionArg;
use crate::commands::migration::watch;
use crate::common::guard::GuardArgs;
use crate::common::rate::parse_rate;
use crate::common::verification::VerifyArgs;

/// What to move, where to, and how.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// The disk to move
    disk: String,
    /// The datastore to move it to
    #[arg(long, value_name = "DATASTORE")]
    to: String,
    /// How to allocate the new image [default: as the old image]
    #[arg(long, value_enum)]
    provision: Option<ProvisionArg>,
    /// Limit copying to this many bytes per second (200M)
    #[arg(long, value_name = "BYTES", value_parser = parse_rate)]
    rate: Option<Bytes>,
    #[command(flatten)]
    verification: VerifyArgs,
    /// Keep the old image, as a retired image
    #[arg(long)]
    keep_source: bool,
    /// Skip unreadable source sectors; the data in these sectors is lost
    #[arg(long)]
    skip_bad_sectors: bool,
    #[command(flatten)]
    guard: GuardArgs,
    /// Return as soon as the copy has begun
    #[arg(long)]
    detach: bool,
}

/// Carries out the command.
pub(crate) fn run(args: MigrateArgs, link: &Link, output: Output) -> anyhow::Result<()> {
    let request = StartMigration {
        disk: args.disk,
        to: args.to,
        provision: args.provision.map(Into::into),
        rate: args.rate.map(|rate| rate.0),
        verify: args.verification.verify(),
        keep_source: args.keep_source,
        skip_bad_sectors: args.skip_bad_sectors,
        guard: args.guard.request(),
    };
    link.ask(async |client| {
        let started = client.migrate(&request).await?;
        if args.detach {
            return output.answer(&started, detached);
        }
        watch::to_the_end(client, started, output, watch::Show::End).await
    })
}

/// What is said of a migration that is not waited for.
pub(crate) fn detached(started: &Migration) -> String {
    format!(
        "Migration {id} of {} from {} to {} has begun.\n  sterna migration watch {id}",
        started.disk,
        started.from,
        started.to,
        id = started.id,
    )
}
