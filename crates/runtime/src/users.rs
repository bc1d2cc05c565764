//! Services that use what a lower service has.
//!
//! A lower service does not know the ones above it. Each of those registers once, before
//! the first client comes in; from then on the lower service asks it before it changes
//! something ("may I?"), and tells it what has happened. Nobody keeps a second table of
//! who uses what, so no such table can be out of date.
//!
//! **Failure.** A service that has gone (the daemon stops) cannot be asked. What it would
//! have to allow is refused then.

use std::sync::{Arc, Mutex, Weak};

use sterna_api::{Error, Result};
use sterna_os::lock;

/// The users of a service, in the order in which they registered.
pub struct Users<T: ?Sized>(Mutex<Vec<Weak<T>>>);

impl<T: ?Sized> Default for Users<T> {
    fn default() -> Self {
        Users(Mutex::default())
    }
}

impl<T: ?Sized> Users<T> {
    /// Registers a user. The registry does not keep it alive.
    pub fn add(&self, user: &Arc<T>) {
        lock(&self.0).push(Arc::downgrade(user));
    }

    /// Asks all users, until one refuses.
    pub fn ask(&self, mut ask: impl FnMut(&T) -> Result<()>) -> Result<()> {
        // Not under the lock: a user may ask back.
        let all = lock(&self.0).clone();
        all.iter().try_for_each(|user| match user.upgrade() {
            Some(user) => ask(&user),
            None => Err(Error::unavailable("the daemon is stopping")),
        })
    }

    /// Asks all users that are there, until one fails: for what a service that has gone has
    /// no part in.
    pub fn ask_present(&self, ask: impl FnMut(&T) -> Result<()>) -> Result<()> {
        self.present().iter().map(|user| &**user).try_for_each(ask)
    }

    /// Tells all users that are there.
    pub fn tell(&self, tell: impl FnMut(&T)) {
        self.present().iter().map(|user| &**user).for_each(tell);
    }

    fn present(&self) -> Vec<Arc<T>> {
        lock(&self.0).iter().filter_map(Weak::upgrade).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    trait Named: Send + Sync {
        fn name(&self) -> &'static str;
    }

    struct User(&'static str);

    impl Named for User {
        fn name(&self) -> &'static str {
            self.0
        }
    }

    fn registered(users: &Users<dyn Named>, name: &'static str) -> Arc<dyn Named> {
        let user: Arc<dyn Named> = Arc::new(User(name));
        users.add(&user);
        user
    }

    #[test]
    fn all_users_are_asked_until_one_refuses() {
        let users = Users::default();
        let all = ["moves", "machines", "plans"].map(|name| registered(&users, name));
        let mut asked = Vec::new();
        let answer = users.ask(|user| {
            asked.push(user.name());
            match user.name() {
                "machines" => Err(Error::in_use("VM a uses the disk")),
                _ => Ok(()),
            }
        });
        assert_eq!(answer.unwrap_err().message, "VM a uses the disk");
        assert_eq!(asked, ["moves", "machines"]);
        drop(all);
    }

    #[test]
    fn what_a_user_would_have_to_allow_is_refused_once_it_has_gone() {
        let users = Users::default();
        let moves = registered(&users, "moves");
        drop(registered(&users, "machines"));
        let refused = users.ask(|_| Ok(())).unwrap_err();
        assert_eq!(refused.message, "the daemon is stopping");
        let mut told = Vec::new();
        users.tell(|user| told.push(user.name()));
        assert_eq!(told, ["moves"]);
        drop(moves);
    }
}
