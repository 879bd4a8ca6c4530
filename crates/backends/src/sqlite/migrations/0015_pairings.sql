-- One code for each person, which can be given for a key.
CREATE TABLE pairings (
    user TEXT PRIMARY KEY,
    secret BLOB NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
