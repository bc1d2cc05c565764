-- What a directory is known by: 32 hexadecimal digits.
ALTER TABLE datastores ADD COLUMN mark TEXT;
