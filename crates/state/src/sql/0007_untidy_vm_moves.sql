-- It has ended, and its machine, which did not answer, may still have something of it.
ALTER TABLE vm_moves ADD COLUMN untidy INTEGER NOT NULL DEFAULT 0;
