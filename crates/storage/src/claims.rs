//! Who is changing what.
//!
//! A request that creates, moves or removes something takes seconds to minutes,
//! so requests run side by side; those that touch the same thing must not. Each
//! claims what it touches, for itself or shared, and is refused at once if that
//! is taken: waiting would hide from the user what is going on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sterna_api::{Error, Result};

/// What is claimed, and how.
type Taken = Arc<Mutex<HashMap<String, Held>>>;

/// A thing that is claimed.
#[derive(Debug)]
struct Held {
    /// By how many; `ALONE` marks one that shares with nobody.
    count: usize,
    /// What becomes of it meanwhile.
    doing: &'static str,
}

/// The mark of a claim that shares with nobody.
const ALONE: usize = usize::MAX;

/// What is said of most.
const CHANGED: &str = "is being changed by another request";

/// All claims.
#[derive(Debug, Default)]
pub struct Claims {
    taken: Taken,
}

/// A claim; given up when it is dropped.
#[derive(Debug)]
pub struct Claim {
    taken: Taken,
    what: String,
}

impl Claims {
    /// Claims `what` ("disk db") for the caller alone.
    pub fn alone(&self, what: String) -> Result<Claim> {
        self.claim(what, ALONE, CHANGED)
    }

    /// The same; whoever is refused is told that it is `doing` that.
    pub fn alone_as(&self, what: String, doing: &'static str) -> Result<Claim> {
        self.claim(what, ALONE, doing)
    }

    /// Claims `what` together with others that share it.
    pub fn shared(&self, what: String) -> Result<Claim> {
        self.claim(what, 1, CHANGED)
    }

    /// The same; whoever is refused is told that it is `doing` that.
    pub fn shared_as(&self, what: String, doing: &'static str) -> Result<Claim> {
        self.claim(what, 1, doing)
    }

    fn claim(&self, what: String, how: usize, doing: &'static str) -> Result<Claim> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.get_mut(&what) {
            None => {
                taken.insert(what.clone(), Held { count: how, doing });
            }
            Some(held) if held.count != ALONE && how != ALONE => {
                held.count += 1;
                held.doing = doing;
            }
            Some(held) => {
                let message = format!("{what} {}", held.doing);
                return Err(Error::in_use(message).hint("try again in a moment"));
            }
        }
        Ok(Claim { taken: self.taken.clone(), what })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.get_mut(&self.what) {
            Some(held) if held.count != ALONE && held.count > 1 => held.count -= 1,
            _ => {
                taken.remove(&self.what);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_alone_or_many_together() {
        let claims = Claims::default();
        let name = || String::from("datastore fast");
        let first = claims.shared(name()).unwrap();
        let second = claims.shared(name()).unwrap();
        assert!(claims.alone(name()).is_err());
        drop(first);
        assert!(claims.alone(name()).is_err());
        drop(second);
        let alone = claims.alone(name()).unwrap();
        assert!(claims.shared(name()).is_err());
        drop(alone);
        claims.shared(name()).unwrap();
    }

    #[test]
    fn who_is_refused_is_told_what_becomes_of_it() {
        let claims = Claims::default();
        let _first = claims.alone_as("disk z".into(), "is being created").unwrap();
        let refused = claims.alone("disk z".into()).unwrap_err();
        assert_eq!(refused.message, "disk z is being created");
        let _second = claims.shared("datastore a".into()).unwrap();
        let refused = claims.alone("datastore a".into()).unwrap_err();
        assert!(refused.message.ends_with("is being changed by another request"));
    }
}
