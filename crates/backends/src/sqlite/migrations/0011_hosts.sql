-- What hosts an agent, and whom its owner shares it with: nobody, everybody, or a list.
ALTER TABLE agents ADD COLUMN gateway TEXT;
ALTER TABLE agents ADD COLUMN kind TEXT NOT NULL DEFAULT 'generic';
ALTER TABLE agents ADD COLUMN working_directory TEXT;
ALTER TABLE agents ADD COLUMN capabilities TEXT NOT NULL DEFAULT '[]';
ALTER TABLE agents ADD COLUMN model TEXT;
ALTER TABLE agents ADD COLUMN slash_commands TEXT;
ALTER TABLE agents ADD COLUMN mcp_servers TEXT;
ALTER TABLE agents ADD COLUMN seen_at INTEGER;
ALTER TABLE agents ADD COLUMN visibility INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN shared_with TEXT NOT NULL DEFAULT '[]';
CREATE INDEX agents_shared ON agents (id) WHERE visibility <> 0;

CREATE TABLE gateways (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    hostname TEXT NOT NULL,
    platform TEXT NOT NULL,
    arch TEXT NOT NULL,
    runtime TEXT NOT NULL,
    ephemeral INTEGER NOT NULL,
    connected_at INTEGER NOT NULL,
    disconnected_at INTEGER
) WITHOUT ROWID, STRICT;
CREATE INDEX gateways_of_owner ON gateways (owner);

-- Which agents answer what was said to none of them: 0 none, 1 those that are picked, 2 all.
ALTER TABLE rooms RENAME COLUMN broadcast_mode TO policy;
ALTER TABLE rooms ADD COLUMN approve_role INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rooms ADD COLUMN frozen_at INTEGER;
ALTER TABLE rooms ADD COLUMN frozen_by TEXT;

CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    room TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT,
    status INTEGER NOT NULL,
    result TEXT,
    due_at INTEGER,
    assignee_kind INTEGER,
    assignee TEXT,
    creator_kind INTEGER NOT NULL,
    creator TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX tasks_in_room ON tasks (room);
CREATE INDEX tasks_of_assignee ON tasks (assignee) WHERE assignee IS NOT NULL;
CREATE INDEX tasks_of_creator ON tasks (creator);
