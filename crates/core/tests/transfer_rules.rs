//! What a transfer does in the moments that went wrong once, question by question.

use sterna_core::Nanos;
use sterna_core::transfer::{
    Action, End, Event, Failure, Guest, Left, Loss, Rest, Sent, Setup, Stand, Step,
    Transfer, Verdict, Why,
};

/// One transfer, and the question that it has open.
struct Told {
    transfer: Transfer,
    open: Action,
}

impl Told {
    /// One that an earlier daemon has left.
    fn left_at(step: Step) -> Told {
        let setup = Setup { step, cancel: false, by_program: false, resumed: true };
        let mut told = Told { transfer: Transfer::new(setup), open: Action::Over };
        told.tell(Event::Start);
        told
    }

    fn tell(&mut self, event: Event) {
        let mut out = Vec::new();
        self.transfer.handle(Nanos(0), event, &mut out);
        let is_question =
            |action: &Action| !matches!(action, Action::Tell(_) | Action::Arrived);
        if let Some(open) = out.into_iter().rfind(is_question) {
            self.open = open;
        }
    }

    /// It asks that, and is answered so.
    fn asks(&mut self, question: &Action, answer: Event) -> &mut Told {
        assert_eq!(self.open, *question);
        self.tell(answer);
        self
    }

    fn sent(&mut self, sent: Sent) -> &mut Told {
        self.asks(&Action::AskSent, Event::Sent(Ok(sent)))
    }

    fn left(&mut self, left: Left) -> &mut Told {
        self.asks(&Action::AskLeft, Event::Left(Ok(left)))
    }

    fn stands(&mut self, stand: Stand) -> &mut Told {
        self.asks(&Action::AskStand, Event::Stands(Ok(stand)))
    }

    fn is_taken_back(&mut self) -> &mut Told {
        self.asks(&Action::TakeBack, Event::Stored(Ok(())))
            .asks(&Action::GiveUp, Event::Done(Ok(())))
    }
}

fn nobody() -> Failure {
    Failure::Nobody("nobody listens".into())
}

fn under_way() -> Sent {
    Sent::UnderWay { passes: 1, paused: false }
}

#[test]
fn it_is_durable_that_a_guest_is_taken_back_before_its_qemu_is_told() {
    let mut told = Told::left_at(Step::Copying);
    told.tell(Event::Cancel);
    told.sent(under_way()).is_taken_back();
}

#[test]
fn what_the_receiver_has_of_a_guest_that_was_taken_back_is_never_run() {
    // Its QEMU may have run it since, and has ended.
    let mut told = Told::left_at(Step::Returning);
    told.asks(&Action::GiveUp, Event::Done(Err(nobody())))
        .stands(Stand::Has(Guest::Still))
        .asks(&Action::Quit(End::Receiver), Event::Quit(true));
    let Action::Close(Verdict::Lost(Loss::Ended { .. }, Rest::Gone)) = told.open else {
        panic!("{:?}", told.open);
    };
}

#[test]
fn a_guest_that_somebody_has_run_at_the_receiver_is_not_run_at_the_source() {
    let mut told = Told::left_at(Step::Copying);
    told.tell(Event::Cancel);
    told.sent(Sent::All).left(Left::Stands).stands(Stand::Has(Guest::Runs));
    assert_eq!(told.open, Action::Commit { heeds: false });
    let mut told = Told::left_at(Step::Copying);
    told.tell(Event::Cancel);
    told.sent(under_way())
        .is_taken_back()
        .sent(Sent::All)
        .left(Left::Stands)
        .stands(Stand::Has(Guest::Runs));
    assert_eq!(told.open, Action::Commit { heeds: false });
}

#[test]
fn a_commit_that_failed_is_taken_back_before_the_source_runs_the_guest() {
    let mut told = Told::left_at(Step::Copying);
    let why = || "the state fails".to_owned();
    told.sent(Sent::All)
        .left(Left::Stands)
        .stands(Stand::Has(Guest::Still))
        .asks(&Action::Commit { heeds: true }, Event::Committed(Err(why())))
        .asks(&Action::TakeBack, Event::Stored(Err(why())));
    assert!(matches!(told.open, Action::Wait(_)));
    told.tell(Event::Woken);
    told.is_taken_back()
        .sent(Sent::All)
        .left(Left::Stands)
        .stands(Stand::Has(Guest::Still))
        .asks(&Action::Quit(End::Receiver), Event::Quit(true))
        .asks(&Action::GoOn(End::Source), Event::Done(Ok(())));
    assert!(matches!(told.open, Action::Close(Verdict::Stays { .. })));
}

#[test]
fn another_qemu_at_the_receivers_socket_is_neither_taken_for_it_nor_told_to_run() {
    let mut told = Told::left_at(Step::Copying);
    told.sent(Sent::All)
        .left(Left::Stands)
        .stands(Stand::Stranger(Guest::Still))
        .is_taken_back()
        .sent(Sent::All)
        .left(Left::Stands)
        .stands(Stand::Stranger(Guest::Still))
        .asks(&Action::GoOn(End::Source), Event::Done(Ok(())));
    let stays = Verdict::Stays { why: Why::Replaced, stands: None, rest: Rest::Spared };
    assert_eq!(told.open, Action::Close(stays));
    let mut told = Told::left_at(Step::Committed);
    told.stands(Stand::Stranger(Guest::Still)).left(Left::Stands);
    assert!(matches!(told.open, Action::Close(Verdict::Lost(Loss::MayHaveRun(_), _))));
}

#[test]
fn a_receiver_that_ends_before_it_is_told_to_run_the_guest_leaves_it_to_the_source() {
    let mut told = Told::left_at(Step::Copying);
    told.sent(Sent::All)
        .left(Left::Stands)
        .stands(Stand::Has(Guest::Still))
        .asks(&Action::Commit { heeds: true }, Event::Committed(Ok(true)))
        .asks(&Action::AskStand, Event::Stands(Err(nobody())))
        .is_taken_back();
}

#[test]
fn a_guest_that_has_come_is_not_lost_with_a_source_that_ends_as_it_is_looked_at() {
    let mut told = Told::left_at(Step::Copying);
    told.sent(Sent::All)
        .asks(&Action::AskLeft, Event::Left(Err(nobody())))
        .asks(&Action::AskStand, Event::Stands(Err(Failure::Silent("hangs".into()))));
    // It may have all of it.
    assert!(matches!(told.open, Action::Wait(_)));
}

#[test]
fn a_guest_that_somebody_pauses_while_it_is_sent_stays() {
    let mut told = Told::left_at(Step::Copying);
    told.sent(Sent::UnderWay { passes: 1, paused: true })
        .is_taken_back()
        .sent(Sent::Stayed(None))
        .left(Left::Otherwise("paused".into()))
        .stands(Stand::Awaits)
        .asks(&Action::Quit(End::Receiver), Event::Quit(true))
        .left(Left::Otherwise("paused".into()));
    let stands = Some("paused".to_owned());
    let stays = Verdict::Stays { why: Why::Paused, stands, rest: Rest::Gone };
    assert_eq!(told.open, Action::Close(stays));
}
