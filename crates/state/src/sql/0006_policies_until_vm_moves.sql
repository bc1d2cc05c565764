-- A policy ends with a move of a machine's disk as well, which is kept for ever, too.
ALTER TABLE policies ADD COLUMN until_move INTEGER REFERENCES vm_moves (id);
