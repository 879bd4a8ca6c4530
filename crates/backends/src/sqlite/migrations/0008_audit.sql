-- Who did what to whom. Ids are never used twice.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    -- Repeats are counted instead of written again.
    last_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    actor_kind TEXT NOT NULL,
    actor TEXT,
    actor_name TEXT,
    actor_key TEXT,
    action TEXT NOT NULL,
    subject_kind TEXT,
    subject TEXT,
    subject_name TEXT,
    detail TEXT,
    address TEXT
) STRICT;
CREATE INDEX audit_failures ON audit (subject, id) WHERE action = 'sign_in_failed';
