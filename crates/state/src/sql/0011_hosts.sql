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
