//! A reactor whose loop a test drives by hand, with images that answer when they are told to.

use std::mem::ManuallyDrop;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};

use sterna_core::qos::{Class, ClassId, Limit, Pool as Datastore, Terms};
use sterna_nbd::{BlockSizes, Command, Session, TransmissionFlags};

use super::*;
use crate::buffer::Buf;
use crate::classes::Classes;
use crate::directory::Directory;
use crate::disk::{Origin, Placed};
use crate::image::{Done, Image, ImageInfo, ImageOp, Opened, Ticket};
use crate::io::ImageId;
use crate::mailbox::Mailbox;
use crate::qos::Membership;
use sterna_core::DiskId;

const SIZE: u64 = 16 << 20;

/// What an image was asked for, and whether it answers at once.
#[derive(Clone, Default)]
struct Asked {
    asked: Arc<Mutex<Vec<(Ticket, u64)>>>,
    at_once: bool,
}

impl Asked {
    fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// Where it was asked for something.
    fn places(&self) -> Vec<u64> {
        self.asked.lock().unwrap().iter().map(|(_, offset)| *offset).collect()
    }
}

impl Opened for Asked {
    fn size(&self) -> u64 {
        SIZE
    }

    fn start(self: Box<Self>, _cx: &mut Cx, _id: ImageId) -> Box<dyn Image> {
        self
    }
}

impl Image for Asked {
    fn submit(&mut self, cx: &mut Cx, ticket: Ticket, op: ImageOp) {
        let (ImageOp::Read { offset, .. } | ImageOp::Write { offset, .. }) = op else {
            panic!("nobody asks for {op:?}");
        };
        self.asked.lock().unwrap().push((ticket, offset));
        if self.at_once {
            cx.finished.push((ticket, Ok(Done::Ok)));
        }
    }

    fn completed(&mut self, _cx: &mut Cx, _completion: Completion) {}

    fn info(&self) -> ImageInfo {
        let (size, min_block, fast_zero) = (SIZE, 1, true);
        ImageInfo { size, min_block, direct: false, finds_holes: false, fast_zero }
    }

    fn in_flight(&self) -> usize {
        0
    }
}

/// A reactor with so much memory for commands. What is under way when a test ends never
/// comes back, so its memory is not freed.
fn reactor(memory: usize) -> ManuallyDrop<Reactor> {
    let shared = Shared {
        directory: Directory::default(),
        mailboxes: vec![Arc::new(Mailbox::new().unwrap())],
        connections: AtomicUsize::new(0),
        turned_away: TurnedAway::default(),
        unlocked: AtomicBool::new(false),
        descriptors: i32::MAX,
        keep: None,
        voucher: Default::default(),
        classes: Classes::default(),
        epoch: Instant::now(),
    };
    let memory = memory + crate::image::file::ZEROES;
    let opened = Reactor::open(0, Arc::new(shared), IoChoice::Threads, memory);
    ManuallyDrop::new(opened.unwrap().0)
}

impl Reactor {
    /// A disk whose image is at this datastore.
    fn disk_at(&mut self, pool: &Arc<Datastore>, image: &Asked) -> u32 {
        let image = placed(pool, image);
        self.attach(DiskId(1), "disk".into(), SIZE, image, None).0.index
    }

    /// A client that has sent reads of these lengths; gives its end.
    fn client(&mut self, disk: u32, reads: &[u32]) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let heads = reads.iter().enumerate().flat_map(|(at, len)| {
            let command = Command::Read { offset: 0, len: *len, df: false };
            command.request(at as u64).encode()
        });
        let session = Session {
            size: SIZE,
            flags: TransmissionFlags::HAS_FLAGS,
            block_sizes: BlockSizes::new(1, 4096, 32 << 20).unwrap(),
            structured: false,
            allocation: None,
        };
        self.adopt(disk, ours.into(), session, &heads.collect::<Vec<u8>>());
        theirs
    }

    /// Takes all memory for commands, page by page.
    fn take_all(&mut self) -> Vec<Buf> {
        let pages = std::iter::from_fn(|| self.cx.buffers.get(4096));
        pages.collect()
    }
}

fn placed(pool: &Arc<Datastore>, image: &Asked) -> Placed {
    let (image, pool) = (Box::new(image.clone()), Arc::clone(pool));
    Placed { image, pool, keeps_room: false }
}

#[test]
fn what_one_begins_that_goes_on_waiting_is_answered_in_the_same_turn() {
    for for_memory in [false, true] {
        let mut reactor = reactor(1 << 20);
        let image = Asked { at_once: true, ..Asked::default() };
        let disk = reactor.disk_at(&Arc::default(), &image);
        let mut pages = reactor.take_all();
        // With every second page there is memory, and no block that is large enough.
        if for_memory {
            let mut at = 0;
            pages.retain(|_| {
                at += 1;
                at % 2 == 0
            });
        }
        let _client = reactor.client(disk, &[64 << 10, 512 << 10]);
        reactor.settle();
        assert_eq!(
            (image.count(), reactor.memory_line.len()),
            (0, usize::from(for_memory))
        );
        assert_eq!(reactor.portion_lines.len(), usize::from(!for_memory));
        // Now there is room for the first of the two.
        let rest = pages.split_off(if for_memory { 64 } else { 192 });
        drop(if for_memory { std::mem::replace(&mut pages, rest) } else { rest });
        reactor.settle();
        assert_eq!(image.count(), 1);
        assert!(reactor.cx.finished.is_empty(), "its answer lies there");
        assert_eq!(
            reactor.memory_line.len() + reactor.portion_lines.len(),
            1,
            "the second one waits"
        );
    }
}

#[test]
fn a_client_whose_disk_has_moved_waits_for_its_old_datastore_no_more() {
    // So little that nobody is let in beyond the portion, not even with a page.
    let mut reactor = reactor(256 << 10);
    let (here, there) = (Arc::<Datastore>::default(), Arc::<Datastore>::default());
    let (sick, old, new) = (Asked::default(), Asked::default(), Asked::default());
    let stays = reactor.disk_at(&here, &sick);
    let moves = reactor.disk_at(&here, &old);
    // What is under way there holds far more than its portion.
    reactor.disk(stays).unwrap().0.core.holds.take(1 << 30);
    let _clients = [stays, moves].map(|disk| reactor.client(disk, &[64 << 10]));
    reactor.settle();
    assert_eq!((sick.count(), old.count()), (0, 0));
    assert_eq!(reactor.portion_lines.values().map(VecDeque::len).sum::<usize>(), 2);
    let (disk, cx) = reactor.disk(moves).unwrap();
    let image = disk.core.add_image(cx, placed(&there, &new));
    disk.core.set_current(cx, image);
    reactor.settle();
    assert_eq!(new.count(), 1);
    assert_eq!(reactor.portion_lines.values().map(VecDeque::len).sum::<usize>(), 1);
}

#[test]
fn what_a_stopping_machine_has_behind_another_s_write_needs_no_turn_then() {
    let mut reactor = reactor(1 << 20);
    let image = Asked::default();
    let key = reactor.disk_at(&Arc::default(), &image);
    let limit = Limit { requests: Some(1), ..Limit::default() };
    let class = Arc::new(Class::new(&Terms { limit, ..Terms::default() }));
    let page = reactor.cx.buffers.get(4096).unwrap();
    let op = |offset| ImageOp::Write { offset, buf: page.slice(0, 4096), fua: false };
    let (disk, cx) = reactor.disk(key).unwrap();
    let other = |at| Origin { client: Client::Connection(at), command: at };
    disk.submit(cx, other(1), op(0), cx.now);
    assert_eq!(image.count(), 1);
    disk.core.set_class(cx, Membership::of(ClassId(7), class));
    // Many others stand in the class's line before it can.
    for at in 2..200 {
        disk.submit(cx, other(at), op(u64::from(at) * 4096), cx.now);
    }
    let client = Client::Device(3);
    disk.submit(cx, Origin { client, command: 0 }, op(0), cx.now);
    disk.hasten(cx, client);
    reactor.settle();
    let begun = [0, 2 * 4096];
    assert_eq!(image.places(), begun, "one of them is within the limit");
    let (ended, _) = image.asked.lock().unwrap()[0];
    reactor.cx.finished.push((ended, Ok(Done::Ok)));
    reactor.settle();
    assert_eq!(image.places(), [&begun[..], &[0]].concat());
    // When it runs again, it stands in line as all do.
    let (disk, cx) = reactor.disk(key).unwrap();
    disk.core.hurries_no_more(client);
    disk.submit(cx, Origin { client, command: 1 }, op(8 << 20), cx.now);
    assert_eq!(image.places(), [&begun[..], &[0]].concat());
}
