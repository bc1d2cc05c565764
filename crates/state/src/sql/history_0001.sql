-- What a disk's requests usually take, as it was learned.
CREATE TABLE usual (
    disk     TEXT NOT NULL,     -- 32 hex digits
    kind     INTEGER NOT NULL,  -- reads and writes by length, and requests per second
    since    INTEGER NOT NULL,  -- since when it is learned: seconds since 1970
    weights  BLOB NOT NULL,     -- of each level, in tenths of a step: 16 bits each, the low byte first
    PRIMARY KEY (disk, kind)
) STRICT, WITHOUT ROWID;
-- What a disk did in an hour.
CREATE TABLE disk_hours (
    disk          TEXT NOT NULL,
    hour          INTEGER NOT NULL,  -- when it began: seconds since 1970
    read_iops     REAL NOT NULL,
    write_iops    REAL NOT NULL,
    read_bytes_s  REAL NOT NULL,
    write_bytes_s REAL NOT NULL,
    outstanding   REAL NOT NULL,
    p50_us        REAL,              -- percentiles are those of the worst window
    p99_us        REAL,
    max_us        REAL,
    queue_us      REAL,
    service_us    REAL,
    windows       INTEGER NOT NULL,  -- how many these are
    PRIMARY KEY (disk, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX disk_hours_at ON disk_hours (hour);
