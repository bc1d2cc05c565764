-- It has ended, and nobody has seen in which image the last writes are.
ALTER TABLE vm_moves ADD COLUMN unclear INTEGER NOT NULL DEFAULT 0;
