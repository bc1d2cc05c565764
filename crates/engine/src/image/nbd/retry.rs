//! Losing connections and getting them back.

use std::sync::Arc;

use sterna_core::Nanos;
use sterna_core::durability::{Loss, Standing};

use super::connect::connect;
use super::examine::{Examined, examine};
use super::flight;
use super::link::{Outcome, State};
use super::{CONNECT, NbdImage, RECV, RETRY_MAX, RETRY_MIN, SEND, STAY_AWAY};
use crate::image::{Cx, Image, token};
use crate::io::{Chore, Op};

impl NbdImage {
    /// Gives a connection up. What it owes is sent again on another one.
    pub(super) fn lose(&mut self, cx: &mut Cx, at: usize, why: &str) {
        let link = &mut self.links[at];
        if link.state != State::Up {
            return self.settle(cx, at);
        }
        link.state = State::Ending;
        self.look_no_more(cx);
        self.witnesses.lost();
        let forgotten = self.durability.lost(at);
        if forgotten {
            self.forgotten = Some(Loss::ServerAway);
        }
        // Of an image that leaves, it is asked for as long as somebody is to be told.
        let is_news = match self.closing {
            true => forgotten && self.line.is_some(),
            false => forgotten || !self.is_in_reach(),
        };
        if is_news {
            self.tell_news(cx);
        }
        let link = &mut self.links[at];
        let (receiving, sending) = (link.receiving, link.message.is_none());
        if !self.closing {
            self.counters.lost += 1;
            tracing::warn!(
                uri = %self.uri, connection = at, reason = why, lost = self.counters.lost,
                unanswered = self.links[at].outstanding, forgotten,
                "lost a connection to the NBD server; connecting again"
            );
        }
        if receiving {
            cx.io.cancel(self.token(at, RECV));
        }
        if sending {
            cx.io.cancel(self.token(at, SEND));
        }
        self.settle(cx, at);
    }

    /// Goes on with a connection that was given up, when the kernel has let go
    /// of it.
    pub(super) fn settle(&mut self, cx: &mut Cx, at: usize) {
        let link = &mut self.links[at];
        if link.state != State::Ending || link.receiving || link.message.is_none() {
            return;
        }
        link.fd = None;
        link.outstanding = 0;
        self.take_back(cx, at);
        self.retry_later(cx, at);
        self.pump(cx);
    }

    /// Puts the requests of a lost connection back into the queue, in their
    /// order; those of an operation that has failed anyway are done. So are flushes: what
    /// is to be flushed now, and where, is looked up anew.
    fn take_back(&mut self, cx: &mut Cx, at: usize) {
        let own = std::mem::take(&mut self.links[at].own);
        let mut keys: Vec<(u64, u32)> = self
            .parts
            .iter()
            .filter(|(_, part)| part.link == Some(at))
            .map(|(key, part)| (part.cookie, key))
            .collect();
        keys.sort_unstable();
        let (over, again): (Vec<u32>, Vec<u32>) =
            keys.into_iter().map(|(_, key)| key).partition(|key| self.is_over(*key));
        // First all that are sent again: what ends below may let newer ones go on.
        for key in again.into_iter().rev() {
            let Some(part) = self.parts.get_mut(key) else { continue };
            if let Some(flight) = self.flights.get_mut(part.flight) {
                flight.resent |= flight::changes(&flight.op).is_some();
            }
            part.reset();
            self.queue.push_front(key);
            self.counters.resent += 1;
        }
        for key in over.into_iter().chain(own) {
            self.finish(cx, key);
        }
        self.recut(cx);
    }

    /// Whether a request of a lost connection is not sent again.
    fn is_over(&self, key: u32) -> bool {
        self.parts.get(key).is_none_or(|part| {
            let flight = self.flights.get(part.flight);
            let failed = flight.is_none_or(|flight| flight.error.is_some());
            failed || part.answered || part.flush.is_some()
        })
    }

    /// Plans the next attempt to connect.
    pub(super) fn retry_later(&mut self, cx: &mut Cx, at: usize) {
        let done = self.closing && self.flights.is_empty();
        let others = self.links.iter().any(|link| link.state == State::Up);
        let link = &mut self.links[at];
        if done || (!link.proven && others && link.attempts >= STAY_AWAY) {
            link.state = State::Closed;
            return;
        }
        let pause = RETRY_MIN.0 << link.attempts.min(16);
        let pause = Nanos(pause.min(RETRY_MAX.0));
        link.attempts = link.attempts.saturating_add(1);
        link.state = State::Waiting;
        let token = token(self.id, at as u32);
        link.timer = Some(cx.timers.set(cx.now.plus(pause), token));
    }

    /// Has a helper connect. While the server is gone, one at a time tries: a
    /// host that does not answer holds a helper up for seconds.
    pub(super) fn connect(&mut self, cx: &mut Cx, at: usize) {
        let is_in = |state| self.links.iter().any(|link| link.state == state);
        if is_in(State::Connecting) && !is_in(State::Up) {
            return self.retry_later(cx, at);
        }
        let link = &mut self.links[at];
        if link.state != State::Waiting {
            return;
        }
        link.state = State::Connecting;
        link.outcome = Outcome::default();
        let (outcome, uri) = (link.outcome.clone(), self.uri.clone());
        let (examination, over) = (self.examination(), Arc::clone(&self.over));
        let voucher = self.needs_voucher().then(|| cx.voucher.clone());
        let job = move || {
            let result = connect(&uri);
            let result = result.and_then(|it| examine(it, &examination, &over));
            let result = result.and_then(|it| it.vouched_for(voucher.as_ref(), &uri));
            if let Ok(mut slot) = outcome.lock() {
                *slot = Some(result);
            }
            Ok(0)
        };
        let token = self.token(at, CONNECT);
        let (crew, chore) = (Arc::clone(&self.crew), Chore::Connect);
        let op = Op::Blocking { crew, chore, job: Some(Box::new(job)) };
        cx.io.submit(token, op);
    }

    /// The helper is back.
    pub(super) fn connected(&mut self, cx: &mut Cx, at: usize) {
        let link = &mut self.links[at];
        link.state = State::Waiting;
        let result = link.outcome.lock().ok().and_then(|mut slot| slot.take());
        let attempts = link.attempts;
        let reason = match result {
            _ if self.closing && self.flights.is_empty() => {
                self.links[at].state = State::Closed;
                return;
            }
            Some(Ok(examined)) => match self.may_be_used(cx, &examined) {
                Ok(standing) => {
                    if self.links[at].proven {
                        tracing::info!(
                            uri = %self.uri, connection = at, attempts,
                            resent = self.counters.resent,
                            "the NBD server answers again"
                        );
                    }
                    if standing == Standing::Older {
                        self.goes_back(cx);
                    }
                    return self.come_up(cx, at, examined.connected);
                }
                Err(reason) => reason,
            },
            Some(Err(error)) => error.to_string(),
            None => "cannot start a helper thread".into(),
        };
        // Once for each reason, not once a second.
        if self.complaint.as_ref() == Some(&reason) {
            tracing::debug!(uri = %self.uri, connection = at, attempts, reason, "cannot connect");
        } else {
            tracing::warn!(uri = %self.uri, connection = at, reason, "cannot connect");
            self.complaint = Some(reason);
        }
        self.retry_later(cx, at);
    }

    /// Whether a connection may be used, and what it leads to; or why not.
    fn may_be_used(
        &mut self,
        cx: &mut Cx,
        examined: &Examined,
    ) -> Result<Standing, String> {
        if let Some(lack) = self.lack_of(&examined.connected.negotiated.session) {
            self.comes_with(cx, lack);
            return Err(format!("the export {lack}"));
        }
        self.lack = None;
        // The others were lost while this one was made.
        if self.needs_voucher() && examined.vouched.is_none() {
            return Err("nobody was asked what it leads to".into());
        }
        self.recognise(examined).map_err(|reason| {
            self.is_another(cx, &reason);
            format!("another export answers: {reason}")
        })
    }

    /// When closing and nothing is under way: ends the connections, politely.
    pub(super) fn say_goodbye(&mut self, cx: &mut Cx) {
        if !self.closing || self.in_flight() > 0 {
            return;
        }
        for at in 0..self.links.len() {
            match self.links[at].state {
                State::Up if self.links[at].can_send() => self.leave(cx, at),
                State::Waiting => {
                    if let Some(timer) = self.links[at].timer.take() {
                        cx.timers.cancel(timer);
                    }
                    self.links[at].state = State::Closed;
                }
                _ => {}
            }
        }
    }

    /// Tells the server goodbye, and stops receiving.
    fn leave(&mut self, cx: &mut Cx, at: usize) {
        let head = sterna_nbd::Command::Disconnect.request(0).encode();
        let link = &mut self.links[at];
        let (Some(mut message), Some(fd)) = (link.message.take(), link.fd.clone()) else {
            return;
        };
        message.head(|bytes| bytes.extend_from_slice(&head));
        link.state = State::Ending;
        let receiving = link.receiving;
        cx.io.submit(self.token(at, SEND), Op::Send { fd, message });
        if receiving {
            cx.io.cancel(self.token(at, RECV));
        }
    }
}
