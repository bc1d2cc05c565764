-- The image is the operator's own file.
ALTER TABLE disks ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;

-- The source image is the operator's own file; known once it is left.
ALTER TABLE migrations ADD COLUMN left_imported INTEGER NOT NULL DEFAULT 0;

-- What the copier has done so far, over restarts of the daemon.
ALTER TABLE migrations ADD COLUMN copied INTEGER NOT NULL DEFAULT 0;
ALTER TABLE migrations ADD COLUMN copying_ms INTEGER NOT NULL DEFAULT 0;
-- It began with an old copy, so all of it is compared.
ALTER TABLE migrations ADD COLUMN compares INTEGER NOT NULL DEFAULT 0;
