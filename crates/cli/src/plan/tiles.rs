//! Tiles from a file: sets of disks, and which go first.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use sterna_api::{ErrorCode, Tile};

use crate::connect::Failure;

/// What the file has in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TileFile {
    tile: Vec<Tile>,
}

/// Reads a file of tiles (TOML).
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Tile>> {
    let wrong = |what: String, hint: &str| Failure {
        code: ErrorCode::Invalid,
        message: format!("{}: {what}", path.display()),
        hint: hint.into(),
    };
    let text = fs::read_to_string(path)
        .map_err(|error| wrong(error.to_string(), "name a file that can be read"))?;
    Ok(parse(&text).map_err(|what| {
        wrong(
            what,
            "each tile is a [[tile]] with a name and disks: see `man sterna-plan`",
        )
    })?)
}

fn parse(text: &str) -> Result<Vec<Tile>, String> {
    let file: TileFile = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let before = &text[..at.min(text.len())];
        let line = 1 + before.matches('\n').count();
        format!("line {line}: {}", error.message())
    })?;
    Ok(file.tile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_read_in_their_order() {
        let tiles = parse(
            r#"
            [[tile]]
            name = "shop"
            disks = ["db", "log"]
            together = true
            stop = ["/usr/bin/shop", "stop"]

            [[tile]]
            name = "mail"
            disks = ["mail"]
            after = []
            "#,
        );
        let tile = |name: &str, disks: &[&str], after, together| Tile {
            name: name.into(),
            disks: disks.iter().map(|disk| (*disk).into()).collect(),
            after,
            together,
            stop: None,
            start: None,
        };
        let expected = vec![
            Tile {
                stop: Some(vec!["/usr/bin/shop".into(), "stop".into()]),
                ..tile("shop", &["db", "log"], None, true)
            },
            tile("mail", &["mail"], Some(vec![]), false),
        ];
        assert_eq!(tiles, Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = |text| parse(text).unwrap_err();
        for (text, line, what) in [
            ("[[tile]]\nname = \"a\"\ndisk = [\"a\"]\n", 3, "`disk`"),
            ("[[tile]]\nname = \n", 2, ""),
            ("# first\n\n[[tile]]\nname = \"a\"\n", 3, "missing field `disks`"),
            ("[[tile]]\nname = \"a\"\ndisks = []\n[[tile]]\n", 4, "missing field"),
            ("[[tile]]\n  name = 5\n", 2, "5"),
            ("[[tiles]]\n", 1, "`tiles`"),
            ("", 1, "missing field `tile`"),
        ] {
            let error = wrong(text);
            assert!(error.starts_with(&format!("line {line}: ")), "{text:?}: {error}");
            assert!(error.contains(what), "{text:?}: {error}");
        }
    }
}
