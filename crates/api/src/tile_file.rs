//! Tiles as people write them: a file (TOML) of the sets of disks that a plan takes.
//!
//! Each `[[tile]]` is a [`Tile`], with the same names as in a request. What is not known, is
//! missing or is of another kind is refused with its line.

use std::str::FromStr;

use serde::Deserialize;

use crate::Tile;

/// What such a file has in it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TileFile {
    /// The tiles, in their order.
    #[serde(rename = "tile")]
    pub tiles: Vec<Tile>,
}

/// Why a text is no file of tiles.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct BadTiles {
    /// Where, from 1 on.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl FromStr for TileFile {
    type Err = BadTiles;

    fn from_str(text: &str) -> Result<Self, BadTiles> {
        toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            BadTiles { line, what: error.message().into() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_read_in_their_order() {
        let read = r#"
            [[tile]]
            name = "shop"
            disks = ["db", "log"]
            together = true
            stop = ["/usr/bin/shop", "stop"]

            [[tile]]
            name = "mail"
            disks = ["mail"]
            after = []
            "#;
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
        assert_eq!(read.parse(), Ok(TileFile { tiles: expected }));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = |text: &str| text.parse::<TileFile>().unwrap_err().to_string();
        for (text, line, what) in [
            ("[[tile]]\nname = \"a\"\ndisk = [\"a\"]\n", 3, "`disk`"),
            ("[[tile]]\nname = \n", 2, ""),
            ("# first\n\n[[tile]]\nname = \"a\"\n", 3, "missing field `disks`"),
            ("[[tile]]\nname = \"a\"\ndisks = []\n[[tile]]\n", 4, "missing field"),
            ("[[tile]]\n  name = 5\n", 2, "5"),
            ("[[tiles]]\n", 1, "`tiles`"),
            ("", 1, "missing field `tile`"),
            ("[[tile]]\nname = \"\u{fc}\"\n\u{fc} = 1\n", 3, ""),
        ] {
            let error = wrong(text);
            assert!(error.starts_with(&format!("line {line}: ")), "{text:?}: {error}");
            assert!(error.contains(what), "{text:?}: {error}");
        }
    }
}
