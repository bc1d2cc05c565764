//! Following memory that goes out or comes back. Ctrl-C ends the wait, and not the work.

use std::time::{Duration, Instant};

use sterna_api::{Client, ErrorCode, MemoryWork, MemoryWorkKind, VmMemory};
use sterna_console::connect::Failure;
use sterna_console::format::{bytes, rate, span};
use sterna_console::output::Output;
use sterna_console::screen::Screen;

/// How often the daemon is asked.
const POLL: Duration = Duration::from_millis(200);

/// How often a line is printed where there is no terminal.
const LINE: Duration = Duration::from_secs(5);

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// All that was to go out is out.
    Asleep,
    /// All that was out is back. It may still be noted what the guest uses of it.
    Back,
}

/// Follows what is done with a VM's memory.
pub(super) async fn follow(
    client: &Client,
    first: VmMemory,
    until: Until,
    output: Output,
) -> anyhow::Result<VmMemory> {
    let vm = first.vm.clone();
    tokio::select! {
        end = wait(client, first, until, output) => end,
        _ = tokio::signal::ctrl_c() => Err(Failure {
            code: ErrorCode::Interrupted,
            message: format!("no longer waiting; VM {vm} goes on"),
            hint: format!("`sterna memory show {vm}` shows how far it is"),
        }
        .into()),
    }
}

async fn wait(
    client: &Client,
    mut one: VmMemory,
    until: Until,
    output: Output,
) -> anyhow::Result<VmMemory> {
    let screen = Screen::new(output, 0.0);
    let began = Instant::now();
    let mut said: Option<Instant> = None;
    while let Some(work) = one.work.clone().filter(|work| !is_done(work, until)) {
        let at = began.elapsed().as_secs_f64();
        screen.expect(at, work.eta_s.unwrap_or_default());
        if said.is_none_or(|said| said.elapsed() >= LINE) {
            screen.phase(at, &line(&one.vm, &work));
            said = Some(Instant::now());
        }
        screen.tick(at);
        tokio::time::sleep(POLL).await;
        one = client.vm_memory(&one.vm).await?;
    }
    Ok(one)
}

fn is_done(work: &MemoryWork, until: Until) -> bool {
    match until {
        Until::Asleep => work.kind != MemoryWorkKind::Sleep,
        Until::Back => work.kind == MemoryWorkKind::Wake && work.done >= work.total,
    }
}

fn line(vm: &str, work: &MemoryWork) -> String {
    let what = match (work.kind, work.held) {
        (MemoryWorkKind::Sleep, _) => "goes out",
        (MemoryWorkKind::Wake, true) => "comes back, VM held",
        (MemoryWorkKind::Wake, false) => "comes back",
    };
    let pace =
        work.bytes_per_s.map_or(String::new(), |it| format!(", {}", rate(it as f64)));
    let left = work.eta_s.map_or(String::new(), |it| format!(", {} left", span(it)));
    format!("{vm}: {what}: {} of {}{pace}{left}", bytes(work.done), bytes(work.total))
}
