//! Who is changing what.
//!
//! A request that creates, moves or removes something takes seconds to minutes,
//! so requests run side by side; those that touch the same thing must not. Each
//! claims what it touches, for itself or shared, and is refused at once if that
//! is taken: waiting would hide from the user what is going on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sterna_api::{Error, Result};

/// What is claimed, and by how many; `ALONE` marks one that shares with nobody.
type Taken = Arc<Mutex<HashMap<String, usize>>>;

/// The mark of a claim that shares with nobody.
const ALONE: usize = usize::MAX;

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
        self.claim(what, ALONE)
    }

    /// Claims `what` together with others that share it.
    pub fn shared(&self, what: String) -> Result<Claim> {
        self.claim(what, 1)
    }

    fn claim(&self, what: String, how: usize) -> Result<Claim> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.get_mut(&what) {
            None => {
                taken.insert(what.clone(), how);
            }
            Some(count) if *count != ALONE && how != ALONE => *count += 1,
            Some(_) => {
                let message = format!("{what} is being changed by another request");
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
            Some(count) if *count != ALONE && *count > 1 => *count -= 1,
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
}
