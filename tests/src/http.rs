//! The API as a stranger would ask it: HTTP by hand, with nothing that a client puts right.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use crate::wait::seconds;

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its head, in small letters.
    pub head: String,
    /// Its body.
    pub body: String,
}

impl Reply {
    /// The answer in these bytes.
    #[track_caller]
    pub fn read(answer: &[u8]) -> Reply {
        let answer = String::from_utf8_lossy(answer);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Reply {
            status: status.expect("a status"),
            head: head.to_lowercase(),
            body: body.into(),
        }
    }

    /// Its body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| {
            panic!("no JSON ({error}): {self:?}");
        })
    }

    /// What a header says.
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines();
        lines.filter_map(|line| line.split_once(": ")).find_map(|(have, value)| {
            if have == name { Some(value.trim()) } else { None }
        })
    }
}

/// What the API has at a path, if it answers, and has it.
pub fn get(socket: &Path, path: &str) -> Option<Value> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(seconds(20))).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    // A daemon that was killed meanwhile has said nothing, or a part.
    let whole = answer.windows(4).any(|four| four == b"\r\n\r\n");
    let reply = whole.then(|| Reply::read(&answer))?;
    serde_json::from_str(&reply.body).ok().filter(|_| reply.status == 200)
}

/// Asks for something on a connection of its own.
#[track_caller]
pub fn ask(socket: &Path, method: &str, path: &str, body: &str) -> Reply {
    let mut stream = UnixStream::connect(socket).expect("connect to the API");
    stream.set_read_timeout(Some(seconds(20))).expect("set a timeout");
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    // It may answer, and close, before it has heard all.
    let _ = stream.write_all(request.as_bytes());
    let (mut answer, mut bytes) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        answer.extend_from_slice(&bytes[..count]);
    }
    Reply::read(&answer)
}
