-- Links with which one user becomes a member of a room.
CREATE TABLE room_invitations (
    id TEXT PRIMARY KEY,
    room TEXT NOT NULL,
    role INTEGER NOT NULL,
    -- Sealed with a key that is not in this file.
    token BLOB NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    secret BLOB NOT NULL UNIQUE
) WITHOUT ROWID, STRICT;
CREATE INDEX room_invitations_by_room ON room_invitations (room);
