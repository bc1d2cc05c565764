-- Which file was made for the copy of a machine's disk: what has its name later may be another.
ALTER TABLE vm_moves ADD COLUMN destination_file TEXT;   -- JSON
