-- How large a device or an export was, in bytes, when the sidecar of its disk was last known to be
-- at its end.
ALTER TABLE datastores ADD COLUMN size INTEGER;
