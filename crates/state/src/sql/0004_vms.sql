-- Where a virtual machine's hypervisor finds the disk: a path.
ALTER TABLE disks ADD COLUMN vhost_user TEXT;
CREATE UNIQUE INDEX one_disk_per_socket ON disks (vhost_user);

-- Virtual machines that exist already, and whose disks QEMU serves.
CREATE TABLE vms (
    name   TEXT PRIMARY KEY,
    reach  TEXT NOT NULL UNIQUE,    -- JSON: a QMP socket, or libvirt and a domain
    added  INTEGER NOT NULL
) STRICT;

-- Moves of their disks; they have their numbers from the migrations, and outlive
-- machine and datastore.
CREATE TABLE vm_moves (
    id            INTEGER PRIMARY KEY,
    vm            TEXT NOT NULL,
    device        TEXT NOT NULL,
    size          INTEGER NOT NULL,
    format        TEXT NOT NULL,
    from_place    TEXT NOT NULL,
    from_image    TEXT NOT NULL,
    to_datastore  TEXT NOT NULL,
    to_image      TEXT NOT NULL,
    rate          INTEGER,          -- bytes per second
    guard         TEXT NOT NULL,    -- JSON
    step          TEXT NOT NULL,
    paused        INTEGER NOT NULL, -- asked for
    cancel        INTEGER NOT NULL, -- asked for
    started       INTEGER NOT NULL,
    ended         INTEGER,
    note          TEXT,             -- how it ended, if not as asked
    application   TEXT NOT NULL,    -- JSON: what was noticed
    report        TEXT              -- JSON: what it came to
) STRICT;

-- One disk, one move.
CREATE UNIQUE INDEX one_move_per_vm_disk ON vm_moves (vm, device)
    WHERE step NOT IN ('completed', 'cancelled');
