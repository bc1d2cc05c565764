//! What a mover does in the moments that went wrong once in a world of `mover_chaos`,
//! question by question.

use sterna_core::Nanos;
use sterna_core::mover::{
    Action, At, Copy, Doubt, Ended, Event, Failure, GivenUp, Job, Mover, MoverStep,
    Owner, Place, Rest, Setup, Tidied, Verdict, Why, Wishes,
};

/// One move, and the question that its mover has open.
struct Told {
    mover: Mover,
    open: Action,
}

impl Told {
    /// A move that an earlier daemon has left, and that copies.
    fn copying(owner: Owner, place: Place) -> Told {
        let mover = Mover::new(Setup {
            owner,
            place,
            step: MoverStep::Copying,
            wishes: Wishes::default(),
            copy: Copy::Unknown,
            resumed: true,
        });
        let mut told = Told { mover, open: Action::Over };
        told.tell(Event::Start);
        told.asks(&Action::ReadWishes, Event::Wished(Some(Wishes::default())));
        told
    }

    fn tell(&mut self, event: Event) {
        let mut out = Vec::new();
        self.mover.handle(Nanos(0), event, &mut out);
        let is_question =
            |action: &Action| !matches!(action, Action::Tell(_) | Action::Know);
        let mut questions = out.into_iter().filter(is_question);
        self.open = questions.next().expect("a question");
        assert_eq!(questions.next(), None, "two questions at a time");
    }

    /// The mover asks that, and is answered so.
    fn asks(&mut self, question: &Action, answer: Event) -> &mut Told {
        assert_eq!(self.open, *question);
        self.tell(answer);
        self
    }

    /// The mover waits, and the time has come.
    fn waits(&mut self) -> &mut Told {
        assert!(matches!(self.open, Action::Wait(_)), "{:?}", self.open);
        self.tell(Event::Woken);
        self
    }

    /// QEMU does not answer, so the disk stays, and that is durable.
    fn ends_as_silent(&mut self, rest: Rest) -> &mut Told {
        let why = Why::Vm("no answer".into());
        let stays = Verdict::Stays { why, still: Some(silent()), rest };
        self.asks(&Action::Close(stays), Event::Stored(Ok(())))
    }
}

fn silent() -> Failure {
    Failure::Silent("no answer".into())
}

/// A daemon has seen the disk at the destination, as somebody else had QEMU switch over,
/// and is killed before that is durable. The next one finds QEMU silent: gives its mover.
fn is_silent_after_a_sight_that_is_not_durable(owner: Owner, place: Place) -> Told {
    let mut killed = Told::copying(owner, place);
    killed
        .asks(&Action::Look, Event::Looked(Ok(Job::Ended(Ended::Clean))))
        .asks(&Action::Find, Event::Found(Ok(At::Destination)));
    assert_eq!(killed.open, Action::Record(MoverStep::Switching));
    let mut next = Told::copying(owner, place);
    next.asks(&Action::Look, Event::Looked(Err(silent())));
    next
}

#[test]
fn a_disk_that_only_a_killed_daemon_saw_switched_over_is_kept_and_said_to_be_in_doubt() {
    let mut told = is_silent_after_a_sight_that_is_not_durable(Owner::Qemu, Place::Disk);
    told.ends_as_silent(Rest::Kept)
        .waits()
        .asks(&Action::GiveUp, Event::GaveUp(Ok(GivenUp::Something)))
        .asks(&Action::Find, Event::Found(Ok(At::Destination)))
        .asks(&Action::Seal, Event::Sealed(Ok(true)));
    assert_eq!(told.open, Action::RecordTidy(Tidied::Unclear(Doubt::Unseen)));
}

#[test]
fn a_file_that_only_a_killed_daemon_saw_switched_over_is_kept_and_said_to_be_in_doubt() {
    let mut told =
        is_silent_after_a_sight_that_is_not_durable(Owner::Libvirt, Place::File);
    told.ends_as_silent(Rest::Kept)
        .waits()
        .asks(&Action::GiveUp, Event::GaveUp(Ok(GivenUp::Nothing)))
        .asks(&Action::Find, Event::Found(Ok(At::Destination)));
    assert_eq!(told.open, Action::RecordTidy(Tidied::Unclear(Doubt::Unseen)));
}

#[test]
fn a_copy_of_a_vm_that_ends_after_it_was_silent_is_kept() {
    let mut told = Told::copying(Owner::Qemu, Place::File);
    let job = Job::Copying { done: 0, total: 99 };
    told.asks(&Action::Look, Event::Looked(Ok(job.clone())))
        .asks(&Action::Watch(Some(job)), Event::Watched(Err(silent())))
        .ends_as_silent(Rest::Later)
        .waits();
    // Meanwhile somebody has started the VM with the copy, and it has ended.
    let nobody = Failure::Nobody("nobody listens".into());
    told.asks(&Action::GiveUp, Event::GaveUp(Err(nobody)));
    assert_eq!(told.open, Action::RecordTidy(Tidied::Stays(Rest::Kept)));
}
