-- What a disk is known by that fills its device or its export.
CREATE TABLE fingerprints (
    disk      TEXT PRIMARY KEY REFERENCES disks (id) ON DELETE CASCADE,
    datastore TEXT NOT NULL,     -- where the disk was then
    marks     TEXT NOT NULL,     -- JSON: pairs of an offset and a checksum
    data      INTEGER NOT NULL,  -- bytes that are not zeroes, about
    written   INTEGER NOT NULL,  -- bytes that clients have written since
    complete  INTEGER NOT NULL   -- whether that is all they have written
) STRICT;
