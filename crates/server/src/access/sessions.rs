//! Sessions of the dashboard.

use std::time::{Duration, Instant};

use sterna_api::{Result, Role};

use super::{is_same, token};

/// How long a session lasts: a shift.
const SESSION_VALID: Duration = Duration::from_secs(12 * 3600);

/// So many sessions there are at most; the oldest goes for a new one.
const SESSIONS_MOST: usize = 64;

/// A session that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    /// What whoever has it may do.
    pub(crate) role: Role,
    /// For whom it was opened.
    pub(crate) user: String,
    /// When it ends.
    pub(crate) until: Instant,
}

/// The sessions, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Vec<(String, Open)>);

impl Sessions {
    /// Opens a session; gives its token.
    pub(crate) fn open(
        &mut self,
        (role, user): (Role, String),
        now: Instant,
    ) -> Result<(String, Open)> {
        self.0.retain(|(_, open)| now < open.until);
        if self.0.len() == SESSIONS_MOST {
            self.0.remove(0);
        }
        let (token, until) = (token()?, now + SESSION_VALID);
        let open = Open { role, user, until };
        self.0.push((token.clone(), open.clone()));
        Ok((token, open))
    }

    /// The session of that token, if it is open.
    pub(crate) fn find(&self, token: &str, now: Instant) -> Option<Open> {
        let found = self.0.iter().find(|(known, _)| is_same(known, token));
        found.map(|(_, open)| open.clone()).filter(|open| now < open.until)
    }

    /// Ends a session.
    pub(crate) fn end(&mut self, token: &str) {
        self.0.retain(|(known, _)| !is_same(known, token));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_known_by_its_token_until_it_ends() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        let ann = (Role::Operator, "ann".to_owned());
        let (token, open) = sessions.open(ann, now).unwrap();
        assert_eq!(sessions.find(&token, now), Some(open));
        assert_eq!(sessions.find("another", now), None);
        assert_eq!(sessions.find(&token, now + SESSION_VALID), None);
        sessions.end(&token);
        assert_eq!(sessions.find(&token, now), None);
    }

    #[test]
    fn of_many_sessions_the_oldest_ends() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        let mut open = || sessions.open((Role::Viewer, "ann".into()), now).unwrap().0;
        let first = open();
        (0..SESSIONS_MOST).for_each(|_| drop(open()));
        assert_eq!(sessions.find(&first, now), None);
        assert_eq!(sessions.0.len(), SESSIONS_MOST);
    }
}
