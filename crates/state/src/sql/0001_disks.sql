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
