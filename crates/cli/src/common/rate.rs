//! A rate that a move is limited to.

use sterna_core::Bytes;

/// Reads a rate; zero is a pause, and there is a command for that.
pub(crate) fn parse_rate(text: &str) -> Result<Bytes, String> {
    match text.strip_suffix("/s").unwrap_or(text).parse::<Bytes>() {
        Ok(Bytes(0)) => {
            Err("with a rate of 0 a migration never ends; `sterna migration pause` \
                 pauses a migration"
                .into())
        }
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
    }
}
