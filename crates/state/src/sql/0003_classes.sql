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
