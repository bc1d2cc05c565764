//! Names of datastores and disks.
//!
//! A disk's name is a file name on a datastore and an export name in a URI, so
//! it is kept to what needs no quoting anywhere.

/// The longest name. With `.raw.sterna` behind it, far below a file system's 255.
const LONGEST: usize = 63;

/// The rule, in words for people.
pub const NAME_RULE: &str = "a name has 1 to 63 characters: letters, digits, `.`, `_` \
                             and `-`, and begins with a letter or a digit";

/// Whether `text` is a name: `[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}`.
pub fn is_name(text: &str) -> bool {
    let follows = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    text.len() <= LONGEST
        && text.bytes().next().is_some_and(|c| c.is_ascii_alphanumeric())
        && text.bytes().all(follows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_need_no_quoting() {
        for good in ["a", "vm-1", "9.disk_0", &"x".repeat(63)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "-a", ".a", "a/b", "a b", "ä", "a\n", &"x".repeat(64)] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }
}
