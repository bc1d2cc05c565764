//! The database file: whose it is, its version, and how it comes up to date.
//!
//! `application_id` is the magic that tells our file from any other SQLite
//! file, `user_version` the schema's number. A newer schema is refused, an
//! older one is brought up to date in one transaction.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use sterna_engine::place;

use super::{StoreError, cannot};

/// "STRN": this file is Sterna's.
const APPLICATION_ID: i64 = 0x5354_524E;

/// The schema that this Sterna writes: the number of steps to it.
pub(super) const VERSION: i64 = 19;

/// What brings a database from each version to the next.
pub(super) const STEPS: [&str; 19] = [
    FIRST,
    SECOND,
    THIRD,
    FOURTH,
    FIFTH,
    SIXTH,
    SEVENTH,
    EIGHTH,
    NINTH,
    TENTH,
    ELEVENTH,
    TWELFTH,
    THIRTEENTH,
    FOURTEENTH,
    FIFTEENTH,
    SIXTEENTH,
    SEVENTEENTH,
    EIGHTEENTH,
    NINETEENTH,
];

const _: () = assert!(STEPS.len() as u64 == VERSION.unsigned_abs());

const FIRST: &str = "
    CREATE TABLE datastores (
        name      TEXT PRIMARY KEY,
        location  TEXT NOT NULL UNIQUE,
        shape     TEXT,
        added     INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE disks (
        id          TEXT PRIMARY KEY,          -- 32 hexadecimal digits
        name        TEXT NOT NULL UNIQUE,
        size        INTEGER NOT NULL,          -- bytes
        datastore   TEXT NOT NULL REFERENCES datastores (name),
        image       TEXT NOT NULL,             -- what its datastore calls it
        provision   TEXT NOT NULL,
        generation  INTEGER NOT NULL,
        created     INTEGER NOT NULL,
        UNIQUE (datastore, image)
    ) STRICT;

    -- A migration outlives its disk and its datastores, so it refers to none.
    CREATE TABLE migrations (
        id                      INTEGER PRIMARY KEY AUTOINCREMENT,
        disk                    TEXT NOT NULL,
        name                    TEXT NOT NULL,
        size                    INTEGER NOT NULL,
        from_datastore          TEXT NOT NULL,
        from_image              TEXT NOT NULL,
        to_datastore            TEXT NOT NULL,
        to_image                TEXT NOT NULL,
        provision               TEXT NOT NULL,
        reads_zero              INTEGER NOT NULL,  -- a new destination image
        rate                    INTEGER,           -- bytes per second
        verify                  INTEGER NOT NULL,
        keep_source             INTEGER NOT NULL,
        step                    TEXT NOT NULL,
        source_generation       INTEGER NOT NULL,
        destination_generation  INTEGER NOT NULL,
        attempts                INTEGER NOT NULL DEFAULT 0,  -- of switch-overs
        cancel                  INTEGER NOT NULL,  -- asked for
        pause                   TEXT,              -- JSON: who, why, what to do
        started                 INTEGER NOT NULL,
        ended                   INTEGER,
        note                    TEXT,              -- how it ended, if not as asked
        application             TEXT NOT NULL,     -- JSON: what was noticed
        report                  TEXT               -- JSON: what it came to
    ) STRICT;

    -- One disk, one migration.
    CREATE UNIQUE INDEX one_migration_per_disk ON migrations (disk)
        WHERE step NOT IN ('completed', 'cancelled');
";

const SECOND: &str = "
    -- The image is the operator's own file.
    ALTER TABLE disks ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;

    -- The source image is the operator's own file; known once it is left.
    ALTER TABLE migrations ADD COLUMN left_imported INTEGER NOT NULL DEFAULT 0;

    -- What the copier has done so far, over restarts of the daemon.
    ALTER TABLE migrations ADD COLUMN copied INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE migrations ADD COLUMN copying_ms INTEGER NOT NULL DEFAULT 0;
    -- It began with an old copy, so all of it is compared.
    ALTER TABLE migrations ADD COLUMN compares INTEGER NOT NULL DEFAULT 0;
";

const THIRD: &str = "
    -- What service levels speak of: a set of disks.
    CREATE TABLE classes (
        id           INTEGER PRIMARY KEY AUTOINCREMENT,
        name         TEXT NOT NULL UNIQUE,
        shares       INTEGER NOT NULL,
        reservation  TEXT,              -- JSON: so much per second
        created      INTEGER NOT NULL
    ) STRICT;

    -- A disk is in one class at most, and leaves it when it goes.
    CREATE TABLE members (
        disk   TEXT PRIMARY KEY REFERENCES disks (id) ON DELETE CASCADE,
        class  INTEGER NOT NULL REFERENCES classes (id) ON DELETE CASCADE
    ) STRICT;

    -- A migration is kept for ever, so a policy that ends with one finds it.
    CREATE TABLE policies (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        class      INTEGER NOT NULL REFERENCES classes (id) ON DELETE CASCADE,
        aim        TEXT NOT NULL,       -- JSON
        schedule   TEXT,                -- Mon-Fri 22:00-06:00
        until_job  INTEGER REFERENCES migrations (id),
        created    INTEGER NOT NULL
    ) STRICT;

    -- What must hold for the application while its disk moves.
    ALTER TABLE migrations ADD COLUMN guard TEXT;   -- JSON

    -- The copies of all migrations.
    INSERT INTO classes (id, name, shares, created)
        VALUES (0, 'migration', 1000, unixepoch());
";

const FOURTH: &str = "
    -- Where a virtual machine's hypervisor finds the disk: a path.
    ALTER TABLE disks ADD COLUMN vhost_user TEXT;
    CREATE UNIQUE INDEX one_disk_per_socket ON disks (vhost_user);

    -- Virtual machines that exist already, and whose disks QEMU serves.
    CREATE TABLE vms (
        name   TEXT PRIMARY KEY,
        reach  TEXT NOT NULL UNIQUE,    -- JSON: a QMP socket, or libvirt and a domain
        added  INTEGER NOT NULL
    ) STRICT;

    -- Moves of their disks; they have their numbers from the migrations, and outlive
    -- machine and datastore.
    CREATE TABLE vm_moves (
        id            INTEGER PRIMARY KEY,
        vm            TEXT NOT NULL,
        device        TEXT NOT NULL,
        size          INTEGER NOT NULL,
        format        TEXT NOT NULL,
        from_place    TEXT NOT NULL,
        from_image    TEXT NOT NULL,
        to_datastore  TEXT NOT NULL,
        to_image      TEXT NOT NULL,
        rate          INTEGER,          -- bytes per second
        guard         TEXT NOT NULL,    -- JSON
        step          TEXT NOT NULL,
        paused        INTEGER NOT NULL, -- asked for
        cancel        INTEGER NOT NULL, -- asked for
        started       INTEGER NOT NULL,
        ended         INTEGER,
        note          TEXT,             -- how it ended, if not as asked
        application   TEXT NOT NULL,    -- JSON: what was noticed
        report        TEXT              -- JSON: what it came to
    ) STRICT;

    -- One disk, one move.
    CREATE UNIQUE INDEX one_move_per_vm_disk ON vm_moves (vm, device)
        WHERE step NOT IN ('completed', 'cancelled');
";

const FIFTH: &str = r#"
    -- What a move makes of a machine's disk.
    ALTER TABLE vm_moves ADD COLUMN kind TEXT NOT NULL DEFAULT '"move"';   -- JSON
"#;

const SIXTH: &str = "
    -- A policy ends with a move of a machine's disk as well, which is kept for ever, too.
    ALTER TABLE policies ADD COLUMN until_move INTEGER REFERENCES vm_moves (id);
";

const SEVENTH: &str = "
    -- It has ended, and its machine, which did not answer, may still have something of it.
    ALTER TABLE vm_moves ADD COLUMN untidy INTEGER NOT NULL DEFAULT 0;
";

const EIGHTH: &str = "
    -- What was known of it when it began.
    ALTER TABLE migrations ADD COLUMN forecast TEXT;   -- JSON
    -- It stood still, or something else was asked of it: what it took says nothing of
    -- what it was predicted to take.
    ALTER TABLE migrations ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
";

const NINTH: &str = "
    -- What a disk's application did in an hour.
    CREATE TABLE hours (
        disk         TEXT NOT NULL REFERENCES disks (id) ON DELETE CASCADE,
        hour         INTEGER NOT NULL,  -- when it began: seconds since 1970
        outstanding  REAL NOT NULL,     -- requests under way, on average
        response_us  REAL NOT NULL,     -- what one took, on average
        there        REAL NOT NULL,     -- the part of the time in which it asked
        PRIMARY KEY (disk, hour)
    ) STRICT;
";

const TENTH: &str = "
    -- What Storage DRS is told to do; no row before anything was changed.
    CREATE TABLE storage_drs (
        id        INTEGER PRIMARY KEY CHECK (id = 1),
        settings  TEXT NOT NULL         -- JSON
    ) STRICT;

    -- Which disks belong together on a datastore, and which do not.
    CREATE TABLE storage_rules (
        name      TEXT PRIMARY KEY,
        wish      TEXT NOT NULL,        -- JSON
        strength  TEXT NOT NULL,        -- JSON
        created   INTEGER NOT NULL
    ) STRICT;

    -- A disk leaves its rules when it goes.
    CREATE TABLE storage_rule_disks (
        rule  TEXT NOT NULL REFERENCES storage_rules (name) ON DELETE CASCADE,
        disk  TEXT NOT NULL REFERENCES disks (id) ON DELETE CASCADE,
        PRIMARY KEY (rule, disk)
    ) STRICT;

    -- The migrations that Storage DRS has begun by itself; they are kept for ever, too.
    CREATE TABLE balanced_moves (
        migration  INTEGER PRIMARY KEY REFERENCES migrations (id),
        balanced   TEXT NOT NULL        -- JSON: what was promised, and what came of it
    ) STRICT;
";

const ELEVENTH: &str = "
    -- Where virtual machines run.
    CREATE TABLE hosts (
        name    TEXT PRIMARY KEY,
        cpu     REAL NOT NULL,          -- processors
        memory  INTEGER NOT NULL,       -- bytes
        added   INTEGER NOT NULL
    ) STRICT;

    -- What sets of machines are promised of all hosts together.
    CREATE TABLE pools (
        id       INTEGER PRIMARY KEY AUTOINCREMENT,
        name     TEXT NOT NULL UNIQUE,
        parent   TEXT REFERENCES pools (name),
        cpu      TEXT NOT NULL,         -- JSON: reservation, limit, shares
        memory   TEXT NOT NULL,         -- JSON
        created  INTEGER NOT NULL
    ) STRICT;

    -- Where a machine is, which pool it is in, and how it came there.
    CREATE TABLE seats (
        vm     TEXT PRIMARY KEY REFERENCES vms (name) ON DELETE CASCADE,
        host   TEXT REFERENCES hosts (name),
        pool   TEXT REFERENCES pools (name) ON DELETE SET NULL,
        trail  TEXT                     -- JSON: its moves
    ) STRICT;

    -- Which machines are to be together, apart, or on some hosts.
    CREATE TABLE rules (
        name     TEXT PRIMARY KEY,
        kind     TEXT NOT NULL,         -- JSON
        hosts    TEXT NOT NULL,         -- JSON: names
        must     INTEGER NOT NULL,
        created  INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE rule_vms (
        rule  TEXT NOT NULL REFERENCES rules (name) ON DELETE CASCADE,
        vm    TEXT NOT NULL REFERENCES vms (name) ON DELETE CASCADE,
        PRIMARY KEY (rule, vm)
    ) STRICT;

    -- When moves of machines are recommended.
    CREATE TABLE drs (
        one       INTEGER PRIMARY KEY CHECK (one = 1),
        settings  TEXT NOT NULL         -- JSON
    ) STRICT;
";

const TWELFTH: &str = "
    -- When it was put in maintenance: nothing new goes there.
    ALTER TABLE datastores ADD COLUMN maintenance INTEGER;

    -- Plans to move many disks. They outlive disks and datastores, so they refer to none.
    CREATE TABLE plans (
        id       INTEGER PRIMARY KEY AUTOINCREMENT,
        state    TEXT NOT NULL,     -- JSON
        design   TEXT NOT NULL,     -- JSON: what was asked for, and what was there
        closed   TEXT NOT NULL,     -- JSON: the datastores that are left alone, and why
        created  INTEGER NOT NULL,
        started  INTEGER,
        ended    INTEGER
    ) STRICT;

    CREATE TABLE plan_moves (
        plan     INTEGER NOT NULL REFERENCES plans (id) ON DELETE CASCADE,
        place    INTEGER NOT NULL,  -- in the order in which they are looked at
        disk     TEXT NOT NULL,     -- 32 hexadecimal digits
        design   TEXT NOT NULL,     -- JSON: what was planned
        course   TEXT NOT NULL,     -- JSON: how far it is
        PRIMARY KEY (plan, place)
    ) STRICT, WITHOUT ROWID;
";

const THIRTEENTH: &str = "
    -- The program that starts virtual machines there.
    ALTER TABLE hosts ADD COLUMN program TEXT;

    -- Ways of virtual machines from one QEMU to another. They outlive machines and hosts,
    -- so they refer to none.
    CREATE TABLE transfers (
        id       INTEGER PRIMARY KEY AUTOINCREMENT,
        vm       TEXT NOT NULL,
        step     TEXT NOT NULL,     -- JSON
        design   TEXT NOT NULL,     -- JSON: from where to where, and why
        cancel   INTEGER NOT NULL,  -- asked for
        started  INTEGER NOT NULL,
        end      TEXT               -- JSON: when and how it ended
    ) STRICT;
";

const FOURTEENTH: &str = "
    -- The part of its requests' time that was writes'; of older hours it is not known.
    ALTER TABLE hours ADD COLUMN writes REAL NOT NULL DEFAULT 0;
";

const FIFTEENTH: &str = "
    -- It has ended, and nobody has seen in which image the last writes are.
    ALTER TABLE vm_moves ADD COLUMN unclear INTEGER NOT NULL DEFAULT 0;
";

const SIXTEENTH: &str = "
    -- What runs on the disks of a plan's tiles, and stands still while they move.
    CREATE TABLE plan_workloads (
        plan    INTEGER NOT NULL REFERENCES plans (id) ON DELETE CASCADE,
        tile    INTEGER NOT NULL,   -- among the plan's
        course  TEXT NOT NULL,      -- JSON: how far it is
        PRIMARY KEY (plan, tile)
    ) STRICT, WITHOUT ROWID;
";

const SEVENTEENTH: &str = "
    -- What a directory is known by: 32 hexadecimal digits.
    ALTER TABLE datastores ADD COLUMN mark TEXT;
";

const EIGHTEENTH: &str = "
    -- Sectors of the source that cannot be read are left behind.
    ALTER TABLE migrations ADD COLUMN skip_bad INTEGER NOT NULL DEFAULT 0;
    -- What was found out about both images.
    ALTER TABLE migrations ADD COLUMN found TEXT;   -- JSON
";

const NINETEENTH: &str = "
    -- What the guard of a migration has found out.
    ALTER TABLE migrations ADD COLUMN experience TEXT;   -- JSON
";

/// How long to wait for someone who looks inside with the sqlite3 tool: less than the API
/// waits for the database, so that whoever asks hears of the lock.
const BUSY: Duration = Duration::from_secs(3);

/// Opens the database, made or brought up to date as need be.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    make_private(path).map_err(|error| StoreError::Sqlite {
        what: "make a file",
        source: rusqlite::Error::ToSqlConversionFailure(Box::new(error)),
    })?;
    let mut connection = connect(path, BUSY)?;
    upgrade(&mut connection)?;
    Ok(connection)
}

/// Connects to a database that is there, to wait for others' locks as long as
/// `busy`.
pub(super) fn connect(path: &Path, busy: Duration) -> Result<Connection, StoreError> {
    let mut connection = Connection::open(path).map_err(cannot("open the file"))?;
    keep_to_itself(&connection, path)?;
    check(&connection, path)?;
    // A transaction that reads before it writes would be refused at once if
    // another connection wrote meanwhile; one that begins as a writer waits.
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    let set_up = connection.busy_timeout(busy).and_then(|()| {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // In WAL mode only FULL makes a commit durable before it returns.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)
    });
    set_up.map_err(cannot("set up the connection"))?;
    Ok(connection)
}

/// SQLite maps the index of its WAL (`-shm`) into memory. Where a file system writes to
/// new places and has no room left, a store to such memory ends the process by a signal.
/// There, the index is kept in plain memory, at the price that nobody else can look into
/// the database meanwhile. Before anything is read.
fn keep_to_itself(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let copied = File::open(path).and_then(|file| place::is_copied_on_write(&file));
    if copied.unwrap_or(false) {
        let kept = connection.pragma_update(None, "locking_mode", "EXCLUSIVE");
        kept.map_err(cannot("set up the connection"))?;
    }
    Ok(())
}

/// SQLite gives its other files the mode of this one.
fn make_private(path: &Path) -> io::Result<()> {
    if fs::exists(path)? {
        return Ok(());
    }
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    Ok(())
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}

/// Refuses files that are not ours or from the future, before writing anything.
fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let read = number(connection, "application_id")
        .and_then(|magic| Ok((magic, number(connection, "user_version")?)))
        .and_then(|(magic, version)| {
            let count = "SELECT count(*) FROM sqlite_schema";
            let tables: i64 = connection.query_row(count, [], |row| row.get(0))?;
            Ok((magic, version, tables))
        });
    let (magic, version, tables) = match read {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            return Err(StoreError::Foreign(path.into()));
        }
        read => read.map_err(cannot("read the schema"))?,
    };
    let empty = magic == 0 && version == 0 && tables == 0;
    if !empty && magic != APPLICATION_ID {
        return Err(StoreError::Foreign(path.into()));
    }
    if version > VERSION {
        return Err(StoreError::Newer { found: version });
    }
    Ok(())
}

fn upgrade(connection: &mut Connection) -> Result<(), StoreError> {
    let mut apply = || -> rusqlite::Result<()> {
        let transaction = connection.transaction()?;
        let version = number(&transaction, "user_version")?;
        for step in STEPS.iter().skip(usize::try_from(version).unwrap_or(0)) {
            transaction.execute_batch(step)?;
        }
        if version != VERSION {
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        transaction.commit()
    };
    apply().map_err(cannot("bring the schema up to date"))
}
