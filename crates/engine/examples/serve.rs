//! Serves one file over NBD on a Unix socket, for benchmarks:
//! `serve FILE SOCKET [--io uring|threads] [--buffered] [--memory MIB] [--reactors N]
//! [--shape SHAPE] [--vhost-user SOCKET]`.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;

use sterna_core::DiskId;
use sterna_engine::{Budget, Config, DiskSpec, Engine, ImageSpec, IoChoice, Listener};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = Config { reactors: 1, ..Config::default() };
    let mut budget = Arc::default();
    let (mut paths, mut direct, mut machine) = (Vec::new(), true, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or("a value is missing");
        match argument.as_str() {
            "--io" => {
                config.io = match value()?.as_str() {
                    "uring" => IoChoice::Uring,
                    "threads" => IoChoice::Threads,
                    _ => return Err("--io is `uring` or `threads`".into()),
                }
            }
            "--memory" => config.memory = value()?.parse::<u64>()? << 20,
            "--reactors" => config.reactors = value()?.parse()?,
            "--shape" => budget = Arc::new(Budget::new(value()?.parse()?)),
            "--vhost-user" => machine = Some(PathBuf::from(value()?)),
            "--buffered" => direct = false,
            _ => paths.push(PathBuf::from(argument)),
        }
    }
    let [path, socket] = paths.as_slice() else {
        return Err("serve FILE SOCKET".into());
    };
    let size = std::fs::metadata(path)?.len();
    let engine = Engine::start(&config)?;
    let image = ImageSpec::File { path: path.clone(), direct };
    engine.attach(DiskSpec {
        id: DiskId(1),
        name: "disk".into(),
        size,
        image,
        budget,
        unnamed: false,
        keeps_room: false,
        account: None,
    })?;
    if socket.exists() {
        std::fs::remove_file(socket)?;
    }
    engine.listen(Listener::Unix(UnixListener::bind(socket)?))?;
    if let Some(machine) = machine {
        engine.serve(DiskId(1), UnixListener::bind(machine)?)?;
    }
    eprintln!("{} bytes of {} over {:?}", size, path.display(), engine.io());
    loop {
        std::thread::park();
    }
}
