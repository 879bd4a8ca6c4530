-- Files that were sent. Their content is kept outside, under its digest.
CREATE TABLE uploads (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    media TEXT NOT NULL,
    size INTEGER NOT NULL,
    digest BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    avatar INTEGER NOT NULL,
    -- What it is on, for good; absent while it waits for one.
    message TEXT
) WITHOUT ROWID, STRICT;
CREATE INDEX uploads_unbound ON uploads (owner) WHERE message IS NULL;
CREATE INDEX uploads_waiting ON uploads (created_at) WHERE message IS NULL AND avatar = 0;
CREATE INDEX uploads_of_message ON uploads (message) WHERE message IS NOT NULL;
CREATE INDEX uploads_of_content ON uploads (digest);

-- Contents that nothing refers to any more, until somebody takes them to remove the files.
CREATE TABLE released (digest BLOB PRIMARY KEY) WITHOUT ROWID, STRICT;

CREATE TRIGGER uploads_release AFTER DELETE ON uploads
WHEN NOT EXISTS (SELECT 1 FROM uploads WHERE digest = OLD.digest)
BEGIN
    INSERT OR IGNORE INTO released VALUES (OLD.digest);
END;

-- What is told about the files on a message, so that a page of history needs no second look.
ALTER TABLE messages ADD COLUMN attachments TEXT;
