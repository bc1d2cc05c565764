//! The typed client: what can be asked of a daemon. How it is asked is in `call`.

mod call;
mod classes;
mod datastores;
mod disks;
mod hosts;
mod memory;
mod migrations;
mod placement;
mod plans;
mod vms;

use std::path::{Path, PathBuf};

use hyper::Method;

use crate::{
    Activities, Advised, CreateDashboardLink, DashboardLink, Status, Task, Top, TopBy,
};

pub use call::{ClientError, SILENT, Waits};

/// Tells somebody of a call that takes long, and of the daemon's socket.
type Tell = fn(&Path, Waits);

/// A client of one daemon.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    /// Who is told of calls that take long.
    waits: Option<Tell>,
    /// Whether answers are for a terminal.
    shown: bool,
    /// What somebody typed, for the list of activities.
    command: Option<String>,
}

impl Client {
    /// A client of the daemon that listens on `socket`.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Client { socket: socket.into(), waits: None, shown: false, command: None }
    }

    /// The same client, which says that it waits for a call that takes more than a second,
    /// and for one that takes more than [`SILENT`], and when that is over: the daemon may
    /// have asked somebody who hangs, or hang itself.
    pub fn that_tells(self, waits: Tell) -> Self {
        Client { waits: Some(waits), ..self }
    }

    /// The same client, whose answers have nothing in them that a terminal would obey: they
    /// are for people. Programs want them as they are.
    pub fn for_people(self) -> Self {
        Client { shown: true, ..self }
    }

    /// The same client, which tells the daemon what was typed: the list of activities shows
    /// it.
    pub fn for_command(self, line: String) -> Self {
        Client { command: Some(line), ..self }
    }

    /// The daemon's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The daemon in one page.
    pub async fn status(&self) -> Result<Status, ClientError> {
        self.get("/v1/status").await
    }

    /// What was done, by whom, and what the daemon decided, the latest first.
    pub async fn activity(
        &self,
        of: Option<&str>,
        since: Option<u64>,
        limit: usize,
    ) -> Result<Activities, ClientError> {
        let of = of.map_or(String::new(), |it| format!("&of={}", escaped(it)));
        let from = since.map_or(String::new(), |since| format!("&from={since}"));
        self.get(&format!("/v1/activity?limit={limit}{of}{from}")).await
    }

    /// Makes a link to the dashboard that works once.
    pub async fn dashboard_link(
        &self,
        request: CreateDashboardLink,
    ) -> Result<DashboardLink, ClientError> {
        self.call(Method::POST, "/v1/dashboard/links", &request).await
    }

    /// What the daemon does again and again.
    pub async fn tasks(&self) -> Result<Vec<Task>, ClientError> {
        self.get("/v1/tasks").await
    }

    /// Who did what in the last `window_s` seconds.
    pub async fn top(&self, by: TopBy, window_s: f64) -> Result<Top, ClientError> {
        self.get(&format!("/v1/top?by={}&window_s={window_s}", by.as_str())).await
    }

    /// What to do about a disk, about a datastore and its disks, or about everything, by
    /// what was done in the last `window_s` seconds.
    pub async fn advise(
        &self,
        about: Option<&str>,
        window_s: f64,
    ) -> Result<Advised, ClientError> {
        let about = about.map_or(String::new(), |it| format!("&about={}", escaped(it)));
        self.get(&format!("/v1/advice?window_s={window_s}{about}")).await
    }
}

/// `/v1/<collection>/<name>`, the name escaped: it is what a user typed.
fn path(collection: &str, name: &str) -> String {
    format!("/v1/{collection}/{}", escaped(name))
}

fn escaped(name: &str) -> String {
    let mut escaped = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_names_are_escaped() {
        assert_eq!(path("disks", "web-1"), "/v1/disks/web-1");
        assert_eq!(path("disks", "a b/ü"), "/v1/disks/a%20b%2F%C3%BC");
    }
}
