-- What a move makes of a machine's disk.
ALTER TABLE vm_moves ADD COLUMN kind TEXT NOT NULL DEFAULT '"move"';   -- JSON
