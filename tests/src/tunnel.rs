//! A tunnel to a server: what `socat` and `ssh -L` do. It passes all bytes on.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;

use crate::scratch::Scratch;

/// One end of the tunnel; it is dug until the test ends.
pub struct Tunnel(PathBuf);

impl Tunnel {
    /// Digs one to the server at a socket.
    #[track_caller]
    pub fn to(server: &Path, scratch: &Scratch) -> Tunnel {
        let socket = scratch.socket("tunnel.sock");
        let listener = UnixListener::bind(&socket).expect("listen");
        let server = server.to_path_buf();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = UnixStream::connect(&server) else { continue };
                let ends = [(&client, &server), (&server, &client)];
                let ends = ends.map(|(from, to)| {
                    Some((from.try_clone().ok()?, to.try_clone().ok()?))
                });
                for (from, to) in ends.into_iter().flatten() {
                    thread::spawn(move || pass_on(from, to));
                }
            }
        });
        Tunnel(socket)
    }

    /// Where a server's export is at this end.
    pub fn uri(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.0.display())
    }
}

fn pass_on(mut from: UnixStream, mut to: UnixStream) {
    let _ = io::copy(&mut from, &mut to);
    // Who is gone at one end is gone at the other.
    for end in [from, to] {
        let _ = end.shutdown(Shutdown::Both);
    }
}
