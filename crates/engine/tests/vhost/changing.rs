//! Machines whose memory or queues change while requests are under way, and daemons and
//! disks that end under them.

use super::*;

#[test]
fn memory_that_changes_is_there_all_the_time() {
    let stage = Stage::new(sterna_engine::IoChoice::Auto, SIZE);
    let socket = serve(&stage);
    let memory = Memory::new();
    let mut machine = Machine::connect(&socket, &memory, None);
    machine.waits_for_answers();
    let data = [Stretch(DATA, MIB as u32, false)];
    let len = memory.len() as u64;
    // It is taken away, and added in parts, but for a page.
    machine.take_memory(0..len).expect("take it away");
    assert_eq!(machine.ask(WRITE, 0, &data), OK);
    machine.add_memory(0..len / 2).expect("add a half");
    assert_eq!(machine.ask(WRITE, 0, &data), OK);
    let behind = [Stretch(len - MIB as u64, MIB as u32, false)];
    assert_eq!(machine.ask(WRITE, 0, &behind), OK);
    machine.add_memory(len / 2 + 4096..len).expect("add most of the other");
    assert_eq!(machine.ask(WRITE, 0, &behind), OK);
    assert!(machine.add_memory(0..len).is_err(), "it is there already");
    assert!(machine.frontend_is_gone(), "what makes no sense ends the connection");
}

#[test]
fn memory_that_was_taken_away_is_let_go_when_no_queue_is_in_it() {
    let stage = Stage::new(sterna_engine::IoChoice::Auto, SIZE);
    let socket = serve(&stage);
    let memory = Memory::new();
    let mut machine = Machine::connect(&socket, &memory, None);
    machine.waits_for_answers();
    let mapped = || {
        let inode = format!(" {} ", memory.inode());
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.contains(&inode)).count()
    };
    // Ours and the daemon's, which is in the same process here.
    eventually("the mapping", || mapped() == 2);
    let (len, page) = (memory.len() as u64, 4096);
    // The last page is of its own.
    machine.take_memory(0..len).expect("take all of it away");
    machine.add_memory(0..len - page).expect("add most of it");
    machine.take_memory(0..len - page).expect("take that away, too");
    assert_eq!(mapped(), 3);
    eventually("the page to go", || mapped() == 2);
    assert_eq!(machine.ask(FLUSH, 0, &[]), OK);
    machine.stop();
    machine.add_memory(len - page..len).expect("add the page");
    eventually("all but the page to go", || mapped() == 2);
    // What the machine asks for without any memory does not keep it from leaving.
    machine.put(FLUSH, 0, &[]);
    machine.kick();
    drop(machine);
    let start = Instant::now();
    drop(stage);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn a_stopped_queue_says_where_it_was_and_goes_on_from_there() {
    on_both(|io| {
        let stage = Stage::new(io, SIZE);
        let socket = serve(&stage);
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        for _ in 0..3 {
            assert_eq!(machine.ask(FLUSH, 0, &[]), OK);
        }
        assert_eq!(machine.stop(), 3);
        drop(machine);
        let mut again = Machine::connect(&socket, &memory, None);
        assert_eq!(again.ask(FLUSH, 0, &[]), OK);
        assert_eq!(again.stop(), 4);
    });
}

#[test]
fn a_queue_that_is_to_stop_waits_for_no_limit() {
    on_both(|io| {
        let stage = Stage::new(io, SIZE);
        let socket = serve(&stage);
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        memory.put(DATA, &pattern(4096, 5));
        assert_eq!(machine.ask(WRITE, 8, &[Stretch(DATA, 4096, false)]), OK);
        // Two seconds a request.
        let limit = Limit { bytes: Some(2048), ..Limit::default() };
        let terms = Terms { limit, ..Terms::default() };
        stage.engine.set_terms(ClassId(7), Some(terms)).unwrap();
        stage.engine.set_class(DISK, Some(ClassId(7))).unwrap();
        let to = |at: u64| Stretch(DATA + (1 + at) * 4096, 4096, true);
        let slots: Vec<_> = (0..8).map(|at| machine.put(READ, 8, &[to(at)])).collect();
        machine.kick();
        let in_flight = || stage.engine.stats(DISK).unwrap().in_flight;
        eventually("all but the first to wait", || (5..8).contains(&in_flight()));
        let start = Instant::now();
        assert_eq!(machine.stop(), 9);
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
        machine.wait();
        for (at, slot) in slots.into_iter().enumerate() {
            assert_eq!(machine.status(slot), OK);
            assert!(memory.get(to(at as u64).0, 4096) == pattern(4096, 5));
        }
        // They have counted for nothing, save the one whose turn came next.
        drop(machine);
        let start = Instant::now();
        let mut again = Machine::connect(&socket, &memory, None);
        assert_eq!(again.ask(READ, 8, &[to(0)]), OK);
        assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    });
}

#[test]
fn requests_of_a_guest_that_is_slow_at_asking_are_found_without_a_word() {
    on_both(|io| {
        let stage = Stage::new(io, SIZE);
        let socket = serve(&stage);
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        let to = |at: u64| Stretch(DATA + at * 4096, 4096, true);
        // A request takes a millisecond, so that there are always some under way.
        let limit = Limit { bytes: Some(4 << 20), ..Limit::default() };
        let terms = Terms { limit, ..Terms::default() };
        stage.engine.set_terms(ClassId(7), Some(terms)).unwrap();
        stage.engine.set_class(DISK, Some(ClassId(7))).unwrap();
        let spared = (0..20_000).any(|_| {
            machine.wait_for_room(2);
            // Each takes it 60 us, and both are found together.
            for at in 0..2 {
                let start = Instant::now();
                machine.put(READ, 8, &[to(at)]);
                while start.elapsed() < Duration::from_micros(60) {}
            }
            let is_spared = !machine.is_to_kick(2);
            if !is_spared {
                machine.kick();
            }
            is_spared
        });
        machine.wait();
        stage.engine.set_class(DISK, None).unwrap();
        assert!(spared, "it has to tell of each request");
        // It is seen to be fast, and tells of each again.
        eventually("a kick to be asked for", || {
            let slots: Vec<_> =
                (0..7).map(|at| machine.put(READ, 8, &[to(at)])).collect();
            let is_to_kick = machine.is_to_kick(7);
            machine.kick();
            machine.wait();
            assert!(slots.into_iter().all(|slot| machine.status(slot) == OK));
            is_to_kick
        });
    });
}

#[test]
fn what_was_under_way_when_the_daemon_died_is_carried_out_by_the_next() {
    on_both(|io| {
        let stage = Stage::new(io, SIZE);
        let socket = serve(&stage);
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        let (area, file) = machine.area();
        drop(machine);
        let mut machine = Machine::connect(&socket, &memory, Some((&area, &file)));
        assert_eq!(machine.ask(FLUSH, 0, &[]), OK);
        assert_eq!(machine.stop(), 1);
        // A daemon that dies has taken this one, and not answered it: it is marked in
        // the area, and the queue is past it.
        memory.put(DATA, &pattern(4096, 9));
        let slot = machine.put(WRITE, 8, &[Stretch(DATA, 4096, false)]);
        let mark = area.mmap_offset + 16 + 16 * u64::from(slot) * 8;
        file.write_all_at(&[1], mark).unwrap();
        file.write_all_at(&5_u64.to_le_bytes(), mark + 8).unwrap();
        drop(machine);
        let mut next = Machine::connect(&socket, &memory, Some((&area, &file)));
        next.wait();
        assert_eq!(next.status(slot), OK);
        assert_eq!(next.ask(READ, 8, &[Stretch(DATA + 8192, 4096, true)]), OK);
        assert!(memory.get(DATA + 8192, 4096) == pattern(4096, 9));
        let mut marks = [0; 1];
        file.read_exact_at(&mut marks, mark).unwrap();
        assert_eq!(marks, [0], "nothing is under way any more");
    });
}

#[test]
fn the_disk_goes_when_the_machine_is_still_there() {
    on_both(|io| {
        let stage = Stage::new(io, SIZE);
        let socket = serve(&stage);
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        assert_eq!(machine.ask(FLUSH, 0, &[]), OK);
        let engine: &Engine = &stage.engine;
        engine.detach(DISK).unwrap();
        assert!(machine.frontend_is_gone());
    });
}

/// The end of a server does not wait for a datastore that hangs, and the machine finds the
/// socket again and repeats what it had no answer to.
#[test]
fn a_write_that_hangs_does_not_land_on_what_is_written_after_the_disk_is_back() {
    let io = sterna_engine::IoChoice::Auto;
    let far = Stage::new(io, SIZE);
    let engine = Engine::start(&Config { io, ..Config::default() }).unwrap();
    let image = ImageSpec::Nbd(far.uri().parse().unwrap());
    let (budget, name) = (std::sync::Arc::default(), "near".into());
    let disk = DiskSpec {
        id: DISK,
        name,
        size: SIZE,
        image,
        budget,
        unnamed: false,
        keeps_room: false,
        account: None,
    };
    engine.attach(disk).unwrap();
    let socket = far.directory.path().join("machine.sock");
    engine.serve(DISK, UnixListener::bind(&socket).unwrap()).unwrap();
    let memory = Memory::new();
    let mut machine = Machine::connect(&socket, &memory, None);
    memory.put(DATA, &pattern(4096, 1));
    // Minutes a request, but for the first.
    let limit = Limit { bytes: Some(16), ..Limit::default() };
    far.engine.set_terms(ClassId(7), Some(Terms { limit, ..Terms::default() })).unwrap();
    far.engine.set_class(DISK, Some(ClassId(7))).unwrap();
    for _ in 0..4 {
        machine.put(WRITE, 8, &[Stretch(DATA, 4096, false)]);
    }
    machine.kick();
    eventually("them to be under way", || engine.stats(DISK).unwrap().in_flight > 0);
    engine.unserve(DISK);
    fs::remove_file(&socket).unwrap();
    engine.serve(DISK, UnixListener::bind(&socket).unwrap()).unwrap();
    assert!(engine.stats(DISK).unwrap().in_flight > 0);
    assert!(is_turned_away(&socket), "what it has written has not landed");
    far.engine.set_terms(ClassId(7), Some(Terms::default())).unwrap();
    eventually("all to have landed", || engine.stats(DISK).unwrap().in_flight == 0);
    drop(machine);
    let memory = Memory::new();
    let mut again = Machine::connect(&socket, &memory, None);
    memory.put(DATA, &pattern(4096, 2));
    assert_eq!(again.ask(WRITE, 8, &[Stretch(DATA, 4096, false)]), OK);
    assert_eq!(again.ask(READ, 8, &[Stretch(DATA + 8192, 4096, true)]), OK);
    assert!(memory.get(DATA + 8192, 4096) == pattern(4096, 2));
}

#[test]
fn machines_that_wait_do_not_hold_up_the_end() {
    let stage = Stage::new(sterna_engine::IoChoice::Auto, SIZE);
    let socket = serve(&stage);
    let memory = Memory::new();
    let mut machine = Machine::connect(&socket, &memory, None);
    assert_eq!(machine.ask(FLUSH, 0, &[]), OK);
    let _waiting = UnixStream::connect(&socket).unwrap();
    stage.engine.detach(DISK).unwrap();
}
