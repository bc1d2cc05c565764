-- Files and devices that the kernel swaps to on Sterna's word.
CREATE TABLE swap_tiers (
    name       TEXT PRIMARY KEY,
    datastore  TEXT,              -- on which its file is; none of a device
    path       TEXT NOT NULL,
    size       INTEGER NOT NULL,  -- bytes
    access_ns  INTEGER NOT NULL,  -- how long 64 KiB at a random place take
    sequential INTEGER NOT NULL,  -- bytes a second, in order
    number     INTEGER,           -- the kernel's, if it is known
    boot       TEXT NOT NULL,     -- the boot in which that was its number
    added      INTEGER NOT NULL   -- seconds since 1970
) STRICT, WITHOUT ROWID;
-- VMs whose memory is out.
CREATE TABLE asleep_vms (
    vm    TEXT PRIMARY KEY,
    since INTEGER NOT NULL        -- seconds since 1970
) STRICT, WITHOUT ROWID;
-- What the last wakes of a VM needed: a bit for each 64 KiB of its memory, the first one lowest.
CREATE TABLE wakes (
    vm         TEXT NOT NULL,
    at         INTEGER NOT NULL,  -- seconds since 1970
    granules   INTEGER NOT NULL,  -- how many the VM had
    within_2s  BLOB NOT NULL,
    within_10s BLOB NOT NULL,
    within_60s BLOB NOT NULL,
    PRIMARY KEY (vm, at)
) STRICT, WITHOUT ROWID;
