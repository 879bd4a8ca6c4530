-- Models that answer as agents from within the hub, beside their row in `agents`. Their keys are sealed.
CREATE TABLE services (
    agent TEXT PRIMARY KEY,
    active INTEGER NOT NULL,
    api INTEGER NOT NULL,
    base_url TEXT NOT NULL,
    model TEXT NOT NULL,
    key BLOB,
    fallback TEXT,
    instructions TEXT,
    most_tokens INTEGER,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
