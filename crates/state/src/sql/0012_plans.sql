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
