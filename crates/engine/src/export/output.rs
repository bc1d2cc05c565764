//! The replies of a connection on their way out.
//!
//! Replies gather in one message while another is being sent; when that has
//! left, everything that has gathered leaves at once.

use std::collections::VecDeque;

use crate::buffer::Slice;
use crate::image::Cx;
use crate::io::{Fd, Message, Op, Token};

use super::MESSAGE_BYTES;

/// Head bytes of a message that are kept for the next one.
const HEAD_KEPT: usize = 16 << 10;

#[derive(Default)]
pub(super) struct Output {
    filling: Batch,
    full: VecDeque<Batch>,
    /// What the message on its way owes; `None` if none is.
    sending: Option<Debt>,
    spare: Option<Box<Message>>,
    /// Replies in all of them.
    replies: usize,
}

#[derive(Default)]
struct Batch {
    message: Box<Message>,
    debt: Debt,
}

/// What is settled when a message has left.
#[derive(Clone, Copy, Default)]
struct Debt {
    replies: usize,
    /// Memory of the connection's account.
    cost: usize,
}

impl Output {
    /// Appends (a part of) a reply. `cost` is given back when it has left.
    pub(super) fn push(&mut self, head: &[u8], payload: Option<Slice>, cost: usize) {
        let Batch { message, debt } = &mut self.filling;
        message.head(|out| out.extend_from_slice(head));
        if let Some(payload) = payload {
            message.payload(payload);
        }
        debt.cost += cost;
        debt.replies += 1;
        self.replies += 1;
        if message.len() >= MESSAGE_BYTES || !message.has_room() {
            let message = self.spare.take().unwrap_or_default();
            let batch = Batch { message, debt: Debt::default() };
            self.full.push_back(std::mem::replace(&mut self.filling, batch));
        }
    }

    /// Replies that have not left.
    pub(super) fn replies(&self) -> usize {
        self.replies
    }

    /// Whether a message is on its way.
    pub(super) fn sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Nothing is left to send.
    pub(super) fn is_empty(&self) -> bool {
        self.sending.is_none() && self.full.is_empty() && self.filling.message.is_empty()
    }

    /// Sends the next message, if there is one and none is on its way.
    pub(super) fn flush(&mut self, cx: &mut Cx, fd: &Fd, token: Token) {
        if self.sending.is_some() {
            return;
        }
        let batch = match self.full.pop_front() {
            Some(batch) => batch,
            None if self.filling.message.is_empty() => return,
            None => {
                let message = self.spare.take().unwrap_or_default();
                std::mem::replace(
                    &mut self.filling,
                    Batch { message, debt: Debt::default() },
                )
            }
        };
        self.sending = Some(batch.debt);
        cx.io.submit(token, Op::Send { fd: fd.clone(), message: batch.message });
    }

    /// A message has left (or never will). Says what to give back to the account.
    pub(super) fn sent(&mut self, mut message: Box<Message>) -> usize {
        message.clear(HEAD_KEPT);
        self.spare = Some(message);
        let debt = self.sending.take().unwrap_or_default();
        self.replies -= debt.replies;
        debt.cost
    }

    /// Drops what has not been sent. Says what to give back to the account.
    pub(super) fn discard(&mut self) -> usize {
        let mut cost = 0;
        for batch in self.full.drain(..).chain([std::mem::take(&mut self.filling)]) {
            cost += batch.debt.cost;
            self.replies -= batch.debt.replies;
        }
        cost
    }
}
