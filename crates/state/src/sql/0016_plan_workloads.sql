-- What runs on the disks of a plan's tiles, and stands still while they move.
CREATE TABLE plan_workloads (
    plan    INTEGER NOT NULL REFERENCES plans (id) ON DELETE CASCADE,
    tile    INTEGER NOT NULL,   -- among the plan's
    course  TEXT NOT NULL,      -- JSON: how far it is
    PRIMARY KEY (plan, tile)
) STRICT, WITHOUT ROWID;
