-- What VMs are promised of the memory of their hosts, and held to.
CREATE TABLE memory_terms (
    vm             TEXT PRIMARY KEY,
    reservation    INTEGER NOT NULL,  -- bytes
    most           INTEGER,           -- the limit, in bytes, if there is one
    shares         INTEGER NOT NULL,
    balloon_max    INTEGER,           -- bytes, if somebody has said
    wake_within_ms INTEGER            -- if somebody has said
) STRICT, WITHOUT ROWID;
-- What balloons were asked for by Sterna: recorded before a balloon is asked, so that another daemon
-- gives it back.
CREATE TABLE balloons (
    vm    TEXT PRIMARY KEY,
    taken INTEGER NOT NULL            -- bytes
) STRICT, WITHOUT ROWID;
-- What was predicted of wakes, and what they took.
CREATE TABLE wake_scores (
    at           INTEGER NOT NULL,     -- seconds since 1970
    vm           TEXT NOT NULL,
    predicted_us INTEGER NOT NULL,
    took_us      INTEGER NOT NULL,
    PRIMARY KEY (at, vm)
) STRICT, WITHOUT ROWID;
-- What Sterna does by itself if a host runs short of memory.
CREATE TABLE memory_settings (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    settings TEXT NOT NULL            -- JSON
) STRICT;
