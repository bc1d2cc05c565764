//! Helper threads for jobs that block, a few for each kind.

use std::sync::Arc;

use super::workers::{Finished, Work, Workers};
use super::{Chore, Errno, Job};

/// Helpers for the jobs of one kind. Their work is short, so a few are enough; and
/// there are several, as one may hang.
const OF_EACH_KIND: usize = 4;

/// Helpers that connect. Each server that is down keeps one for seconds, and none of
/// them may keep another one from being found again in time. They start when needed.
const CONNECTING: usize = 16;

pub(super) struct Helpers {
    look_up: Workers<Job>,
    clone: Workers<Job>,
    connect: Workers<Job>,
}

impl Work for Job {
    fn run(self) -> Result<u64, Errno> {
        self()
    }
}

impl Helpers {
    pub(super) fn new(finished: &Arc<Finished>) -> Helpers {
        let some = |limit| Workers::new(limit, finished);
        Helpers {
            look_up: some(OF_EACH_KIND),
            clone: some(OF_EACH_KIND),
            connect: some(CONNECTING),
        }
    }

    pub(super) fn start(
        &mut self,
        slot: u32,
        chore: Chore,
        job: Job,
    ) -> Result<(), Errno> {
        match chore {
            Chore::LookUp => &mut self.look_up,
            Chore::Clone => &mut self.clone,
            Chore::Connect => &mut self.connect,
        }
        .start(slot, job)
    }

    /// Takes back a job that no helper has begun; false if it is too late.
    pub(super) fn withdraw(&mut self, slot: u32) -> bool {
        [&mut self.look_up, &mut self.clone, &mut self.connect]
            .into_iter()
            .any(|workers| workers.withdraw(slot))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};
    use std::time::Duration;

    use super::Arc;
    use crate::io::{self, Chore, Completion, Io, IoChoice, Op, Owner, Token};

    /// Waits until so many operations are done; gives their tags.
    fn done(io: &mut dyn Io, count: usize) -> Vec<u32> {
        let mut completions: Vec<Completion> = Vec::new();
        for _ in 0..500 {
            io.wait(Some(Duration::from_millis(20)), &mut completions);
            if completions.len() >= count {
                break;
            }
        }
        completions.iter().map(|completion| completion.token.tag).collect()
    }

    #[test]
    fn jobs_of_one_kind_that_hang_keep_none_of_another_waiting() {
        for choice in [IoChoice::Auto, IoChoice::Threads] {
            let (mut io, _) = io::open(choice, None).unwrap();
            let mut submit = |tag, chore, job: io::Job| {
                let token = Token { owner: Owner::Reactor, tag };
                io.submit(token, Op::Blocking { chore, job: Some(job) });
            };
            let (release, hung) = mpsc::channel::<()>();
            let hung = Arc::new(Mutex::new(hung));
            for tag in 0..100 {
                let hung = Arc::clone(&hung);
                let hang = move || {
                    let _ = hung.lock().unwrap().recv();
                    Ok(0)
                };
                let chore = [Chore::Connect, Chore::Clone][tag as usize % 2];
                submit(tag, chore, Box::new(hang));
            }
            submit(100, Chore::LookUp, Box::new(|| Ok(0)));
            assert_eq!(done(io.as_mut(), 1), [100]);
            drop(release);
            assert_eq!(done(io.as_mut(), 100).len(), 100);
        }
    }
}
