-- What the file is known by that a machine's disk leaves, as it was when that was left.
ALTER TABLE vm_moves ADD COLUMN source_file TEXT;   -- JSON
