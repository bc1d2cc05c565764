-- Sectors of the source that cannot be read are left behind.
ALTER TABLE migrations ADD COLUMN skip_bad INTEGER NOT NULL DEFAULT 0;
-- What was found out about both images.
ALTER TABLE migrations ADD COLUMN found TEXT;   -- JSON
