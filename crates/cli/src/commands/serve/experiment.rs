//! The daemon of an experiment, which ends with the experiment, however that ends.
//!
//! **Rule.** The experiment holds one end of a pipe, and the daemon reads the other as its
//! stdin. Nothing is ever said there. If the experiment is gone (it has ended, was killed,
//! or the machine has no memory for it any more), the kernel closes the pipe: the daemon
//! stops in good order then, and removes the experiment's directories, which nobody else will.
//! A signal to the daemon itself ends it as always; then the experiment is there, and cleans
//! up by itself.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::sync::oneshot;

/// What such a directory's name begins with.
const PREFIX: &str = "sterna-";

/// Whether stdin has ended.
static OVER: AtomicBool = AtomicBool::new(false);

/// Waits for the experiment's end; for ever, if there is none.
pub(crate) async fn ends(is_one: bool) {
    if is_one
        && let Ok(over) = watch()
        && over.await.is_ok()
    {
        return;
    }
    // A thread that could not be started, or has gone, sees no end.
    std::future::pending::<()>().await;
}

/// A thread that waits for the end of stdin.
fn watch() -> io::Result<oneshot::Receiver<()>> {
    let (ended, over) = oneshot::channel();
    let watch = move || {
        let mut nothing = [0; 64];
        // An error is an end as well.
        while matches!(io::stdin().read(&mut nothing), Ok(1..)) {}
        OVER.store(true, Ordering::Relaxed);
        let _ = ended.send(());
    };
    thread::Builder::new().name("sterna-leash".into()).spawn(watch)?;
    Ok(over)
}

/// Removes the directories of an experiment that is gone, those that are an experiment's.
pub(crate) fn clean_up(directories: &[PathBuf]) {
    if !OVER.load(Ordering::Relaxed) {
        return;
    }
    for directory in directories {
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(PREFIX) {
            // Nobody is left to tell.
            let _ = fs::remove_dir_all(directory);
        }
    }
}
