//! Who may do what.
//!
//! **Rule.** Whoever can open the unix socket may do everything: the file's permissions
//! decide. The dashboard on a loopback address is for whoever has a session: a link that
//! works once, and not for long ([`Links`]), opens one ([`Sessions`]). Only the unix socket
//! gives links, so a session is never more than its giver had. A viewer sees everything and
//! changes nothing.
//!
//! Tokens are 256 bits of chance. Of those that the daemon has given, it keeps only what it
//! needs to know them again, in memory: a restart of the daemon ends all sessions.

mod links;
mod sessions;

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use sterna_api::Role;

pub(crate) use self::links::{LINK_VALID, Links};
pub(crate) use self::sessions::{Open, Sessions};

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A process of this host, by its user's number, over the unix socket.
    Local(Option<u32>),
    /// A browser with a session.
    Browser(Open),
}

impl Caller {
    /// What it may do.
    pub(crate) fn role(&self) -> Role {
        match self {
            Caller::Local(_) => Role::Operator,
            Caller::Browser(open) => open.role,
        }
    }

    /// Who that is, for people.
    pub(crate) fn name(&self) -> String {
        match self {
            Caller::Local(None) => "somebody on this host".into(),
            Caller::Local(Some(uid)) => user(*uid),
            Caller::Browser(open) => format!("{}, in the dashboard", open.user),
        }
    }
}

/// A request that nothing else is known of comes from this host: all others are stopped
/// before (`http::loopback`).
impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Infallible> {
        let known = parts.extensions.get::<Caller>().cloned();
        Ok(known.unwrap_or(Caller::Local(None)))
    }
}

/// A user, by name if the host has one.
pub(crate) fn user(uid: u32) -> String {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    named.unwrap_or_else(|| format!("user {uid}"))
}

/// A new token: 256 bits, as text.
fn token() -> sterna_api::Result<String> {
    let number = sterna_os::random::number;
    Ok(format!("{:032x}{:032x}", number()?, number()?))
}

/// Whether two tokens are equal, in a time that says nothing of where they differ.
fn is_same(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    one.len() == other.len() && pairs.fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_none_is_like_another() {
        let (one, other) = (token().unwrap(), token().unwrap());
        assert_eq!(one.len(), 64);
        assert!(!is_same(&one, &other) && is_same(&one, &one.clone()));
        assert!(!is_same(&one, &one[1..]));
    }

    #[test]
    fn root_has_a_name_and_nobody_knows_user_number_4_000_000() {
        assert_eq!(user(0), "root");
        assert_eq!(user(4_000_000), "user 4000000");
    }
}
