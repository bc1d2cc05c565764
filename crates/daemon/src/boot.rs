//! Which boot of the machine this is, as far as migrations are concerned.
//!
//! `STERNA_BOOT_ID` replaces the kernel's answer, so that a test can play a
//! power loss. It is for tests alone: a wrong id makes the daemon trust a
//! region map that the page cache may have lost.

use std::env;

use sterna_api::{Error, Result};
use sterna_engine::boot::BootId;

/// The environment variable that replaces the kernel's boot id, for tests.
const VARIABLE: &str = "STERNA_BOOT_ID";

/// The boot id that this daemon goes by.
pub(crate) fn current() -> Result<BootId> {
    match env::var(VARIABLE) {
        Ok(text) => {
            text.parse().map_err(|error| Error::invalid(format!("{VARIABLE}: {error}")))
        }
        Err(_) => BootId::of_machine().map_err(|error| {
            Error::unavailable(format!("cannot read the boot id: {error}"))
                .hint("mount /proc")
        }),
    }
}
