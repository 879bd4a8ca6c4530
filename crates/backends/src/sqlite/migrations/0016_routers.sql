-- Models that pick which agents answer. Their keys are sealed.
CREATE TABLE routers (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    shared INTEGER NOT NULL,
    api INTEGER NOT NULL,
    base_url TEXT NOT NULL,
    model TEXT NOT NULL,
    key BLOB,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX routers_of ON routers (created_by);
ALTER TABLE rooms ADD COLUMN router TEXT;
