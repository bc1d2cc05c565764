//! The header in which a client says which command stands for a request.
//!
//! Headers are plain ASCII, and commands are not: what is not printable ASCII, and each `%`, is
//! written as in URIs, byte by byte.

/// The header's name.
pub const COMMAND: &str = "sterna-command";

/// A command as the header has it.
pub fn encode_command(command: &str) -> String {
    let mut text = String::with_capacity(command.len());
    for byte in command.bytes() {
        match byte {
            b'%' => text.push_str("%25"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The command that a header has. What is not encoded well stays as it is.
pub fn decode_command(header: &str) -> String {
    let mut bytes = Vec::with_capacity(header.len());
    let mut rest = header.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let is_code = |two: &&[u8]| two.iter().all(u8::is_ascii_hexdigit);
        let code = after.get(..2).filter(|_| *first == b'%').filter(is_code);
        let code = code.and_then(|two| std::str::from_utf8(two).ok());
        match code.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_comes_through_a_header() {
        for command in [
            "sterna policy cruise gold --tolerance 10%",
            "sterna disk create größe --size 1G",
            "sterna class create a%25b\n%",
            "",
        ] {
            let header = encode_command(command);
            assert!(header.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{header}");
            assert_eq!(decode_command(&header), command);
        }
    }

    #[test]
    fn what_is_not_encoded_well_stays_as_it_is() {
        for header in ["100% of it", "%", "%2", "%zz and %+1"] {
            assert_eq!(decode_command(header), header);
        }
    }
}
