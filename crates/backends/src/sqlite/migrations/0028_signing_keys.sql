-- Keys that are limited to a grant and whose secrets sign tokens. `places` is the grant as JSON, `sealed` the encrypted
-- secret. All three are null for other keys.
ALTER TABLE api_keys ADD COLUMN places TEXT;
ALTER TABLE api_keys ADD COLUMN notation TEXT;
ALTER TABLE api_keys ADD COLUMN sealed BLOB;

CREATE TABLE token_revocations (
    key TEXT NOT NULL,
    target TEXT NOT NULL,
    issued_before INTEGER NOT NULL,
    PRIMARY KEY (key, target)
) WITHOUT ROWID, STRICT;
