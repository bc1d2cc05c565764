//! A monitor of QEMU's for the experiment alone: the daemon has the other one.

use std::path::Path;

use anyhow::{Context, ensure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// What QEMU is told first.
const HELLO: &str = r#"{"execute":"qmp_capabilities"}"#;
const STOP: &str = r#"{"execute":"stop"}"#;
const CONTINUE: &str = r#"{"execute":"cont"}"#;

/// How its answers begin; everything else that it says are events.
const DONE: &str = r#"{"return""#;
const FAILED: &str = r#"{"error""#;

/// A monitor.
pub(crate) struct Monitor {
    stream: BufReader<UnixStream>,
}

impl Monitor {
    /// Connects to a socket of QEMU's.
    pub(crate) async fn connect(socket: &Path) -> anyhow::Result<Monitor> {
        let stream = UnixStream::connect(socket).await;
        let stream = BufReader::new(stream.context("cannot reach QEMU's monitor")?);
        let mut monitor = Monitor { stream };
        monitor.tell(HELLO).await?;
        Ok(monitor)
    }

    /// The guest stands still.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        self.tell(STOP).await
    }

    /// It goes on.
    pub(crate) async fn go_on(&mut self) -> anyhow::Result<()> {
        self.tell(CONTINUE).await
    }

    async fn tell(&mut self, command: &str) -> anyhow::Result<()> {
        let line = format!("{command}\n");
        let told = self.stream.get_mut().write_all(line.as_bytes()).await;
        told.context("cannot talk to QEMU")?;
        loop {
            let mut said = String::new();
            let count = self.stream.read_line(&mut said).await;
            ensure!(count.context("cannot hear QEMU")? > 0, "QEMU has ended");
            ensure!(!said.starts_with(FAILED), "QEMU refuses {command}: {}", said.trim());
            if said.starts_with(DONE) {
                return Ok(());
            }
        }
    }
}
