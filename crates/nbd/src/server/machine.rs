//! The state machine of a server's handshake. See the parent module for its rules.

use std::mem;

use super::{Closed, ExportQuestion, Purpose, Ready, ServerStep, answer};
use crate::codec::Reader;
use crate::error::OptionError;
use crate::export::{Export, ListEntry};
use crate::input::Input;
use crate::limits::{EXPORT_SIZE_MAX, OPTION_DRAIN_MAX, OPTION_LEN_MAX, OPTIONS_MAX};
use crate::option::{BadMeta, InfoOption, MetaOption, OptionHead, export_name};
use crate::session::Session;
use crate::wire;

/// The id we give `base:allocation`. Any number would do; not zero, so that a reply
/// with a forgotten id is noticed.
const ALLOCATION_ID: u32 = 1;

/// The handshake of one connection, as its server.
#[derive(Debug)]
pub struct ServerHandshake {
    input: Input,
    output: Vec<u8>,
    state: State,
    fixed: bool,
    no_zeroes: bool,
    structured: bool,
    /// The export for which `base:allocation` is selected.
    selected: Option<String>,
    options: u32,
}

#[derive(Debug)]
enum State {
    ClientFlags,
    Option,
    /// Dropping the rest of an option that is too long.
    Drain {
        option: u32,
        left: usize,
    },
    Ask(Ask),
    AskList,
    Ready(Box<Ready>),
    Closed(Closed),
}

/// An option that waits for the caller's answer about an export.
#[derive(Debug, Clone)]
enum Ask {
    Info { option: u32, wants: InfoOption },
    ExportName { name: String },
    Meta { option: u32, wants: MetaOption },
}

impl Default for ServerHandshake {
    fn default() -> Self {
        Self::new()
    }
}

impl ServerHandshake {
    /// A new connection; its first step is to send the greeting.
    #[must_use]
    pub fn new() -> Self {
        Self {
            input: Input::default(),
            output: answer::greeting(),
            state: State::ClientFlags,
            fixed: false,
            no_zeroes: false,
            structured: false,
            selected: None,
            options: 0,
        }
    }

    /// How many bytes [`push`](Self::push) takes at the moment. Never zero after
    /// [`ServerStep::Receive`].
    #[must_use]
    pub fn room(&self) -> usize {
        self.input.room()
    }

    /// Takes bytes from the client, as many as there is [`room`](Self::room) for, and
    /// says how many. The rest must be pushed again later.
    #[must_use = "bytes that were not taken must be pushed again"]
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        self.input.push(bytes)
    }

    /// Advances as far as possible and says what to do next. Asking again without
    /// doing it gives the same question again.
    pub fn step(&mut self) -> ServerStep {
        loop {
            if !self.output.is_empty() {
                return ServerStep::Send(mem::take(&mut self.output));
            }
            let progress = match &self.state {
                State::ClientFlags => self.client_flags(),
                State::Option => self.option(),
                State::Drain { .. } => self.drain(),
                State::Ask(ask) => return ServerStep::NeedExport(ask.question()),
                State::AskList => return ServerStep::NeedList,
                State::Ready(_) => return self.hand_over(),
                State::Closed(why) => return ServerStep::Closed(*why),
            };
            if !progress {
                return ServerStep::Receive;
            }
        }
    }

    /// Answers [`ServerStep::NeedExport`]. Without such a question it does nothing.
    pub fn answer_export(&mut self, answer: Result<Export, OptionError>) {
        let State::Ask(ask) = &self.state else { return };
        let ask = ask.clone();
        self.state = State::Option;
        let answer = answer.and_then(|export| {
            if export.size > EXPORT_SIZE_MAX {
                Err(OptionError::Platform)
            } else {
                Ok(export)
            }
        });
        match ask {
            Ask::Info { option, wants } => self.answer_info(option, &wants, answer),
            Ask::ExportName { name } => self.answer_export_name(name, answer),
            Ask::Meta { option, wants } => self.answer_meta(option, &wants, answer),
        }
    }

    /// Answers [`ServerStep::NeedList`]. Without such a question it does nothing.
    pub fn answer_list(&mut self, answer: Result<Vec<ListEntry>, OptionError>) {
        if !matches!(self.state, State::AskList) {
            return;
        }
        self.state = State::Option;
        match answer {
            Ok(exports) => answer::list(&mut self.output, &exports),
            Err(error) => self.refuse(wire::OPT_LIST, error, &error.to_string()),
        }
    }

    fn client_flags(&mut self) -> bool {
        let Some(flags) = Reader::new(&self.input).u32() else { return false };
        self.input.skip(wire::CLIENT_FLAGS_LEN);
        if flags & !(wire::FLAG_C_FIXED_NEWSTYLE | wire::FLAG_C_NO_ZEROES) != 0 {
            return self.close(Closed::ClientFlags(flags));
        }
        self.fixed = flags & wire::FLAG_C_FIXED_NEWSTYLE != 0;
        self.no_zeroes = flags & wire::FLAG_C_NO_ZEROES != 0;
        self.state = State::Option;
        true
    }

    /// One whole option, if it is there.
    fn option(&mut self) -> bool {
        let Some(head) = self.input.first_chunk() else {
            return false;
        };
        let Some(OptionHead { option, len }) = OptionHead::parse(head) else {
            return self.close(Closed::BadMagic);
        };
        if self.options >= OPTIONS_MAX {
            return self.close(Closed::TooManyOptions);
        }
        if !self.fixed && option != wire::OPT_EXPORT_NAME {
            return self.close(Closed::NotFixedNewstyle { option });
        }
        let data_len = len as usize;
        if data_len > OPTION_LEN_MAX {
            // EXPORT_NAME has no error reply, so reading on would be for nothing.
            if len > OPTION_DRAIN_MAX || option == wire::OPT_EXPORT_NAME {
                return self.close(Closed::OptionTooLong { option, len });
            }
            self.options += 1;
            self.input.skip(wire::OPTION_HEAD_LEN);
            self.state = State::Drain { option, left: data_len };
            return true;
        }
        let Some(data) = self.input.message(wire::OPTION_HEAD_LEN, data_len) else {
            return false;
        };
        self.options += 1;
        self.serve(option, &data);
        true
    }

    fn serve(&mut self, option: u32, data: &[u8]) {
        let bare = matches!(
            option,
            wire::OPT_LIST | wire::OPT_STARTTLS | wire::OPT_STRUCTURED_REPLY
        );
        if bare && !data.is_empty() {
            let message = "this option has no data";
            return self.refuse(option, OptionError::Invalid, message);
        }
        match option {
            wire::OPT_EXPORT_NAME => match export_name(data) {
                Some(name) => self.state = State::Ask(Ask::ExportName { name }),
                None => self.state = State::Closed(Closed::BadExportName),
            },
            wire::OPT_ABORT => {
                answer::ack(&mut self.output, option);
                self.state = State::Closed(Closed::Aborted);
            }
            wire::OPT_LIST => self.state = State::AskList,
            wire::OPT_INFO | wire::OPT_GO => match InfoOption::parse(data) {
                Some(wants) => self.state = State::Ask(Ask::Info { option, wants }),
                None => self.refuse(option, OptionError::Invalid, "malformed option"),
            },
            wire::OPT_STRUCTURED_REPLY => {
                self.structured = true;
                answer::ack(&mut self.output, option);
            }
            wire::OPT_LIST_META_CONTEXT | wire::OPT_SET_META_CONTEXT => {
                self.serve_meta(option, data);
            }
            wire::OPT_STARTTLS => {
                self.refuse(option, OptionError::Unsup, "TLS is not supported");
            }
            _ => self.refuse(option, OptionError::Unsup, "unknown option"),
        }
    }

    fn serve_meta(&mut self, option: u32, data: &[u8]) {
        if option == wire::OPT_SET_META_CONTEXT {
            // Replaces the selection even if it fails.
            self.selected = None;
        }
        if !self.structured {
            let message = "structured replies must be agreed on first";
            return self.refuse(option, OptionError::Invalid, message);
        }
        match MetaOption::parse(data) {
            Ok(wants) => self.state = State::Ask(Ask::Meta { option, wants }),
            Err(BadMeta::Malformed) => {
                self.refuse(option, OptionError::Invalid, "malformed option");
            }
            Err(BadMeta::TooMany) => {
                self.refuse(option, OptionError::TooBig, "too many queries");
            }
        }
    }

    fn drain(&mut self) -> bool {
        let State::Drain { option, left } = &mut self.state else {
            return true;
        };
        let dropped = self.input.len().min(*left);
        self.input.skip(dropped);
        *left -= dropped;
        if *left > 0 {
            return false;
        }
        let option = *option;
        self.state = State::Option;
        if option == wire::OPT_SET_META_CONTEXT {
            self.selected = None;
        }
        self.refuse(option, OptionError::TooBig, "the option is too long");
        true
    }

    fn answer_info(
        &mut self,
        option: u32,
        wants: &InfoOption,
        answer: Result<Export, OptionError>,
    ) {
        let export = match answer {
            Ok(export) => export,
            Err(error) => return self.refuse(option, error, &error.to_string()),
        };
        let session = self.session(&wants.name, &export, wants.wants_block_sizes);
        answer::info(&mut self.output, option, wants, &export, &session);
        if export.block_sizes_required && !wants.wants_block_sizes {
            let error = OptionError::BlockSizeRequired;
            return self.refuse(option, error, &error.to_string());
        }
        answer::ack(&mut self.output, option);
        if option == wire::OPT_GO {
            self.finish(wants.name.clone(), session);
        }
    }

    fn answer_export_name(&mut self, name: String, answer: Result<Export, OptionError>) {
        let refused = match answer {
            Ok(export) if export.block_sizes_required => OptionError::BlockSizeRequired,
            Ok(export) => {
                let session = self.session(&name, &export, false);
                answer::export_name(&mut self.output, &session, self.no_zeroes);
                return self.finish(name, session);
            }
            Err(error) => error,
        };
        self.state = State::Closed(Closed::ExportRefused(refused));
    }

    fn answer_meta(
        &mut self,
        option: u32,
        wants: &MetaOption,
        answer: Result<Export, OptionError>,
    ) {
        let export = match answer {
            Ok(export) => export,
            Err(error) => return self.refuse(option, error, &error.to_string()),
        };
        let set = option == wire::OPT_SET_META_CONTEXT;
        let wanted = wants.allocation || (!set && (wants.no_query || wants.wildcard));
        if wanted && export.allocation {
            if set {
                self.selected = Some(wants.name.clone());
            }
            // In a list the id is reserved and zero.
            let id = if set { ALLOCATION_ID } else { 0 };
            answer::meta_context(&mut self.output, option, id);
        }
        answer::ack(&mut self.output, option);
    }

    /// What has been agreed on, should the client choose this export now.
    fn session(&self, name: &str, export: &Export, sizes_asked: bool) -> Session {
        let sizes = export.block_sizes;
        let selected = self.selected.as_deref() == Some(name) && export.allocation;
        Session {
            size: export.size,
            flags: export.flags.announced(self.structured),
            block_sizes: if sizes_asked { sizes } else { sizes.without_minimum() },
            structured: self.structured,
            allocation: selected.then_some(ALLOCATION_ID),
        }
    }

    /// Ends the handshake; what has arrived since belongs to the transmission phase.
    fn hand_over(&mut self) -> ServerStep {
        let finished = State::Closed(Closed::Finished);
        match mem::replace(&mut self.state, finished) {
            State::Ready(mut ready) => {
                ready.leftover = self.input.leftover();
                ServerStep::Ready(ready)
            }
            other => {
                self.state = other;
                ServerStep::Receive
            }
        }
    }

    fn finish(&mut self, name: String, session: Session) {
        self.state =
            State::Ready(Box::new(Ready { name, session, leftover: Vec::new() }));
    }

    fn refuse(&mut self, option: u32, error: OptionError, message: &str) {
        answer::error(&mut self.output, option, error, message);
    }

    fn close(&mut self, why: Closed) -> bool {
        self.input = Input::default();
        self.state = State::Closed(why);
        true
    }
}

impl Ask {
    fn question(&self) -> ExportQuestion {
        let (name, purpose) = match self {
            Self::Info { option: wire::OPT_GO, wants } => (&wants.name, Purpose::Go),
            Self::Info { wants, .. } => (&wants.name, Purpose::Info),
            Self::ExportName { name } => (name, Purpose::Go),
            Self::Meta { wants, .. } => (&wants.name, Purpose::MetaContext),
        };
        ExportQuestion { name: name.clone(), purpose }
    }
}
