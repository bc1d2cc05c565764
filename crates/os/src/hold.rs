//! Threads of another process that stand still, as long as a thread of ours lives.
//!
//! A tracer stops a thread of another process, and the kernel lets go of it when the tracer ends,
//! however it ends. So nobody stands still because of a daemon that is gone. The other process does
//! not see it, and its manager (libvirt) neither; its clocks go on.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::process;

/// How long threads may take to stand still. One that waits for a device that hangs does not.
const STAND: Duration = Duration::from_millis(100);

/// How often it is looked whether they do.
const LOOK: Duration = Duration::from_millis(1);

/// Threads that are held. Dropped, they go on.
#[derive(Debug)]
pub struct Hold {
    /// Closed when they are to go on.
    release: Option<mpsc::Sender<()>>,
    tracer: Option<JoinHandle<()>>,
}

impl Hold {
    /// Holds these threads of another process. An error if any of them does not stand still; all
    /// of them go on then.
    pub fn of(process: i32, threads: Vec<i32>) -> io::Result<Hold> {
        let (release, released) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let tracer =
            thread::Builder::new().name("sterna-hold".into()).spawn(move || {
                let begun = threads.iter().try_for_each(|one| hold(process, *one));
                let stands =
                    begun.and_then(|()| wait_until_they_stand(process, &threads));
                let goes_on = stands.is_err();
                let _ = tell.send(stands);
                if !goes_on {
                    // Until the other end is closed.
                    let _ = released.recv();
                }
                // The kernel lets go of all when this thread ends.
            })?;
        let hold = Hold { release: Some(release), tracer: Some(tracer) };
        told.recv().unwrap_or_else(|_| Err(ErrorKind::Other.into()))?;
        Ok(hold)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        drop(self.release.take());
        if let Some(tracer) = self.tracer.take() {
            let _ = tracer.join();
        }
    }
}

/// Holds a thread, if it is one of this process: another may have its number by now.
fn hold(process: i32, thread: i32) -> io::Result<()> {
    if !Path::new(&format!("/proc/{process}/task/{thread}")).exists() {
        return Err(ErrorKind::NotFound.into());
    }
    process::stop_thread(thread)
}

fn wait_until_they_stand(process: i32, threads: &[i32]) -> io::Result<()> {
    let began = Instant::now();
    while !threads.iter().all(|thread| stands(process, *thread)) {
        if began.elapsed() > STAND {
            return Err(ErrorKind::TimedOut.into());
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Whether a tracer has stopped this thread, or it has ended.
fn stands(process: i32, thread: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat"))
    else {
        return true;
    };
    let state =
        stat.rsplit_once(')').and_then(|(_, fields)| fields.trim().chars().next());
    state == Some('t')
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A program that does something all the time.
    fn busy() -> Child {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do :; done"]).stdout(Stdio::null()).spawn().unwrap()
    }

    fn ticks(pid: i32) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(14 - 3).unwrap().parse().unwrap()
    }

    #[test]
    fn a_thread_stands_still_until_the_hold_ends() {
        let mut child = busy();
        let pid = child.id().cast_signed();
        let hold = match Hold::of(pid, vec![pid]) {
            Ok(hold) => hold,
            Err(error) => {
                println!("skipped: this machine lets nobody be traced: {error}");
                child.kill().unwrap();
                child.wait().unwrap();
                return;
            }
        };
        let before = ticks(pid);
        thread::sleep(Duration::from_millis(100));
        assert!(stands(pid, pid) && ticks(pid) == before);
        drop(hold);
        let began = Instant::now();
        while ticks(pid) == before {
            assert!(began.elapsed() < Duration::from_secs(10), "it does not go on");
            thread::sleep(LOOK);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn nobody_is_held_who_is_not_there() {
        assert!(Hold::of(0x3fff_fff0, vec![0x3fff_fff0]).is_err());
    }
}
