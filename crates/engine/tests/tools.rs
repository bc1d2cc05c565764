//! Programs that speak NBD, where they are installed.

mod common;

use std::process::Command;

use common::{Random, Stage, on_both};

/// Runs a program; `None` (and a note) if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = match Command::new(program).args(arguments).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: {program} is not installed");
            return None;
        }
        Err(error) => panic!("{program}: {error}"),
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {text}{errors}");
    Some(text)
}

#[test]
fn nbdinfo_understands_the_export() {
    on_both(|io| {
        let stage = Stage::new(io, 16 << 20);
        let Some(info) = run("nbdinfo", &[&stage.uri()]) else { return };
        for line in [
            "export-size: 16777216",
            "base:allocation",
            "can_multi_conn: true",
            "can_fua: true",
            "block_size_minimum: 512",
        ] {
            assert!(info.contains(line), "{line} in {info}");
        }
        let list = format!("nbd+unix:///?socket={}", stage.socket().display());
        assert!(run("nbdinfo", &["--list", &list]).unwrap().contains("export=\"disk\""));
    });
}

#[test]
fn nbdcopy_copies_there_and_back() {
    on_both(|io| {
        let stage = Stage::new(io, 40 << 20);
        let path = |name: &str| stage.directory.path().join(name).display().to_string();
        let (original, copy) = (path("original"), path("copy"));
        let mut bytes = Random(8).bytes(40 << 20);
        bytes[10 << 20..20 << 20].fill(0);
        std::fs::write(&original, &bytes).unwrap();
        if run("nbdcopy", &["--flush", &original, &stage.uri()]).is_none() {
            return;
        }
        assert!(std::fs::read(stage.file()).unwrap() == bytes);
        run("nbdcopy", &[&stage.uri(), &copy]);
        assert!(std::fs::read(&copy).unwrap() == bytes);
    });
}

#[test]
fn qemu_io_writes_verifies_and_discards() {
    on_both(|io| {
        let stage = Stage::new(io, 16 << 20);
        let commands = [
            "write -P 0xab 1M 3M",
            "read -P 0xab 1M 3M",
            "write -f -P 0xcd 512 1024",
            "read -P 0xcd 512 1024",
            "discard 2M 1M",
            "read -P 0 2M 1M",
            "write -z -u 3M 512k",
            "read -P 0 3M 512k",
            "aio_write -P 1 0 64k",
            "aio_write -P 2 64k 64k",
            "aio_flush",
            "read -P 2 64k 64k",
            "flush",
            "map",
        ];
        let uri = stage.uri();
        let mut arguments = vec!["-f", "raw", "-t", "none"];
        commands.iter().for_each(|command| arguments.extend(["-c", command]));
        arguments.push(&uri);
        if let Some(text) = run("qemu-io", &arguments) {
            assert!(!text.contains("failed"), "{text}");
        }
    });
}

#[test]
fn fio_verifies_what_it_wrote() {
    on_both(|io| {
        let stage = Stage::new(io, 64 << 20);
        let uri = format!("--uri={}", stage.uri());
        for arguments in [
            ["--bs=4k", "--iodepth=64", "--size=16M"],
            ["--bsrange=512-2M", "--iodepth=16", "--size=64M"],
        ] {
            let common = [
                "--name=t",
                "--ioengine=nbd",
                "--rw=randwrite",
                "--verify=crc32c",
                "--verify_fatal=1",
                "--verify_state_save=0",
                &uri,
            ];
            if run("fio", &[&common[..], &arguments[..]].concat()).is_none() {
                return;
            }
        }
    });
}
