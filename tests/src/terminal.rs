//! A terminal with a program on it: keys go in, a screen comes out.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::wait::{seconds, until};

/// A program on a pseudo-terminal.
pub struct Terminal {
    child: Child,
    /// The user's end.
    user: File,
    /// The program's end, kept open so that it can be looked at after the program.
    program: Option<File>,
    screen: Arc<Mutex<vt100::Parser>>,
    /// What puts the program's output on the screen.
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Runs a program on a terminal of this size.
    pub fn run(mut command: Command, columns: u16, rows: u16) -> Terminal {
        // No other test's program may keep it open.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let user = openpt(flags).expect("a terminal");
        grantpt(&user).and_then(|()| unlockpt(&user)).expect("unlock the terminal");
        let name = ptsname(&user, Vec::new()).expect("the terminal's name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let program =
            rustix::fs::open(name, flags, Mode::empty()).expect("its other end");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&program, size).expect("set the terminal's size");
        let (user, program) = (File::from(user), File::from(program));
        let end = || program.try_clone().expect("another handle");
        let child = command
            .env("TERM", "xterm-256color")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("start the program");
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let (seen, mut output) = (screen.clone(), user.try_clone().expect("a handle"));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // When nobody has the program's end any more, the terminal says EIO.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                seen.lock().expect("not poisoned").process(&bytes[..count]);
            }
        });
        drop(command);
        Terminal { child, user, program: Some(program), screen, reader: Some(reader) }
    }

    /// Types.
    pub fn press(&mut self, keys: &str) {
        self.user.write_all(keys.as_bytes()).expect("type on the terminal");
    }

    /// What is on the screen.
    pub fn text(&self) -> String {
        self.screen.lock().expect("not poisoned").screen().contents()
    }

    /// Waits for a screen on which something is.
    #[track_caller]
    pub fn shows(&self, what: &str, is: impl Fn(&str) -> bool) {
        let deadline = std::time::Instant::now() + seconds(20);
        while !is(&self.text()) {
            let text = self.text();
            assert!(std::time::Instant::now() < deadline, "no {what} on:\n{text}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// The program.
    pub fn child(&self) -> &Child {
        &self.child
    }

    /// Waits for the program's end and for all of its output; the terminal must be as it
    /// was.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        let status = until("the program to end", seconds(20), || {
            self.child.try_wait().expect("ask for the program")
        });
        let program = self.program.take().expect("that it ends once");
        let modes = tcgetattr(&program).expect("ask the terminal").local_modes;
        let cooked = LocalModes::ICANON | LocalModes::ECHO;
        assert!(modes.contains(cooked), "the terminal is still raw");
        drop(program);
        let reader = self.reader.take().expect("that it ends once");
        reader.join().expect("read the terminal");
        let parser = self.screen.lock().expect("not poisoned");
        let screen = parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor(), "not as it was");
        status
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
