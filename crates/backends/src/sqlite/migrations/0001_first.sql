-- Ids are text; times are microseconds; roles and kinds are small numbers named in rows.rs.

CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY) WITHOUT ROWID, STRICT;

CREATE TABLE users (
    id TEXT PRIMARY KEY,
    username TEXT NOT NULL UNIQUE COLLATE NOCASE,
    display_name TEXT NOT NULL,
    role INTEGER NOT NULL,
    password_hash TEXT NOT NULL,
    failed_sign_ins INTEGER NOT NULL,
    locked_until INTEGER,
    max_connections INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

CREATE TABLE sign_ins (
    id TEXT PRIMARY KEY,
    user TEXT NOT NULL,
    device TEXT NOT NULL,
    address TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX sign_ins_of_user ON sign_ins (user);

CREATE TABLE refresh_tokens (
    hash BLOB PRIMARY KEY,
    sign_in TEXT NOT NULL,
    spent INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX refresh_tokens_of_sign_in ON refresh_tokens (sign_in);

CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    secret BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

CREATE TABLE rooms (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    kind INTEGER NOT NULL,
    broadcast_mode INTEGER NOT NULL,
    system_prompt TEXT,
    agent_command_role INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

CREATE TABLE members (
    room TEXT NOT NULL,
    kind INTEGER NOT NULL,
    member TEXT NOT NULL,
    role INTEGER NOT NULL,
    joined_at INTEGER NOT NULL,
    -- Members who joined at the same moment keep the order in which they were added.
    place INTEGER NOT NULL,
    read_through INTEGER NOT NULL,
    read_at INTEGER,
    PRIMARY KEY (room, kind, member)
) WITHOUT ROWID, STRICT;
CREATE INDEX members_in_order ON members (room, place);
CREATE INDEX members_of ON members (kind, member);

-- The content of a message lives here and nowhere else.
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    room TEXT,
    path TEXT,
    sender_kind INTEGER NOT NULL,
    sender TEXT NOT NULL,
    sender_name TEXT NOT NULL,
    kind INTEGER NOT NULL,
    text TEXT NOT NULL,
    mentions TEXT,
    reply_to TEXT,
    client_message_id TEXT,
    command TEXT,
    payload TEXT,
    source TEXT NOT NULL,
    external_id TEXT,
    edited_at INTEGER,
    erased INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX messages_in_room ON messages (room, seq) WHERE room IS NOT NULL;

CREATE TABLE revisions (
    message TEXT NOT NULL,
    -- Counts the edits: a clock that is set back must neither reorder them nor refuse one.
    place INTEGER NOT NULL,
    edited_at INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (message, place)
) WITHOUT ROWID, STRICT;

CREATE TABLE agents (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    settings TEXT NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX agents_of_owner ON agents (owner);

CREATE TABLE sessions (
    agent TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    place INTEGER NOT NULL,
    PRIMARY KEY (agent, id)
) WITHOUT ROWID, STRICT;

CREATE TABLE subscriptions (
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    pattern TEXT NOT NULL,
    added_at INTEGER NOT NULL,
    PRIMARY KEY (agent, session, pattern)
) WITHOUT ROWID, STRICT;

-- An empty session is the agent's own mailbox.
CREATE TABLE deliveries (
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    message TEXT NOT NULL,
    state INTEGER NOT NULL,
    leased_until INTEGER,
    attempts INTEGER NOT NULL,
    handled_by TEXT,
    PRIMARY KEY (agent, session, seq)
) WITHOUT ROWID, STRICT;
CREATE INDEX deliveries_pending ON deliveries (agent, session, seq) WHERE state IN (0, 2);
CREATE INDEX deliveries_of_message ON deliveries (message);

-- An empty agent: it reached no mailbox at all.
CREATE TABLE dead_letters (
    seq INTEGER NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (seq, agent, session)
) WITHOUT ROWID, STRICT;

-- What a retry is recognised by.
CREATE TABLE once (
    kind INTEGER NOT NULL,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    digest BLOB NOT NULL,
    message TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (kind, owner, key)
) WITHOUT ROWID, STRICT;
CREATE INDEX once_in_order ON once (seq);

-- The one order. A row refers to what happened; the content is in its table.
CREATE TABLE log (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    room TEXT,
    subject TEXT,
    detail TEXT
) STRICT;
-- Posted messages, by far the most, are found by messages_in_room.
CREATE INDEX log_in_room ON log (room, seq) WHERE kind <> 0;
