ALTER TABLE users ADD COLUMN avatar_url TEXT;
ALTER TABLE users ADD COLUMN second_factor INTEGER NOT NULL DEFAULT 0;

-- A refresh token is as old as the exchange it came from; the newest has the number of its sign-in.
ALTER TABLE sign_ins ADD COLUMN generation INTEGER NOT NULL DEFAULT 1;
ALTER TABLE refresh_tokens ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
UPDATE refresh_tokens SET generation = 1 - spent;
ALTER TABLE refresh_tokens DROP COLUMN spent;

CREATE TABLE invitations (
    id TEXT PRIMARY KEY,
    role INTEGER NOT NULL,
    note TEXT,
    uses INTEGER NOT NULL,
    uses_left INTEGER NOT NULL,
    created_by TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    secret BLOB NOT NULL UNIQUE
) WITHOUT ROWID, STRICT;

CREATE TABLE second_factors (
    user TEXT PRIMARY KEY,
    -- Sealed with a key that is not in this file.
    sealed BLOB NOT NULL,
    confirmed INTEGER NOT NULL,
    last_step INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

CREATE TABLE backup_codes (
    user TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (user, hash)
) WITHOUT ROWID, STRICT;

-- What admins changed while the hub ran.
CREATE TABLE settings (key TEXT PRIMARY KEY, value ANY NOT NULL) WITHOUT ROWID, STRICT;
