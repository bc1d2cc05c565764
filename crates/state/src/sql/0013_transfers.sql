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
