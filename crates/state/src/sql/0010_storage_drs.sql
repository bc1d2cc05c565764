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
