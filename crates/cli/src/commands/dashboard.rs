//! `sterna dashboard`: a link to the dashboard, for a browser on this host.

use std::env;
use std::process::{Command, Stdio};

use clap::Args;
use sterna_api::{CreateDashboardLink, DashboardLink, Role};
use sterna_console::connect::Link;
use sterna_console::format::span;
use sterna_console::output::Output;

/// What opens a browser where there is a desktop.
const OPENER: &str = "xdg-open";

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DashboardArgs {
    /// Only print the link
    #[arg(long)]
    print: bool,
    /// The link is for somebody who may look, but change nothing
    #[arg(long)]
    viewer: bool,
}

/// Carries out the command.
pub(crate) fn run(
    args: DashboardArgs,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    let role = if args.viewer { Role::Viewer } else { Role::Operator };
    let request = CreateDashboardLink { role };
    let made = link.ask(async |client| Ok(client.dashboard_link(request).await?))?;
    let opened = !args.print && !output.is_json() && has_desktop() && open(&made.url);
    output.answer(&made, |made| show(made, opened))
}

fn show(made: &DashboardLink, opened: bool) -> String {
    let valid = span(made.expires_s as f64);
    let url = &made.url;
    let begins = match opened {
        true => "A browser opens the dashboard; else open",
        false => "Open",
    };
    let mut text =
        format!("{begins}\n\n  {url}\n\nThe link works once, within {valid}.\n");
    if let Some(port) = port(url).filter(|_| !opened) {
        text.push_str(&format!(
            "From another host, first: ssh -L {port}:127.0.0.1:{port} THIS-HOST\n"
        ));
    }
    text
}

/// The port of a link.
fn port(url: &str) -> Option<u16> {
    let host = url.strip_prefix("http://")?.split('/').next()?;
    host.rsplit(':').next()?.parse().ok()
}

fn has_desktop() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some())
}

/// Has a browser open it; false if there is none.
fn open(url: &str) -> bool {
    let mut opener = Command::new(OPENER);
    opener.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    opener.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_shown_with_how_to_get_there_from_elsewhere() {
        let url = "http://127.0.0.1:4321/#link=abc".to_owned();
        let text = show(&DashboardLink { url, expires_s: 120 }, false);
        assert!(text.contains("\n  http://127.0.0.1:4321/#link=abc\n"), "{text}");
        assert!(text.contains("within 2 min"), "{text}");
        assert!(text.contains("ssh -L 4321:127.0.0.1:4321"), "{text}");
    }
}
