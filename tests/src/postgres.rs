//! A PostgreSQL server of a test's own, to be killed and started again.
//!
//! It keeps its files in a temporary directory and listens on a unix socket there. It
//! does not run as root: where the test does, it is the user `postgres`, or else
//! `nobody`.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::programs::{self, skip};
use crate::wait::{seconds, until};

/// The database for a store.
const DATABASE: &str = "shop";
/// Who may do everything, and needs no password.
const OWNER: &str = "owner";
/// Who needs one.
pub const GUARDED: &str = "guarded";
/// It.
pub const PASSWORD: &str = "open sesame";

/// A server.
pub struct Postgres {
    dir: TempDir,
    programs: PathBuf,
    user: Option<(u32, u32)>,
    server: Option<Child>,
}

impl Postgres {
    /// A server that runs, if PostgreSQL is installed; else the test is skipped.
    #[track_caller]
    pub fn given() -> Option<Postgres> {
        let Some(programs) = find() else {
            skip("PostgreSQL's server not installed (make deps)");
            return None;
        };
        // Below the system's directory, which everybody can reach.
        let dir = tempfile::tempdir().expect("make a directory");
        let user = rustix::process::geteuid().is_root().then(|| {
            let user =
                number("--user", "postgres").or_else(|| number("--user", "nobody"));
            let user = user.expect("a user who is not root");
            (user, number("--group", &user.to_string()).expect("a group"))
        });
        let mut postgres = Postgres { dir, programs, user, server: None };
        postgres.own(postgres.dir.path());
        let data = postgres.data();
        let mut initdb = postgres.command("initdb");
        initdb.args(["--no-sync", "--auth=trust", "--username", OWNER, "-D"]).arg(&data);
        let output = initdb.output().expect("start initdb");
        assert!(output.status.success(), "initdb: {}", programs::both(&output));
        let rules = format!("local all {GUARDED} scram-sha-256\nlocal all all trust\n");
        fs::write(data.join("pg_hba.conf"), rules).expect("write the rules");
        postgres.restart();
        postgres.sql_in("postgres", &format!("CREATE DATABASE {DATABASE}"));
        postgres.sql(&format!("CREATE USER {GUARDED} PASSWORD '{PASSWORD}'"));
        Some(postgres)
    }

    /// The store's database, for the owner.
    pub fn uri(&self) -> String {
        self.uri_of(OWNER, DATABASE)
    }

    /// A database for a user.
    pub fn uri_of(&self, user: &str, database: &str) -> String {
        format!("postgres:///{database}?host={}&user={user}", self.dir.path().display())
    }

    /// Where a server on this directory would listen.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// What the store's database answers, a line for each row.
    #[track_caller]
    pub fn sql(&self, sql: &str) -> String {
        self.sql_in(DATABASE, sql)
    }

    /// What a database answers.
    #[track_caller]
    pub fn sql_in(&self, database: &str, sql: &str) -> String {
        let output = self.psql(database, sql).output().expect("start psql");
        let said = programs::both(&output);
        assert!(output.status.success(), "psql: {sql}: {said}");
        said.trim_end().to_owned()
    }

    /// Begins with something that takes its time.
    pub fn begin(&self, sql: &str) -> Child {
        self.psql(DATABASE, sql).stdout(Stdio::null()).spawn().expect("start psql")
    }

    /// Makes a directory a tablespace.
    #[track_caller]
    pub fn tablespace(&self, name: &str, dir: &Path) {
        fs::create_dir_all(dir).expect("make a directory");
        self.own(dir);
        self.sql(&format!("CREATE TABLESPACE {name} LOCATION '{}'", dir.display()));
    }

    /// All of it is gone at once, without a goodbye.
    pub fn kill(&mut self) {
        let mut server = self.server.take().expect("the server runs");
        // The postmaster is stopped first: it would start others.
        kill_process(Pid::from_child(&server), Signal::STOP).expect("stop PostgreSQL");
        for child in children(server.id()) {
            // One that has just ended by itself is as good.
            let _ = kill_process(child, Signal::KILL);
        }
        server.kill().expect("kill PostgreSQL");
        server.wait().expect("wait for PostgreSQL");
    }

    /// It comes (back), and lets people in.
    #[track_caller]
    pub fn restart(&mut self) {
        assert!(self.server.is_none(), "PostgreSQL runs already");
        until("PostgreSQL to let people in", seconds(60), || {
            let ended = match &mut self.server {
                Some(server) => server.try_wait().expect("ask for PostgreSQL").is_some(),
                None => true,
            };
            if ended {
                // It refuses to start as long as a process of the last one is there.
                self.server = Some(self.start());
            }
            let mut ready = self.command("psql");
            ready.args(["-h"]).arg(self.dir.path()).args(["-U", OWNER, "postgres"]);
            let output = ready.args(["-c", "SELECT 1"]).output().expect("start psql");
            output.status.success().then_some(())
        });
    }

    fn start(&self) -> Child {
        let log = self.dir.path().join("log");
        let log = File::options().create(true).append(true).open(log);
        self.command("postgres")
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(self.dir.path())
            .args(["-c", "listen_addresses="])
            // Shared memory of a server that is killed goes with its directory.
            .args(["-c", "dynamic_shared_memory_type=mmap"])
            .stdout(Stdio::null())
            .stderr(log.expect("open PostgreSQL's log"))
            .spawn()
            .expect("start PostgreSQL")
    }

    fn psql(&self, database: &str, sql: &str) -> Command {
        let mut psql = self.command("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h"])
            .arg(self.dir.path())
            .args(["-U", OWNER, "-c", sql, database]);
        psql
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Gives a directory to the server's user.
    fn own(&self, dir: &Path) {
        if let Some((user, group)) = self.user {
            chown(dir, Some(user), Some(group)).expect("give a directory away");
        }
    }

    /// One of PostgreSQL's programs, as the server's user.
    fn command(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        let mut command = match self.user {
            None => Command::new(program),
            Some((user, group)) => {
                let mut command = programs::command("setpriv");
                command.arg(format!("--reuid={user}")).arg(format!("--regid={group}"));
                command.arg("--clear-groups").arg(program);
                command
            }
        };
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.kill();
        }
    }
}

/// Where PostgreSQL's programs are: Debian keeps them off the path.
fn find() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let places = versions.map(|version| version.path().join("bin"));
    let mut places: Vec<PathBuf> =
        places.filter(|dir| dir.join("initdb").is_file()).collect();
    places.sort();
    places.pop().or_else(|| programs::find("initdb")?.parent().map(Path::to_owned))
}

/// A user's number, or its group's.
fn number(what: &str, user: &str) -> Option<u32> {
    let (ok, said) = programs::attempt("id", [what, user]);
    if ok { said.trim().parse().ok() } else { None }
}

/// The processes that a process has started.
fn children(of: u32) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").expect("read /proc").flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name is in parentheses; state and parent come after it.
        let tail = stat.rsplit(')').next().unwrap_or_default();
        tail.split_whitespace().nth(1).is_some_and(|parent| parent == of.to_string())
    };
    numbers.filter(is_child).filter_map(Pid::from_raw).collect()
}
