-- What was known of it when it began.
ALTER TABLE migrations ADD COLUMN forecast TEXT;   -- JSON
-- It stood still, or something else was asked of it: what it took says nothing of
-- what it was predicted to take.
ALTER TABLE migrations ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
