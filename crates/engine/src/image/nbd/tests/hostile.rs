//! Servers that break the protocol.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sterna_nbd::{Export, NbdError, Request, ServerHandshake, ServerStep, reply};

use super::*;

/// How a server answers a request, by the number of requests before (without looks).
type Answer = fn(u32, &Request) -> Vec<u8>;

/// A server that shakes hands well and then answers as `answer` says. It ends
/// with the process.
fn serve(place: &Place, answer: Answer) -> Arc<AtomicU32> {
    let listener = UnixListener::bind(&place.socket).unwrap();
    let connections = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&connections);
    std::thread::spawn(move || {
        let mut requests = 0;
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::Relaxed);
            converse(stream.unwrap(), answer, &mut requests);
        }
    });
    connections
}

fn converse(mut stream: UnixStream, answer: Answer, requests: &mut u32) -> Option<()> {
    shake_hands(&mut stream)?;
    loop {
        let mut head = [0; 28];
        stream.read_exact(&mut head).ok()?;
        let request = Request::parse(&head).ok()?;
        let mut payload = vec![0; request.payload_len() as usize];
        stream.read_exact(&mut payload).ok()?;
        // What it says of its export is of no account here.
        let reply = match is_look(&request) {
            true => reply::error(request.cookie, NbdError::Io, "").to_vec(),
            false => answer(*requests, &request),
        };
        *requests += u32::from(!is_look(&request));
        stream.write_all(&reply).ok()?;
        if reply.is_empty() {
            return None;
        }
    }
}

fn shake_hands(stream: &mut UnixStream) -> Option<()> {
    let mut handshake = ServerHandshake::new();
    let mut bytes = [0; 4096];
    loop {
        match handshake.step() {
            ServerStep::Send(out) => stream.write_all(&out).ok()?,
            ServerStep::Receive => {
                let count = stream.read(&mut bytes).ok().filter(|&count| count > 0)?;
                assert_eq!(handshake.push(&bytes[..count]), count);
            }
            ServerStep::Ready(_) => return Some(()),
            ServerStep::NeedExport(_) => {
                handshake.answer_export(Ok(Export::disk(1 << 20)));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Whether Sterna reads there to know the export again.
fn is_look(request: &Request) -> bool {
    request.command == 0 && request.len == 4096
}

/// The whole of a good answer to a flush.
fn good(request: &Request) -> Vec<u8> {
    reply::none(request.cookie).to_vec()
}

#[test]
fn what_is_no_reply_costs_the_connection_and_the_request_is_sent_again() {
    let place = place();
    let connections = serve(&place, |number, request| match number {
        0 => vec![0x55; 64],
        1 => reply::none(request.cookie + 1).to_vec(),
        // It never answers and goes.
        2 => Vec::new(),
        _ => good(request),
    });
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    assert_eq!(rig.call(ImageOp::Flush), Ok(Done::Ok));
    assert_eq!(connections.load(Ordering::Relaxed), 4);
    rig.close();
}

#[test]
fn a_server_that_only_breaks_the_protocol_fails_what_it_holds_up() {
    let place = place();
    let connections = serve(&place, |_, _| vec![0x55; 64]);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    assert_eq!(rig.call(ImageOp::Flush), Err(Errno(libc::EIO)));
    assert_eq!(connections.load(Ordering::Relaxed), VIOLATIONS_MAX);
    rig.close();
}

#[test]
fn a_read_with_a_gap_is_not_taken_for_whole() {
    let place = place();
    serve(&place, |number, request| {
        let (cookie, offset) = (request.cookie, request.offset);
        let half = request.len / 2;
        let mut bytes = reply::offset_hole(cookie, offset, half, false).to_vec();
        if number > 0 {
            let rest = offset + u64::from(half);
            bytes.extend_from_slice(&reply::offset_data(cookie, rest, half, false));
            bytes.resize(bytes.len() + half as usize, 7);
        }
        bytes.extend_from_slice(&reply::none(cookie));
        bytes
    });
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    let bytes = rig.read(4096, 16384);
    assert!(
        bytes[..8192].iter().all(|&b| b == 0) && bytes[8192..].iter().all(|&b| b == 7)
    );
    rig.close();
}

#[test]
fn data_that_was_not_asked_for_goes_nowhere() {
    let place = place();
    serve(&place, |number, request| {
        let cookie = request.cookie;
        if number > 0 {
            return good(request);
        }
        let mut bytes = reply::offset_data(cookie, 1 << 19, 4096, true).to_vec();
        bytes.resize(bytes.len() + 4096, 9);
        bytes
    });
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    assert_eq!(rig.write(0, &[1; 4096], false), Ok(Done::Ok));
    rig.close();
}

#[test]
fn an_error_chunk_in_the_middle_of_a_read_fails_it() {
    let place = place();
    serve(&place, |_, request| {
        let cookie = request.cookie;
        let mut bytes = reply::offset_hole(cookie, request.offset, 512, false).to_vec();
        bytes.extend_from_slice(&reply::error(cookie, NbdError::Io, "bad sector"));
        bytes
    });
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    let buf = rig.buffer(4096);
    let read = rig.call(ImageOp::Read { offset: 0, buf });
    assert_eq!(read, Err(Errno(libc::EIO)));
    rig.close();
}

#[test]
fn a_server_that_says_that_it_is_going_is_waited_for() {
    let place = place();
    serve(&place, |number, request| match number {
        0 => reply::error(request.cookie, NbdError::Shutdown, "").to_vec(),
        _ => good(request),
    });
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    assert_eq!(rig.call(ImageOp::Flush), Ok(Done::Ok));
    rig.close();
}
