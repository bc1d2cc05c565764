-- What a disk, or the copy of a move, is known by that fills its device or its export.
CREATE TABLE fingerprints (
    disk      TEXT NOT NULL REFERENCES disks (id) ON DELETE CASCADE,
    datastore TEXT NOT NULL,
    marks     TEXT NOT NULL,     -- JSON: pairs of an offset and a checksum
    data      INTEGER NOT NULL,  -- bytes that are not zeroes, about
    written   INTEGER NOT NULL,  -- bytes that clients have written since
    complete  INTEGER NOT NULL,  -- whether that is all they have written
    PRIMARY KEY (disk, datastore)
) STRICT;
