//! Which boot of the machine this is.
//!
//! What a killed process left in the page cache is still there as long as the
//! machine has not been booted since. The kernel names each boot with a random
//! id; whoever stores that id with its data can tell a kill from a power loss.
//! Everything that needs the id takes it as a parameter, so that a test can
//! play a power loss without causing one.

use std::fmt;
use std::io;
use std::str::FromStr;

/// Where Linux says which boot this is.
const KERNEL_BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The name of one boot of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BootId(pub [u8; 16]);

/// The text is not a boot id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a boot id: 32 hexadecimal digits, with or without dashes, were expected"
)]
pub struct ParseBootIdError(String);

impl BootId {
    /// The id of the boot that this process lives in.
    pub fn of_machine() -> io::Result<BootId> {
        let text = std::fs::read_to_string(KERNEL_BOOT_ID)?;
        text.trim().parse().map_err(io::Error::other)
    }
}

impl FromStr for BootId {
    type Err = ParseBootIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits: String = text.chars().filter(|&c| c != '-').collect();
        let plain = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        match u128::from_str_radix(&digits, 16) {
            Ok(number) if plain => Ok(BootId(number.to_be_bytes())),
            _ => Err(ParseBootIdError(text.into())),
        }
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", u128::from_be_bytes(self.0));
        let (a, b, c) = (&digits[..8], &digits[8..12], &digits[12..16]);
        write!(f, "{a}-{b}-{c}-{}-{}", &digits[16..20], &digits[20..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_one_boot_id_that_can_be_written_and_read() {
        let id = BootId::of_machine().unwrap();
        assert_eq!(BootId::of_machine().unwrap(), id);
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn what_is_no_boot_id_is_refused() {
        for text in ["", "1234", "+0000000000000000000000000000001", "zz"] {
            assert!(text.parse::<BootId>().is_err(), "{text}");
        }
    }
}
