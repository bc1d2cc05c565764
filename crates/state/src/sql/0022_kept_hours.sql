-- How a promise to a class was kept in an hour.
CREATE TABLE kept_hours (
    class     INTEGER NOT NULL REFERENCES classes (id) ON DELETE CASCADE,
    policy    INTEGER NOT NULL,  -- whose target it is; 0: the class's own reservation
    hour      INTEGER NOT NULL,  -- when it began: seconds since 1970
    kept_s    REAL NOT NULL,     -- seconds in which the class had what was promised
    missed_s  REAL NOT NULL,     -- ... in which it had less
    quiet_s   REAL NOT NULL,     -- ... in which it asked for nothing
    PRIMARY KEY (class, policy, hour)
) STRICT;
