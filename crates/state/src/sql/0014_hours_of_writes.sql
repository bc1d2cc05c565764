-- The part of its requests' time that was writes'; of older hours it is not known.
ALTER TABLE hours ADD COLUMN writes REAL NOT NULL DEFAULT 0;
