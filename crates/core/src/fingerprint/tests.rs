use std::convert::Infallible;

use super::*;

const SIZE: u64 = 64 << 30;

/// The disk's bytes: each stretch is filled with one byte.
fn taken(size: u64, byte: impl Fn(u64) -> u8) -> Fingerprint {
    let read = |at| Ok::<_, Infallible>(Some(vec![byte(at); STRETCH as usize]));
    let Ok(fingerprint) = Fingerprint::take(size, read);
    fingerprint
}

fn holds(byte: impl Fn(u64) -> u8) -> impl Fn(u64) -> Option<u32> {
    move |at| Some(checksum(&[byte(at); STRETCH as usize]))
}

fn nobody() -> [(&'static str, &'static Fingerprint); 0] {
    []
}

#[test]
fn a_disk_is_known_by_what_it_holds() {
    let own = Fingerprint { is_complete: true, ..taken(SIZE, |_| 1) };
    assert_eq!((own.marks.len(), own.data), (MARKS, SIZE));
    assert_eq!(whose(&own, nobody(), holds(|_| 1)), Whose::Own);
    let read = MARKS;
    assert_eq!(whose(&own, nobody(), holds(|_| 2)), Whose::Strangers { read });
    assert_eq!(whose(&own, nobody(), holds(|_| 0)), Whose::Strangers { read });
    // An older state, or what its clients have written since.
    let changed = holds(|at| u8::from(at < SIZE / 2));
    assert_eq!(whose(&own, nobody(), changed), Whose::Own);
}

#[test]
fn a_disk_at_the_place_of_another_is_named() {
    let one = taken(1 << 30, |_| 1);
    let two = taken(1 << 30, |_| 2);
    let both = || [("one", &one), ("two", &two)];
    // The daemon may have been killed: of a stranger nothing could be said.
    assert_eq!(whose(&one, both(), holds(|_| 2)), Whose::Others("two"));
    assert_eq!(whose(&one, both(), holds(|_| 1)), Whose::Own);
    assert_eq!(whose(&one, both(), holds(|_| 3)), Whose::Unknown);
    // An empty disk, where there is another's data now.
    let empty = taken(1 << 30, |_| 0);
    assert_eq!(whose(&empty, both(), holds(|_| 2)), Whose::Others("two"));
    assert_eq!(whose(&empty, both(), holds(|_| 3)), Whose::Unknown);
}

#[test]
fn what_its_clients_may_have_written_makes_nobody_a_stranger() {
    let small = taken(1 << 30, |_| 1);
    for (written, is_complete, is_known) in [
        (0, false, false),
        (0, true, true),
        (small.data / 2, true, true),
        (small.data / 2 + 1, true, false),
    ] {
        let own = Fingerprint { written, is_complete, ..small.clone() };
        let told = whose(&own, nobody(), holds(|_| 2)) != Whose::Unknown;
        assert_eq!(told, is_known, "{written} {is_complete}");
    }
    let large = taken(1 << 40, |_| 1);
    let told = whose(&large, nobody(), holds(|_| 2));
    assert_eq!(told, Whose::Strangers { read: MARKS });
}

#[test]
fn clones_are_told_apart_by_what_they_differ_in() {
    // Three quarters of both are the image they were cloned from.
    let bytes = |own: u8| move |at: u64| if at < SIZE / 4 { own } else { 9 };
    let all = |own| Fingerprint { is_complete: true, ..taken(SIZE, bytes(own)) };
    let (one, two) = (all(1), all(2));
    assert!(
        one.yields_to(&two, holds(bytes(2))) && !one.yields_to(&two, holds(bytes(1)))
    );
    let both = || [("one", &one), ("two", &two)];
    assert_eq!(whose(&one, both(), holds(bytes(2))), Whose::Others("two"));
    assert_eq!(whose(&one, both(), holds(bytes(1))), Whose::Own);
    // Some of its own was overwritten since, or all of that.
    let some = holds(|at| if at < SIZE / 8 { 1 } else { bytes(3)(at) });
    assert_eq!(whose(&one, both(), some), Whose::Own);
    // Both halves of a guest's mirror were written alike since this one was looked at.
    let half = Fingerprint { written: 1 << 20, ..one.clone() };
    assert_eq!(whose(&half, both(), holds(bytes(2))), Whose::Own);
    assert_eq!(whose(&one, both(), holds(bytes(3))), Whose::Own);
}

#[test]
fn a_disk_that_was_written_to_until_a_kill_is_known_at_another_s_place() {
    let one = taken(1 << 30, |_| 1);
    let two = taken(1 << 30, |_| 2);
    let both = || [("one", &one), ("two", &two)];
    // Of each, the beginning is rewritten again and again: more than a third of the marks.
    let hot = |own: u8| holds(move |at| if at < 2 << 20 { 10 + own } else { own });
    assert_eq!(whose(&one, both(), hot(2)), Whose::Others("two"));
    assert_eq!(whose(&two, both(), hot(1)), Whose::Others("one"));
    assert_eq!(whose(&one, both(), hot(1)), Whose::Own);
    // Or five sixths of all.
    let sixth = |own: u8| {
        holds(move |at| if (at / STRETCH).is_multiple_of(6) { own } else { 10 + own })
    };
    assert_eq!(whose(&one, both(), sixth(2)), Whose::Others("two"));
    assert_eq!(whose(&one, both(), sixth(1)), Whose::Own);
    // Nothing is known of a disk of zeroes.
    let empty = taken(1 << 30, |_| 0);
    assert_eq!(whose(&empty, both(), sixth(2)), Whose::Unknown);
}

#[test]
fn file_systems_of_one_kind_are_known_though_their_beginnings_are_alike() {
    let bytes = |own: u8| move |at: u64| if at < 2 << 20 { 9 } else { own };
    let (one, two) = (taken(1 << 30, bytes(1)), taken(1 << 30, bytes(2)));
    let both = || [("one", &one), ("two", &two)];
    // Half of each was written since it was looked at, and the daemon was killed.
    let half = |own: u8| {
        holds(move |at| if (at / STRETCH).is_multiple_of(2) { bytes(own)(at) } else { 7 })
    };
    assert_eq!(whose(&one, both(), half(2)), Whose::Others("two"));
    assert_eq!(whose(&two, both(), half(1)), Whose::Others("one"));
    assert_eq!(whose(&one, both(), half(1)), Whose::Own);
    // Of all that only they had, nothing is left: what is alike says nothing.
    assert_eq!(whose(&one, both(), half(3)), Whose::Own);
    // Halves of a mirror, one looked at when an eighth of it had changed.
    let all =
        |own: u8| move |at: u64| if (at / STRETCH).is_multiple_of(8) { own } else { 9 };
    let (older, newer) = (taken(1 << 30, all(1)), taken(1 << 30, all(2)));
    let both = [("older", &older), ("newer", &newer)];
    assert_eq!(whose(&older, both, holds(all(2))), Whose::Own);
}

#[test]
fn a_copy_that_others_wrote_to_is_noticed() {
    let copy = Fingerprint { is_complete: true, written: 1 << 30, ..taken(SIZE, |_| 1) };
    let changed = |part: u64| holds(move |at| 1 + u8::from(at / STRETCH % 10 < part));
    assert_eq!(copy.changed_by_others(changed(0)), None);
    let (changes, read) = copy.changed_by_others(changed(4)).expect("it has changed");
    assert!(changes > read / 5 && changes < read * 3 / 5, "{changes} of {read}");
    // Its disk's clients may have written as much, or nobody knows what they have written.
    let wrote = Fingerprint { written: SIZE / 4, ..copy.clone() };
    assert_eq!(wrote.changed_by_others(changed(4)), None);
    let killed = Fingerprint { is_complete: false, ..taken(1 << 30, |_| 1) };
    assert_eq!(killed.changed_by_others(changed(4)), None);
    // They write to the beginning again and again.
    assert_eq!(copy.changed_by_others(holds(|at| 1 + u8::from(at < 2 << 20))), None);
    assert_eq!(copy.changed_by_others(|_| None), None);
}

#[test]
fn where_all_is_there_nobody_else_need_be_known() {
    let bytes = |own: u8| move |at: u64| if at < SIZE / 4 { own } else { 9 };
    let (one, clone) = (taken(SIZE, bytes(1)), taken(SIZE, bytes(2)));
    let others = || [("clone", &clone), ("equal", &one)];
    assert!(one.is_all_there(holds(bytes(1))));
    assert_eq!(whose(&one, others(), holds(bytes(1))), Whose::Own);
    // Some of it cannot be read.
    let some = |at| (at > 0).then(|| checksum(&[bytes(1)(at); STRETCH as usize]));
    assert!(one.is_all_there(some));
    assert_eq!(whose(&one, others(), some), Whose::Own);
    assert!(!one.is_all_there(holds(bytes(2))) && !one.is_all_there(|_| None));
    assert!(!taken(SIZE, |_| 0).is_all_there(holds(|_| 0)), "nothing is known of it");
}

#[test]
fn a_part_of_a_slow_place_proves_it_unless_another_disk_is_known_by_that_part() {
    let (one, two) = (taken(SIZE, |_| 1), taken(SIZE, |_| 2));
    // As far as it was read in time.
    let first = |count: usize, byte: u8| {
        let read: Vec<u64> = one.marks.iter().take(count).map(|it| it.at).collect();
        move |at| read.contains(&at).then(|| checksum(&[byte; STRETCH as usize]))
    };
    let proves =
        |count, byte| one.is_proven_by_a_part([&two].into_iter(), first(count, byte));
    assert!(proves(BEGINNING + FEWEST, 1) && proves(MARKS - 1, 1));
    assert!(!proves(BEGINNING + FEWEST - 1, 1), "file systems of one kind begin alike");
    assert!(!proves(MARKS - 1, 2));
    // A clone may differ in what was not read.
    let clone = Fingerprint { data: 1, ..one.clone() };
    assert!(!one.is_proven_by_a_part([&clone].into_iter(), first(MARKS - 1, 1)));
}

#[test]
fn what_cannot_be_read_says_nothing() {
    let own = Fingerprint { is_complete: true, ..taken(SIZE, |_| 1) };
    assert_eq!(whose(&own, nobody(), |_| None), Whose::Unknown);
    let few: Vec<u64> = own.marks.iter().take(FEWEST - 1).map(|it| it.at).collect();
    let some = |at: u64| few.contains(&at).then_some(0);
    assert_eq!(whose(&own, nobody(), some), Whose::Unknown);
}

#[test]
fn a_small_or_a_sparse_disk_gives_what_it_has() {
    assert_eq!(taken(STRETCH - 1, |_| 1), Fingerprint::default());
    assert_eq!(taken(STRETCH, |_| 1).marks.len(), 1);
    let sparse = taken(SIZE, |at| u8::from(at < 8 * STRETCH));
    assert_eq!((sparse.marks.len(), sparse.data), (8, 8 * STRETCH));
    assert!(taken(SIZE, |_| 0).marks.is_empty());
}

#[test]
fn it_is_taken_anew_when_it_may_be_out_of_date() {
    let full = taken(SIZE, |_| 1);
    assert!(!full.is_due(0, OLD) && !full.is_due(4096, AGED));
    assert!(full.is_due(4096, OLD) && full.is_due(SIZE / 4 + 1, AGED));
    assert!(!full.is_due(SIZE, LOOK) && full.is_stale(SIZE));
    let weak = taken(SIZE, |at| u8::from(at == 0));
    assert!(!weak.is_due(GROWN, LOOK) && weak.is_due(GROWN, AGED));
    let empty = taken(SIZE, |_| 0);
    assert!(!empty.is_due(0, OLD) && empty.is_due(1, LOOK));
}
