//! What QEMU's command line says of the servers that QEMU is a client of.
//!
//! Three spellings are read: libvirt's JSON, `key=value` (with `file.` before it, or not),
//! and a URI as a file's name. A client that is added later, over QMP, is in no command
//! line, so nothing is said of it.

use serde_json::Value;

/// A client that a command line makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The path of the server's socket.
    pub socket: String,
    /// The export's name over NBD; nothing of a vhost-user disk.
    pub export: Option<String>,
    /// Whether the client waits for a server that is away, and connects again.
    pub reconnects: bool,
}

/// The clients of servers on unix sockets that this command line makes, in its order.
pub fn clients(arguments: &[String]) -> Vec<Client> {
    let values = arguments.iter().zip(arguments.iter().skip(1));
    values
        .flat_map(|(option, value)| match option.trim_start_matches('-') {
            "blockdev" | "drive" => of_block_device(value),
            "chardev" => of_chardev(value).into_iter().collect(),
            _ => Vec::new(),
        })
        .collect()
}

fn of_block_device(value: &str) -> Vec<Client> {
    let json = value.strip_prefix("json:").unwrap_or(value);
    if let Ok(value @ Value::Object(_)) = serde_json::from_str(json) {
        let mut found = Vec::new();
        of_json(&value, &mut found);
        return found;
    }
    let options = options(value);
    let find = |wanted: &str| {
        let found = options.iter().find(|(key, _)| key == wanted);
        found.map(|(_, value)| value.as_str())
    };
    // The client may be below a format: `driver=raw,file.driver=nbd`.
    let is_nbd = |(key, value): &&(String, String)| {
        value == "nbd" && (key == "driver" || key.ends_with(".driver"))
    };
    let driver = options.iter().find(is_nbd).map(|(key, _)| key.as_str());
    let prefix = driver.and_then(|key| key.strip_suffix("driver"));
    let of = |key: &str| find(&format!("{}{key}", prefix.unwrap_or("file.")));
    let delay = of("reconnect-delay").or_else(|| find("reconnect-delay"));
    let reconnects = is_some_time(delay);
    let (export, socket) = match (find("file").and_then(of_uri), prefix) {
        (Some(named), _) => named,
        (None, Some(_)) => match of("server.path").or_else(|| of("path")) {
            Some(path) => (of("export").unwrap_or_default().to_owned(), path.to_owned()),
            None => return Vec::new(),
        },
        (None, None) => return Vec::new(),
    };
    vec![Client { socket, export: Some(export), reconnects }]
}

/// All NBD clients in a block device and those below it.
fn of_json(value: &Value, found: &mut Vec<Client>) {
    let Value::Object(device) = value else { return };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let server = device.get("server").unwrap_or(value);
    let is_nbd = device.get("driver").and_then(Value::as_str) == Some("nbd");
    if let Some(socket) = server.get("path").and_then(text).filter(|_| is_nbd) {
        let export = device.get("export").and_then(text).unwrap_or_default();
        let delay = device.get("reconnect-delay").map(ToString::to_string);
        let reconnects = is_some_time(delay.as_deref());
        found.push(Client { socket, export: Some(export), reconnects });
    }
    device.values().for_each(|below| of_json(below, found));
}

fn of_chardev(value: &str) -> Option<Client> {
    let options = if value.starts_with('{') { Vec::new() } else { options(value) };
    let of = |wanted: &str| {
        let found = options.iter().find(|(key, _)| key == wanted);
        found.map(|(_, value)| value.as_str())
    };
    // Others connect to a server.
    let is_client = of("server").is_none_or(|it| it == "off");
    let socket = of("path").filter(|_| is_client)?.to_owned();
    let reconnects = is_some_time(of("reconnect")) || is_some_time(of("reconnect-ms"));
    Some(Client { socket, export: None, reconnects })
}

/// `nbd+unix:///EXPORT?socket=PATH`, and QEMU's older `nbd:unix:PATH:exportname=EXPORT`:
/// the export and the socket.
fn of_uri(file: &str) -> Option<(String, String)> {
    if let Some(rest) = file.strip_prefix("nbd+unix://") {
        let (export, socket) = rest.split_once("?socket=")?;
        return Some((
            unescaped(export.strip_prefix('/').unwrap_or(export)),
            unescaped(socket),
        ));
    }
    let rest = file.strip_prefix("nbd:unix:")?;
    let (socket, export) = rest.split_once(":exportname=").unwrap_or((rest, ""));
    Some((export.to_owned(), socket.to_owned()))
}

/// A part of a URI in which `%20` is a space.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend(before.bytes());
        let escaped = after.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(escaped.unwrap_or(b'%'));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    bytes.extend(rest.bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_some_time(value: Option<&str>) -> bool {
    value.and_then(|text| text.parse::<u64>().ok()).is_some_and(|time| time > 0)
}

/// `key=value,…`, in which a comma of a value is there twice. What has no `=` is a switch.
fn options(text: &str) -> Vec<(String, String)> {
    let mut all = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(next) = chars.next() {
        match next {
            ',' if chars.next_if_eq(&',').is_none() => all.push(String::new()),
            next => all.last_mut().expect("there is one").push(next),
        }
    }
    let pair = |option: String| match option.split_once('=') {
        Some((key, value)) => (key.to_owned(), value.to_owned()),
        None => (option, String::new()),
    };
    all.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{blockdev, chardev, unix_server};

    fn found(arguments: &[&str]) -> Vec<(String, Option<String>, bool)> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let all = clients(&arguments).into_iter();
        all.map(|it| (it.socket, it.export, it.reconnects)).collect()
    }

    fn nbd(reconnects: bool) -> Vec<(String, Option<String>, bool)> {
        vec![("/run/n.sock".into(), Some("db".into()), reconnects)]
    }

    #[test]
    fn the_options_that_sterna_gives_reconnect() {
        let nbd_disk = blockdev("disk0", &unix_server("/run/a,b/n.sock"), "db");
        let vhost = chardev("v0", "/run/v.sock");
        let said = found(&["qemu", "-blockdev", &nbd_disk, "-chardev", &vhost]);
        let export = Some("db".to_owned());
        assert_eq!(
            said,
            [
                ("/run/a,b/n.sock".into(), export, true),
                ("/run/v.sock".into(), None, true)
            ]
        );
    }

    #[test]
    fn every_spelling_without_a_delay_is_one_that_gives_up() {
        for (option, value) in [
            (
                "-blockdev",
                "driver=nbd,server.type=unix,server.path=/run/n.sock,export=db",
            ),
            ("--blockdev", "driver=nbd,path=/run/n.sock,export=db,reconnect-delay=0"),
            ("-drive", "file=nbd+unix:///db?socket=/run/n.sock,if=virtio"),
            ("-drive", "if=none,file=nbd:unix:/run/n.sock:exportname=db"),
            ("-drive", "file=nbd+unix:///d%62?socket=/run/n%2Esock"),
            (
                "-blockdev",
                "driver=raw,node-name=a,file.driver=nbd,file.server.type=unix,\
                 file.server.path=/run/n.sock,file.export=db",
            ),
            (
                "-drive",
                "file.driver=nbd,file.server.type=unix,file.server.path=/run/n.sock,\
                 file.export=db",
            ),
            (
                "-blockdev",
                r#"{"driver":"raw","file":{"driver":"nbd","server":{"type":"unix",
                    "path":"/run/n.sock"},"export":"db"}}"#,
            ),
        ] {
            assert_eq!(found(&["qemu", option, value]), nbd(false), "{value}");
        }
    }

    #[test]
    fn libvirts_spelling_with_a_delay_reconnects() {
        let value = r#"{"driver":"nbd","server":{"type":"unix","path":"/run/n.sock"},
            "export":"db","reconnect-delay":300,"node-name":"libvirt-1-storage"}"#;
        assert_eq!(found(&["qemu", "-blockdev", value]), nbd(true));
        let drive = "file=nbd+unix:///db?socket=/run/n.sock,file.reconnect-delay=9";
        assert_eq!(found(&["qemu", "-drive", drive]), nbd(true));
    }

    #[test]
    fn what_is_no_client_of_a_unix_socket_is_left_out() {
        for (option, value) in [
            ("-blockdev", "driver=file,filename=/a.raw,node-name=a"),
            ("-blockdev", "driver=nbd,server.type=inet,server.host=h,server.port=1"),
            ("-chardev", "socket,id=m,path=/run/qmp.sock,server=on,wait=off"),
            ("-chardev", "stdio,id=s"),
            ("-device", "virtio-blk-pci,drive=path=/run/n.sock"),
            ("-blockdev", "{broken"),
            ("-drive", ""),
        ] {
            assert_eq!(found(&["qemu", option, value]), [], "{value}");
        }
        assert_eq!(found(&["-blockdev"]), []);
    }
}
