//! The state machine of a client's handshake.
//!
//! The order: greeting, client flags, `STRUCTURED_REPLY`, `SET_META_CONTEXT` for
//! `base:allocation`, `GO` with a request for the block sizes. Each of the first two
//! options may be refused, and the handshake goes on without. Where `GO` is unknown
//! (`ERR_UNSUP`), or the server is not *fixed* newstyle, `EXPORT_NAME` follows.
//!
//! # Failure cases
//!
//! A refusal that ends the handshake is answered with `ABORT`, as the specification
//! asks, and then reported. After a violation the connection is just dropped. A server
//! that closes the connection: [`ClientHandshake::end_of_input`] says what that means.

use std::mem;

use super::error::{ClientError, Violation};
use super::step::{ClientConfig, ClientReady, ClientStep, Negotiated};
use crate::block_sizes::BlockSizes;
use crate::codec::{Reader, string};
use crate::error::OptionError;
use crate::flags::TransmissionFlags;
use crate::input::Input;
use crate::limits::{EXPORT_SIZE_MAX, OPTION_REPLIES_MAX, OPTION_REPLY_MAX};
use crate::option::{InfoOption, MetaOption, OptionReplyHead, put_option};
use crate::session::Session;
use crate::wire;

/// The handshake of one connection, as its client.
#[derive(Debug)]
pub struct ClientHandshake {
    config: ClientConfig,
    input: Input,
    output: Vec<u8>,
    state: State,
    no_zeroes: bool,
    structured: bool,
    allocation: Option<u32>,
    /// Replies to the option that is under way.
    replies: u32,
    info: Info,
}

/// The information of `GO` as it comes in.
#[derive(Debug, Default)]
struct Info {
    export: Option<(u64, TransmissionFlags)>,
    block_sizes: Option<BlockSizes>,
    name: Option<String>,
    description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Greeting,
    /// Waiting for the replies to this option.
    Replies(u32),
    /// Waiting for the answer to `EXPORT_NAME`.
    ExportName,
    Ready(Box<Negotiated>),
    Failed(ClientError),
}

/// Whether a state function got what it needs.
type Progress = Result<bool, ClientError>;

impl ClientHandshake {
    /// A new connection. A name that is no string of the protocol fails at the first
    /// step.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        let state = match string(config.export.as_bytes()) {
            Some(_) => State::Greeting,
            None => State::Failed(ClientError::BadName),
        };
        Self {
            config,
            input: Input::default(),
            output: Vec::new(),
            state,
            no_zeroes: false,
            structured: false,
            allocation: None,
            replies: 0,
            info: Info::default(),
        }
    }

    /// How many bytes [`push`](Self::push) takes at the moment. Never zero after
    /// [`ClientStep::Receive`].
    #[must_use]
    pub fn room(&self) -> usize {
        self.input.room()
    }

    /// Takes bytes from the server, as many as there is [`room`](Self::room) for, and
    /// says how many. The rest must be pushed again later.
    #[must_use = "bytes that were not taken must be pushed again"]
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        self.input.push(bytes)
    }

    /// Advances as far as possible and says what to do next.
    pub fn step(&mut self) -> ClientStep {
        loop {
            if !self.output.is_empty() {
                return ClientStep::Send(mem::take(&mut self.output));
            }
            let progress = match &self.state {
                State::Greeting => self.greeting(),
                State::Replies(option) => self.reply(*option),
                State::ExportName => self.export_name(),
                State::Ready(_) => return self.hand_over(),
                State::Failed(error) => return ClientStep::Failed(error.clone()),
            };
            match progress {
                Ok(true) => {}
                Ok(false) => return ClientStep::Receive,
                Err(error) => self.state = State::Failed(error),
            }
        }
    }

    /// What it means that the server closed the connection now.
    #[must_use]
    pub fn end_of_input(&self) -> ClientError {
        match &self.state {
            State::ExportName if self.input.is_empty() => ClientError::ExportNameRefused,
            State::Failed(error) => error.clone(),
            _ => ClientError::Closed,
        }
    }

    fn greeting(&mut self) -> Progress {
        // Both magics are judged as soon as they are there: an oldstyle server sends
        // more than a greeting and then waits.
        let mut reader = Reader::new(&self.input);
        match reader.u64() {
            None => return Ok(false),
            Some(wire::INIT_MAGIC) => {}
            Some(_) => return Err(ClientError::NotNbd),
        }
        match reader.u64() {
            None => return Ok(false),
            Some(wire::OPTION_MAGIC) => {}
            Some(wire::OLDSTYLE_MAGIC) => return Err(ClientError::Oldstyle),
            Some(_) => return Err(ClientError::NotNbd),
        }
        let Some(flags) = reader.u16() else { return Ok(false) };
        self.input.skip(wire::GREETING_LEN);
        let fixed = flags & wire::FLAG_FIXED_NEWSTYLE != 0;
        self.no_zeroes = flags & wire::FLAG_NO_ZEROES != 0;
        let answer = if fixed { wire::FLAG_C_FIXED_NEWSTYLE } else { 0 }
            | if self.no_zeroes { wire::FLAG_C_NO_ZEROES } else { 0 };
        self.output.extend_from_slice(&answer.to_be_bytes());
        if !fixed {
            self.send_export_name();
        } else if self.config.structured {
            self.send(wire::OPT_STRUCTURED_REPLY, &[]);
        } else {
            self.send_go();
        }
        Ok(true)
    }

    /// One whole reply to an option, if it is there.
    fn reply(&mut self, sent: u32) -> Progress {
        let Some(head) = self.input.first_chunk() else { return Ok(false) };
        let head = OptionReplyHead::parse(head).ok_or(Violation::ReplyMagic)?;
        if head.option != sent {
            return Err(Violation::ReplyOption { got: head.option, sent }.into());
        }
        let len = head.len as usize;
        if len > OPTION_REPLY_MAX {
            return Err(Violation::ReplyTooLong(head.len).into());
        }
        let Some(data) = self.input.message(wire::OPTION_REPLY_HEAD_LEN, len) else {
            return Ok(false);
        };
        self.replies += 1;
        if self.replies > OPTION_REPLIES_MAX {
            return Err(Violation::TooManyReplies.into());
        }
        match (head.kind, OptionError::from_wire(head.kind)) {
            (_, Some(error)) => self.refused(sent, error, &data),
            (wire::REP_ACK, _) if data.is_empty() => self.accepted(sent)?,
            (wire::REP_ACK, _) => return Err(Violation::Malformed.into()),
            (wire::REP_INFO, _) if sent == wire::OPT_GO => self.take_info(&data)?,
            (wire::REP_META_CONTEXT, _) if sent == wire::OPT_SET_META_CONTEXT => {
                self.take_context(&data)?;
            }
            (kind, _) => return Err(Violation::ReplyKind(kind).into()),
        }
        Ok(true)
    }

    fn accepted(&mut self, option: u32) -> Result<(), ClientError> {
        match option {
            wire::OPT_STRUCTURED_REPLY => {
                self.structured = true;
                if self.config.allocation {
                    let data = MetaOption::select_allocation(&self.config.export);
                    self.send(wire::OPT_SET_META_CONTEXT, &data);
                } else {
                    self.send_go();
                }
            }
            wire::OPT_SET_META_CONTEXT => self.send_go(),
            _ => {
                let (size, flags) = self.info.export.ok_or(Violation::NoExportInfo)?;
                self.finish(size, flags)?;
            }
        }
        Ok(())
    }

    fn refused(&mut self, option: u32, error: OptionError, data: &[u8]) {
        match (option, error) {
            // Nothing else will go better.
            (_, OptionError::TlsRequired | OptionError::Shutdown) => {}
            (wire::OPT_STRUCTURED_REPLY, _) => return self.send_go(),
            (wire::OPT_SET_META_CONTEXT, _) => {
                self.allocation = None;
                return self.send_go();
            }
            (wire::OPT_GO, OptionError::Unsup) => return self.send_export_name(),
            _ => {}
        }
        let message = String::from_utf8_lossy(data).into_owned();
        put_option(&mut self.output, wire::OPT_ABORT, &[]);
        self.state = State::Failed(ClientError::refused(error, message));
    }

    fn take_info(&mut self, data: &[u8]) -> Result<(), Violation> {
        let mut reader = Reader::new(data);
        let kind = reader.u16().ok_or(Violation::Malformed)?;
        let text = |bytes| string(bytes).map(str::to_owned).ok_or(Violation::Malformed);
        match kind {
            wire::INFO_EXPORT => {
                let size = reader.u64().ok_or(Violation::Malformed)?;
                let flags = reader.u16().ok_or(Violation::Malformed)?;
                self.info.export = Some((size, TransmissionFlags::from_bits(flags)));
            }
            wire::INFO_BLOCK_SIZE => {
                let mut next = || reader.u32().ok_or(Violation::Malformed);
                let (minimum, preferred, maximum) = (next()?, next()?, next()?);
                self.info.block_sizes = Some(
                    BlockSizes::new(minimum, preferred, maximum)
                        .map_err(Violation::BlockSizes)?,
                );
            }
            wire::INFO_NAME => {
                self.info.name = Some(text(reader.rest())?);
                return Ok(());
            }
            wire::INFO_DESCRIPTION => {
                self.info.description = Some(text(reader.rest())?);
                return Ok(());
            }
            _ => return Ok(()),
        }
        if reader.is_empty() { Ok(()) } else { Err(Violation::Malformed) }
    }

    fn take_context(&mut self, data: &[u8]) -> Result<(), Violation> {
        let mut reader = Reader::new(data);
        let id = reader.u32().ok_or(Violation::Malformed)?;
        if string(reader.rest()).ok_or(Violation::Malformed)? == wire::BASE_ALLOCATION {
            self.allocation = Some(id);
        }
        Ok(())
    }

    fn export_name(&mut self) -> Progress {
        let zeroes = if self.no_zeroes { 0 } else { wire::EXPORT_NAME_ZEROES };
        let mut reader = Reader::new(&self.input);
        let (Some(size), Some(flags)) = (reader.u64(), reader.u16()) else {
            return Ok(false);
        };
        // Zeroes by the specification, but reserved: not looked at.
        if reader.bytes(zeroes).is_none() {
            return Ok(false);
        }
        let used = self.input.len() - reader.rest().len();
        self.input.skip(used);
        self.info = Info::default();
        self.finish(size, TransmissionFlags::from_bits(flags))?;
        Ok(true)
    }

    fn finish(&mut self, size: u64, flags: TransmissionFlags) -> Result<(), Violation> {
        if !flags.has(TransmissionFlags::HAS_FLAGS) {
            return Err(Violation::NoFlags);
        }
        if size > EXPORT_SIZE_MAX {
            return Err(Violation::Size(size));
        }
        let info = mem::take(&mut self.info);
        let session = Session {
            size,
            flags: flags.announced(self.structured),
            block_sizes: info.block_sizes.unwrap_or_default(),
            structured: self.structured,
            allocation: self.allocation,
        };
        self.state = State::Ready(Box::new(Negotiated {
            session,
            block_sizes_told: info.block_sizes.is_some(),
            name: info.name,
            description: info.description,
        }));
        Ok(())
    }

    fn send_go(&mut self) {
        let option = InfoOption {
            name: self.config.export.clone(),
            wants_name: true,
            wants_description: true,
            wants_block_sizes: true,
        };
        self.send(wire::OPT_GO, &option.encode());
    }

    fn send_export_name(&mut self) {
        put_option(
            &mut self.output,
            wire::OPT_EXPORT_NAME,
            self.config.export.as_bytes(),
        );
        self.state = State::ExportName;
    }

    fn send(&mut self, option: u32, data: &[u8]) {
        put_option(&mut self.output, option, data);
        self.replies = 0;
        self.state = State::Replies(option);
    }

    /// Ends the handshake; what has arrived since belongs to the transmission phase.
    fn hand_over(&mut self) -> ClientStep {
        let over = State::Failed(ClientError::Closed);
        match mem::replace(&mut self.state, over) {
            State::Ready(negotiated) => ClientStep::Ready(Box::new(ClientReady {
                negotiated: *negotiated,
                leftover: self.input.leftover(),
            })),
            other => {
                self.state = other;
                ClientStep::Receive
            }
        }
    }
}
