-- What the guard of a migration has found out.
ALTER TABLE migrations ADD COLUMN experience TEXT;   -- JSON
