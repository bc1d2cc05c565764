//! Schedulers on threads of their own: nobody is forgotten.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use sterna_core::Nanos;
use sterna_core::qos::{Bucket, Class, ClassId, Cost, Pool, SHARES, Scheduler, Terms};

const THREADS: usize = 4;
const REQUESTS: usize = 20_000;
const OUTSTANDING: usize = 8;
/// A wake that has not come by then is lost.
const LOST: Duration = Duration::from_secs(20);

/// One thread's part: so many requests through its scheduler, of which those that have
/// started end one by one.
fn run(number: usize, pool: &Arc<Pool>, class: &Arc<Class>, doors: &Doors) {
    let id = u32::try_from(number).unwrap();
    let mut scheduler = Scheduler::new(Arc::clone(pool), id);
    let flow = scheduler.add_flow(&pool.stake(ClassId(1), class), SHARES);
    let epoch = Instant::now();
    let mut at_device = VecDeque::new();
    let (mut asked, mut done) = (0, 0);
    while done < REQUESTS {
        let now = Nanos::from(epoch.elapsed());
        while asked < REQUESTS && asked - done < OUTSTANDING {
            asked += 1;
            let cost = Cost { bytes: 4096 };
            at_device.extend(scheduler.arrive(now, flow, cost, ()));
        }
        while let Some(started) = scheduler.next(now) {
            at_device.push_back(started);
        }
        match at_device.pop_front() {
            Some(((), permit)) => {
                scheduler.done(permit, Nanos(1000));
                done += 1;
                // The others get the processor, as they would while a device works.
                thread::yield_now();
            }
            None => {
                doors.wake(number, scheduler.take_wakes());
                doors.wait(number);
            }
        }
        doors.wake(number, scheduler.take_wakes());
    }
}

/// How the threads wake each other.
struct Doors {
    senders: Vec<Sender<()>>,
    receivers: Vec<std::sync::Mutex<Receiver<()>>>,
}

impl Doors {
    fn wake(&self, own: usize, wakes: u64) {
        for (number, door) in self.senders.iter().enumerate() {
            if number != own && wakes >> number & 1 == 1 {
                door.send(()).unwrap();
            }
        }
    }

    fn wait(&self, number: usize) {
        let door = self.receivers[number].lock().unwrap();
        match door.recv_timeout(LOST) {
            Ok(()) => while door.try_recv().is_ok() {},
            Err(RecvTimeoutError::Timeout) => panic!("thread {number} was not woken"),
            Err(RecvTimeoutError::Disconnected) => unreachable!("all doors stay open"),
        }
    }
}

fn race(window: Option<u32>, depth: Option<u32>) {
    let pool = Arc::new(Pool::default());
    pool.set_window(window);
    let class = Arc::new(Class::new(&Terms { depth, ..Terms::default() }));
    let (senders, receivers) = (0..THREADS).map(|_| mpsc::channel()).unzip();
    let receivers: Vec<Receiver<()>> = receivers;
    let receivers = receivers.into_iter().map(std::sync::Mutex::new).collect();
    let doors = Doors { senders, receivers };
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (pool, class, doors) = (&pool, &class, &doors);
            scope.spawn(move || run(number, pool, class, doors));
        }
    });
}

#[test]
fn nobody_who_waits_for_a_place_of_the_datastore_is_forgotten() {
    race(Some(3), None);
}

#[test]
fn nobody_who_waits_for_a_place_of_the_class_is_forgotten() {
    race(None, Some(2));
}

#[test]
fn nobody_who_waits_for_both_is_forgotten() {
    race(Some(3), Some(2));
    race(Some(1), Some(1));
}

#[test]
fn threads_that_take_from_a_bucket_at_once_lose_nothing_and_gain_nothing() {
    const TAKEN: u64 = 10_000;
    let bucket = Bucket::new(1_000_000);
    let take_many = || {
        for _ in 0..TAKEN {
            bucket.take(Nanos(0), 1);
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(take_many);
        }
    });
    // A microsecond each, of which the first 10 ms were there.
    let paid = bucket.take(Nanos(0), 0).plus(Nanos::from_millis(10));
    assert_eq!(paid, Nanos(THREADS as u64 * TAKEN * 1000));
}

#[test]
fn what_is_taken_while_a_rate_changes_costs_what_it_costs_at_one_of_the_rates() {
    const TAKEN: u64 = 100_000;
    const SLOW: u64 = 1_000;
    const FAST: u64 = 1_000_000;
    // Nothing flows back: time stands. So in the end all that was taken is owed, if
    // there was nothing before.
    let bucket = Bucket::new(FAST);
    bucket.take(Nanos(0), FAST / 100);
    let taking = AtomicUsize::new(THREADS);
    let take_many = || {
        for _ in 0..TAKEN {
            bucket.take(Nanos(0), 1);
        }
        taking.fetch_sub(1, Ordering::Relaxed);
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(take_many);
        }
        while taking.load(Ordering::Relaxed) > 0 {
            bucket.set_rate(Nanos(0), Some(SLOW));
            bucket.set_rate(Nanos(0), Some(FAST));
        }
    });
    let paid = bucket.take(Nanos(0), 0);
    assert_eq!(paid, Nanos(THREADS as u64 * TAKEN * 1000), "a microsecond each");
}
