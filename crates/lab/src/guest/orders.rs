//! The orders that a guest's database has acknowledged: each must be there at the end.

use std::path::{Path, PathBuf};

use anyhow::Context;
use sterna_workload::dvdstore::{self, Server, Verdict};

/// Files of acknowledged orders, one for each time that customers shop.
#[derive(Debug, Default)]
pub(crate) struct Orders(Vec<PathBuf>);

impl Orders {
    /// A new file, in this directory.
    pub(crate) fn file(&mut self, dir: &Path) -> PathBuf {
        let file = dir.join(format!("orders-{}", self.0.len()));
        self.0.push(file.clone());
        file
    }

    /// Looks for each order that was acknowledged: how many there were, and how many are missing.
    pub(crate) async fn check(&self, server: &Server) -> anyhow::Result<(u64, u64)> {
        let (mut all, mut lost) = (0, 0);
        for file in &self.0 {
            let Verdict { acknowledged, missing } =
                dvdstore::check(server, file)
                    .await
                    .context("cannot look for the orders")?;
            all += acknowledged;
            lost += missing.len() as u64;
        }
        Ok((all, lost))
    }
}
