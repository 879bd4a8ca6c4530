-- Questions of agents to people, and what became of them.
CREATE TABLE approvals (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL,
    room TEXT NOT NULL,
    agent TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    gateway TEXT NOT NULL,
    request TEXT NOT NULL,
    tool TEXT NOT NULL,
    input TEXT NOT NULL,
    digest BLOB NOT NULL,
    asked_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    decision INTEGER,
    decider TEXT,
    decider_name TEXT,
    reason TEXT,
    decided_at INTEGER
) STRICT;
CREATE INDEX approvals_open ON approvals (room, place) WHERE decision IS NULL;
CREATE INDEX approvals_called ON approvals (gateway, request);
CREATE INDEX approvals_decided ON approvals (decided_at) WHERE decided_at IS NOT NULL;
CREATE INDEX approvals_of_agent ON approvals (agent);

-- Answers that were meant for always.
CREATE TABLE approval_rules (
    room TEXT NOT NULL,
    agent TEXT NOT NULL,
    tool TEXT NOT NULL,
    decider TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (room, agent, tool)
) WITHOUT ROWID, STRICT;
CREATE INDEX approval_rules_of ON approval_rules (decider);
