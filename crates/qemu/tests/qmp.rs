//! The client against a real QEMU, and against programs that are not one.

mod common;

use std::time::{Duration, Instant};

use common::Machine;
use sterna_core::Nanos;
use sterna_qemu::qmp::{
    ANSWER_WITHIN, AddNode, Cache, CompleteJob, CreateImage, DeleteNode, DismissJob,
    Event, FileOptions, FormatOptions, JobStatus, LatencyHistogram, Mirror, Monitor,
    NewImage, NodeOptions, QmpError, QueryBlock, QueryBlockStats, QueryJobs, QueryName,
    QueryNodes, QueryStatus, SetSpeed, StopJob,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

const MIB: u64 = 1 << 20;
const GREETING: &str = "{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 0, \"minor\": 0, \
                        \"major\": 10}}, \"capabilities\": []}}\r\n";
const EVENT: &str = "{\"timestamp\": {\"seconds\": 1, \"microseconds\": 2}, \
                     \"event\": \"RESUME\"}\r\n";

fn node(name: &str) -> NodeOptions {
    let cache = Cache { direct: false, no_flush: false };
    NodeOptions { node_name: name.into(), cache, discard: "unmap" }
}

/// Makes a node for an image of this format and size.
async fn add_image(machine: &Machine, monitor: &Monitor, format: &str, size: u64) {
    let path = machine.path("new");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(if format == "raw" { size } else { 0 }).unwrap();
    let filename = path.display().to_string();
    let low = FileOptions { driver: "file", filename, node: node("new-file") };
    monitor.call(&AddNode::File(low)).await.unwrap();
    if format != "raw" {
        let options = NewImage {
            driver: format.into(),
            file: "new-file".into(),
            size,
            cluster_size: Some(65536),
        };
        let create = CreateImage { job_id: "create".into(), options };
        monitor.call(&create).await.unwrap();
        reaches(monitor, "create", JobStatus::Concluded).await;
        monitor.call(&DismissJob { id: "create".into() }).await.unwrap();
    }
    let top = FormatOptions {
        driver: format.into(),
        file: "new-file".into(),
        detect_zeroes: "off".into(),
        node: node("new"),
    };
    monitor.call(&AddNode::Format(top)).await.unwrap();
}

async fn mirror(monitor: &Monitor, speed: u64) {
    let mirror = Mirror {
        job_id: "copy".into(),
        device: "top".into(),
        target: "new".into(),
        sync: "full",
        speed,
        buf_size: Some(MIB),
        auto_dismiss: false,
    };
    monitor.call(&mirror).await.unwrap();
}

/// Waits, by events, until the job is so far.
async fn reaches(monitor: &Monitor, id: &str, wanted: JobStatus) {
    let mut events = monitor.events();
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let jobs = monitor.call(&QueryJobs {}).await.unwrap();
        let job = jobs.into_iter().find(|job| job.id == id).expect("the job");
        if job.status == wanted {
            return;
        }
        assert!(Instant::now() < deadline, "{job:?}");
        let _ = tokio::time::timeout(Duration::from_millis(200), events.recv()).await;
    }
}

#[tokio::test]
async fn a_machine_says_what_it_is_and_has() {
    let Some(machine) = Machine::start(8 * MIB) else { return };
    let monitor = machine.monitor().await;
    assert!(monitor.version().major >= 7);
    assert_eq!(monitor.directory(), Some(machine.path("")));
    let name = monitor.call(&QueryName {}).await.unwrap();
    assert_eq!(name.name.as_deref(), Some("machine"));
    let state = monitor.call(&QueryStatus {}).await.unwrap();
    assert_eq!((state.running, state.status.as_str()), (false, "prelaunch"));
    let blocks = monitor.call(&QueryBlock {}).await.unwrap();
    let [block] = blocks.as_slice() else { panic!("{blocks:?}") };
    let inserted = block.inserted.as_ref().unwrap();
    assert_eq!(inserted.node.as_deref(), Some("top"));
    assert_eq!((inserted.file.as_str(), inserted.image.virtual_size), ("a.raw", 8 * MIB));
    assert!(block.qdev.as_deref().unwrap().starts_with("/machine/peripheral/vda"));
    let nodes = monitor.call(&QueryNodes { flat: true }).await.unwrap();
    assert!(nodes.iter().any(|one| one.node.as_deref() == Some("low")), "{nodes:?}");
}

#[tokio::test]
async fn a_disk_moves_to_a_raw_and_to_a_qcow2_image() {
    for format in ["raw", "qcow2"] {
        let Some(machine) = Machine::start(8 * MIB) else { return };
        let monitor = machine.monitor().await;
        add_image(&machine, &monitor, format, 8 * MIB).await;
        mirror(&monitor, 0).await;
        reaches(&monitor, "copy", JobStatus::Ready).await;
        monitor.call(&CompleteJob { id: "copy".into() }).await.unwrap();
        reaches(&monitor, "copy", JobStatus::Concluded).await;
        monitor.call(&DismissJob { id: "copy".into() }).await.unwrap();
        for name in ["top", "low"] {
            monitor.call(&DeleteNode { node_name: name.into() }).await.unwrap();
        }
        let blocks = monitor.call(&QueryBlock {}).await.unwrap();
        let now = blocks[0].inserted.as_ref().unwrap();
        assert_eq!((now.node.as_deref(), now.driver.as_str()), (Some("new"), format));
        assert_eq!(now.image.virtual_size, 8 * MIB);
    }
}

#[tokio::test]
async fn a_job_is_limited_and_given_up() {
    let Some(machine) = Machine::start(64 * MIB) else { return };
    let monitor = machine.monitor().await;
    add_image(&machine, &monitor, "raw", 64 * MIB).await;
    mirror(&monitor, MIB).await;
    monitor.call(&SetSpeed { id: "copy".into(), speed: 3 * MIB }).await.unwrap();
    monitor.call(&StopJob { id: "copy".into() }).await.unwrap();
    reaches(&monitor, "copy", JobStatus::Concluded).await;
    let blocks = monitor.call(&QueryBlock {}).await.unwrap();
    assert_eq!(blocks[0].inserted.as_ref().unwrap().node.as_deref(), Some("top"));
}

#[tokio::test]
async fn response_times_are_counted_where_that_is_asked_for() {
    let Some(machine) = Machine::start(8 * MIB) else { return };
    let monitor = machine.monitor().await;
    let qdev = monitor.call(&QueryBlock {}).await.unwrap()[0].qdev.clone().unwrap();
    let stats = async || {
        let all = monitor.call(&QueryBlockStats {}).await.unwrap();
        all.into_iter().next().unwrap().stats
    };
    assert!(!stats().await.has_times());
    monitor.call(&LatencyHistogram::fine(qdev.clone())).await.unwrap();
    assert!(stats().await.has_times());
    let before = stats().await;
    let window = stats().await.since(&before, Nanos::from_millis(100));
    assert_eq!(window.total().operations, 0, "nobody runs in there");
    monitor.call(&LatencyHistogram::none(qdev)).await.unwrap();
    assert!(!stats().await.has_times());
}

#[tokio::test]
async fn a_refusal_says_why_and_the_connection_goes_on() {
    let Some(machine) = Machine::start(MIB) else { return };
    let monitor = machine.monitor().await;
    let error = monitor.call(&StopJob { id: "none".into() }).await.unwrap_err();
    assert!(error.is_refusal() && error.to_string().contains("job-cancel"), "{error}");
    monitor.call(&QueryStatus {}).await.unwrap();
}

#[tokio::test]
async fn a_machine_that_dies_ends_all_calls() {
    let Some(mut machine) = Machine::start(MIB) else { return };
    let monitor = machine.monitor().await;
    let mut events = monitor.events();
    machine.child().kill().unwrap();
    machine.child().wait().unwrap();
    let error = monitor.call(&QueryStatus {}).await.unwrap_err();
    assert!(matches!(error, QmpError::Gone), "{error}");
    assert!(monitor.is_over());
    assert_ne!(events.try_recv().ok(), Some(Event::Reset));
}

/// A program at a socket that says something to whoever connects, and then nothing.
fn program(says: impl Into<Vec<u8>>) -> (tempfile::TempDir, std::path::PathBuf) {
    let says = says.into();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            client.write_all(&says).await.unwrap();
            tokio::spawn(async move {
                let mut sink = [0; 64];
                while client.read(&mut sink).await.is_ok_and(|count| count > 0) {}
            });
        }
    });
    (dir, path)
}

#[tokio::test]
async fn a_monitor_that_hangs_is_reported_in_time() {
    // What happens while somebody connects may come before the greeting.
    for says in [String::new(), GREETING.into(), format!("{EVENT}{GREETING}")] {
        let (_dir, path) = program(says);
        let began = Instant::now();
        let error = Monitor::connect(&path).await.unwrap_err();
        assert!(began.elapsed() < ANSWER_WITHIN + Duration::from_secs(1));
        let silent =
            matches!(error, QmpError::NoGreeting { .. } | QmpError::Silent { .. });
        assert!(silent, "{error}");
    }
}

#[tokio::test]
async fn what_is_no_monitor_is_said_to_be_none() {
    for says in [&b"SSH-2.0-OpenSSH\r\n"[..], b"\xff\xfe\n", b"{\"return\": {}}\n"] {
        let (_dir, path) = program(says);
        let error = Monitor::connect(&path).await.unwrap_err();
        assert!(matches!(error, QmpError::Garbage(_)), "{error}");
    }
    let error = Monitor::connect("/nonexistent/qmp".as_ref()).await.unwrap_err();
    assert!(error.to_string().contains("/nonexistent/qmp"), "{error}");
}

#[tokio::test]
async fn a_monitor_that_takes_no_more_connections_hangs_and_has_not_gone() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("full.qmp");
    let socket = tokio::net::UnixSocket::new_stream().unwrap();
    socket.bind(&path).unwrap();
    let _listener = socket.listen(1).unwrap();
    let mut waiting = Vec::new();
    while let Ok(one) = tokio::net::UnixStream::connect(&path).await {
        waiting.push(one);
        assert!(waiting.len() < 16, "the queue is never full");
    }
    let error = Monitor::connect(&path).await.expect_err("nobody answers");
    let error = sterna_qemu::QemuError::from(error);
    assert!(error.is_silent() && !error.is_gone(), "{error}");
    let nobody = scratch.path().join("nobody.qmp");
    let error = Monitor::connect(&nobody).await.expect_err("nobody is there");
    let error = sterna_qemu::QemuError::from(error);
    assert!(error.is_gone() && !error.is_silent(), "{error}");
}
