//! Links that open a session, once.

use std::time::{Duration, Instant};

use sterna_api::{Result, Role};

use super::{is_same, token};

/// How long a link works: until a browser has started on a busy host.
pub(crate) const LINK_VALID: Duration = Duration::from_secs(120);

/// So many links wait at a time; the oldest goes for a new one.
const LINKS_MOST: usize = 16;

/// A link that nobody has used yet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Link {
    token: String,
    role: Role,
    user: String,
    made: Instant,
}

/// Links that wait to be used, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Link>);

impl Links {
    /// A new link for that user; gives its token.
    pub(crate) fn make(
        &mut self,
        role: Role,
        user: String,
        now: Instant,
    ) -> Result<String> {
        self.tidy(now);
        if self.0.len() == LINKS_MOST {
            self.0.remove(0);
        }
        let token = token()?;
        self.0.push(Link { token: token.clone(), role, user, made: now });
        Ok(token)
    }

    /// Uses a link up: what it allows, and for whom.
    pub(crate) fn take(&mut self, token: &str, now: Instant) -> Option<(Role, String)> {
        self.tidy(now);
        let at = self.0.iter().position(|link| is_same(&link.token, token))?;
        let link = self.0.remove(at);
        Some((link.role, link.user))
    }

    fn tidy(&mut self, now: Instant) {
        self.0.retain(|link| now.duration_since(link.made) < LINK_VALID);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_works_once_and_not_for_long() {
        let (mut links, now) = (Links::default(), Instant::now());
        let token = links.make(Role::Viewer, "ann".into(), now).unwrap();
        assert_eq!(links.take("another", now), None);
        assert_eq!(links.take(&token, now), Some((Role::Viewer, "ann".into())));
        assert_eq!(links.take(&token, now), None);
        let token = links.make(Role::Operator, "ann".into(), now).unwrap();
        assert_eq!(links.take(&token, now + LINK_VALID), None);
    }

    #[test]
    fn of_many_links_the_oldest_goes() {
        let (mut links, now) = (Links::default(), Instant::now());
        let mut make = || links.make(Role::Operator, "ann".into(), now).unwrap();
        let first = make();
        let second = make();
        (0..LINKS_MOST - 1).for_each(|_| drop(make()));
        assert_eq!(links.take(&first, now), None);
        assert!(links.take(&second, now).is_some());
    }
}
