-- What agents are to pursue by themselves, and how they are prompted when they are idle.
CREATE TABLE missions (
    id TEXT PRIMARY KEY,
    realm_kind INTEGER NOT NULL,
    realm TEXT NOT NULL,
    room TEXT NOT NULL,
    text TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    prompts INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX missions_of_realm ON missions (realm_kind, realm, created_at);
CREATE INDEX missions_in_room ON missions (room);
CREATE INDEX missions_on ON missions (created_at) WHERE ended_at IS NULL;
CREATE TABLE mission_agents (
    mission TEXT NOT NULL,
    agent TEXT NOT NULL,
    named INTEGER NOT NULL,
    prompt TEXT,
    interval INTEGER,
    prompted_at INTEGER,
    PRIMARY KEY (mission, agent)
) WITHOUT ROWID, STRICT;
CREATE INDEX mission_agents_of ON mission_agents (agent);
CREATE TABLE idle (
    realm_kind INTEGER NOT NULL,
    realm TEXT NOT NULL,
    agent TEXT NOT NULL,
    prompt TEXT,
    interval INTEGER,
    PRIMARY KEY (realm_kind, realm, agent)
) WITHOUT ROWID, STRICT;
CREATE INDEX idle_of ON idle (agent);
