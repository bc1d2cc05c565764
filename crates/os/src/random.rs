//! Ids that nobody else has.

use std::fs::File;
use std::io::Read;

use sterna_api::{Error, Result};

/// So many random numbers.
pub fn numbers(count: usize) -> Result<Vec<u128>> {
    (0..count).map(|_| number()).collect()
}

/// A random number; never 0, which is no id.
pub fn number() -> Result<u128> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|error| Error::internal(format!("cannot read /dev/urandom: {error}")))?;
    Ok(u128::from_le_bytes(bytes).max(1))
}
