-- What was done, by whom, and what the daemon decided.
CREATE TABLE activities (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms    INTEGER NOT NULL,      -- milliseconds since 1970
    who      TEXT NOT NULL,
    about    TEXT,                  -- disk db; NULL: the daemon
    text     TEXT NOT NULL,
    command  TEXT,
    ok       INTEGER NOT NULL
) STRICT;
CREATE INDEX activities_at ON activities (at_ms);
CREATE INDEX activities_about ON activities (about, seq);
