//! What QEMU has to be told to give a guest a disk, for both ways in.

use serde::Serialize;
use sterna_api::Disk;
use sterna_console::output::WIDTH;
use sterna_qemu::arguments::{blockdev, chardev, unix_server};

/// Characters of a node's name in QEMU, at most.
const ID_MAX: usize = 31;

/// A way in: QEMU's arguments, one after the other.
#[derive(Debug, Serialize)]
pub(crate) struct Way {
    /// `nbd` or `vhost-user`.
    way: &'static str,
    arguments: Vec<String>,
}

/// The ways in to a disk, which is this device of a VM, if that is known. The device
/// keeps its name: by that the VM's disk is known.
pub(crate) fn ways(disk: &Disk, device: Option<&str>) -> Vec<Way> {
    let (name, id) = (&disk.name, id(&disk.name));
    let device = device.filter(|device| is_id(device)).unwrap_or(&id);
    let nbd = disk.uris.iter().filter_map(|uri| server(uri)).map(|server| Way {
        way: "nbd",
        arguments: vec![
            "-blockdev".into(),
            blockdev(&id, &server, name),
            "-device".into(),
            format!("virtio-blk-pci,drive={id},id={device},werror=stop,rerror=stop"),
        ],
    });
    let vhost = disk.vhost_user.iter().map(|path| Way {
        way: "vhost-user",
        arguments: vec![
            "-object".into(),
            "memory-backend-memfd,id=mem,size=MEMORY,share=on".into(),
            "-machine".into(),
            "memory-backend=mem".into(),
            "-chardev".into(),
            chardev(&id, path),
            "-device".into(),
            format!("vhost-user-blk-pci,chardev={id},id={device}"),
        ],
    });
    nbd.chain(vhost).collect()
}

/// What QEMU takes as an id: it begins with a letter and is not long.
fn id(name: &str) -> String {
    let letter = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let whole = if letter { name.to_owned() } else { format!("disk-{name}") };
    whole.chars().take(ID_MAX).collect()
}

/// Whether QEMU takes it as a device's id.
fn is_id(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(fits)
}

/// A URI of ours as QEMU's options have it.
fn server(uri: &str) -> Option<String> {
    if let Some((_, path)) = uri.split_once("?socket=") {
        return Some(unix_server(&unescaped(path)));
    }
    let (host, port) = uri.strip_prefix("nbd://")?.split_once('/')?.0.rsplit_once(':')?;
    let host = host.trim_matches(['[', ']']);
    Some(format!("server.type=inet,server.host={host},server.port={port}"))
}

/// What a URI has in the place of other bytes.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let code = || [rest.clone().next(), rest.clone().nth(1)];
        match (byte, code()) {
            (b'%', [Some(high), Some(low)]) => {
                let digits = [high, low];
                let digits = std::str::from_utf8(&digits).unwrap_or_default();
                bytes.push(u8::from_str_radix(digits, 16).unwrap_or(byte));
                rest.nth(1);
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The ways in, for people: each is a piece of a shell's command line, to be pasted as it is.
pub(crate) fn show(ways: &[Way]) -> String {
    let mut text = String::new();
    for way in ways {
        let pairs = way.arguments.chunks(2).map(pasted);
        let pairs = pairs.collect::<Vec<_>>().join(" \\\n");
        text.push_str(&format!("{}:\n{pairs}\n", way.way));
    }
    if ways.iter().any(|way| way.way == "vhost-user") {
        text.push_str("MEMORY is the VM's, as with -m.\n");
    }
    text.trim_end().to_owned()
}

/// An option and its value, as a shell takes them. A value that is too long goes on in the
/// next line after one of its commas: a shell takes a backslash at a line's end for nothing,
/// so the next line must not be indented. Within quotes that would not be so, and each line
/// has quotes of its own. A path stays whole.
fn pasted(pair: &[String]) -> String {
    let whole =
        format!("  {}", pair.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" "));
    let [option, value] = pair else { return whole };
    // Behind the last line comes another backslash.
    if whole.chars().count() + 2 <= WIDTH {
        return whole;
    }
    let mut lines = Vec::new();
    let mut line = format!("  {} ", quoted(option));
    for part in value.split_inclusive(',').map(quoted) {
        if line.chars().count() + part.chars().count() + 2 > WIDTH {
            lines.push(std::mem::take(&mut line));
        }
        line.push_str(&part);
    }
    lines.push(line);
    lines.join("\\\n")
}

fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.,:=/".contains(&byte);
    match word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_an_id_that_stays() {
        assert!(is_id("vda") && is_id("disk0.1_a-b"));
        assert!(!is_id("#block123") && !is_id("0disk") && !is_id("a,b") && !is_id(""));
    }

    #[test]
    fn a_socket_with_strange_bytes_is_understood() {
        let uri = "nbd+unix:///db?socket=/run/a%20b%2Cc/nbd.sock";
        let expected = "server.type=unix,server.path=/run/a b,,c/nbd.sock";
        assert_eq!(server(uri).unwrap(), expected);
        let tcp = server("nbd://[::1]:10809/db").unwrap();
        assert_eq!(tcp, "server.type=inet,server.host=::1,server.port=10809");
    }

    /// What a shell makes of the lines.
    fn words(text: &str) -> Vec<String> {
        let script = format!("printf '%s\\n' {text}");
        let output = std::process::Command::new("sh").args(["-c", &script]).output();
        let output = output.expect("start a shell").stdout;
        String::from_utf8(output).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn arguments_are_pasted_as_they_are_however_long() {
        for (name, path) in [
            ("db", "/run/nbd.sock".to_owned()),
            ("d", format!("/run/it's here, {}", "x/".repeat(60))),
        ] {
            let long = name.repeat(31);
            let uri = format!("server.type=unix,server.path={}", path.replace(',', ",,"));
            let arguments: Vec<String> = vec![
                "-blockdev".into(),
                blockdev(&long, &uri, &long),
                "-device".into(),
                format!("virtio-blk-pci,drive={long},id={long},werror=stop,rerror=stop"),
            ];
            let way = Way { way: "nbd", arguments: arguments.clone() };
            let text = show(&[way]);
            let pasted = text.strip_prefix("nbd:\n").expect("the way");
            assert_eq!(words(pasted), arguments, "{text}");
            let fits = |line: &str| line.chars().count() <= WIDTH || line.contains('/');
            assert!(text.lines().all(fits), "{text}");
        }
    }
}
