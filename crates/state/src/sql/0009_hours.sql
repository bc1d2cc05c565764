-- What a disk's application did in an hour.
CREATE TABLE hours (
    disk         TEXT NOT NULL REFERENCES disks (id) ON DELETE CASCADE,
    hour         INTEGER NOT NULL,  -- when it began: seconds since 1970
    outstanding  REAL NOT NULL,     -- requests under way, on average
    response_us  REAL NOT NULL,     -- what one took, on average
    there        REAL NOT NULL,     -- the part of the time in which it asked
    PRIMARY KEY (disk, hour)
) STRICT;
