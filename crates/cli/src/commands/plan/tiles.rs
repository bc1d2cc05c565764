//! Tiles from a file: sets of disks, and which go first.

use std::path::Path;

use sterna_api::{ErrorCode, Tile, TileFile};
use sterna_console::connect::Failure;

use crate::common::text_file;

/// Reads a file of tiles (TOML).
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Tile>> {
    let wrong = |what: String, hint: &str| Failure {
        code: ErrorCode::Invalid,
        message: format!("{}: {what}", path.display()),
        hint: hint.into(),
    };
    let text = text_file::read(path)
        .map_err(|error| wrong(error.to_string(), "give a readable file"))?;
    let file: TileFile = text.parse().map_err(|error: sterna_api::BadTiles| {
        wrong(
            error.to_string(),
            "each tile is a [[tile]] with a name and disks: see `man sterna-plan`",
        )
    })?;
    Ok(file.tiles)
}
