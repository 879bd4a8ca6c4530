-- Runs and approvals take place in a room or in a session; one in a session may have no room. SQLite cannot remove
-- NOT NULL from a column, so the tables are copied. `owner` is the owner of the agent, set in sessions only. `batch` is
-- a JSON array of message ids.
CREATE TABLE runs_in_places (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    room TEXT,
    session TEXT,
    owner TEXT,
    message TEXT,
    task TEXT,
    arrival TEXT,
    batch TEXT,
    attempt INTEGER,
    prompt TEXT,
    prompted_by TEXT,
    asked_by TEXT,
    addressed INTEGER NOT NULL,
    conversation TEXT NOT NULL,
    depth INTEGER NOT NULL,
    chain TEXT NOT NULL,
    parent TEXT,
    state INTEGER NOT NULL,
    reason TEXT,
    reply TEXT,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost INTEGER,
    queued_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    stop_requested INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO runs_in_places (place, id, agent, room, message, task, arrival, asked_by, addressed, conversation, depth,
    chain, parent, state, reason, reply, input_tokens, output_tokens, cost, queued_at, started_at, ended_at,
    stop_requested)
SELECT place, id, agent, room, message, task, arrival, asked_by, addressed, conversation, depth, chain, parent, state,
    reason, reply, input_tokens, output_tokens, cost, queued_at, started_at, ended_at, stop_requested
FROM runs;
DROP TABLE runs;
ALTER TABLE runs_in_places RENAME TO runs;
CREATE INDEX runs_open ON runs (place) WHERE state < 2;
CREATE INDEX runs_of_message ON runs (message) WHERE message IS NOT NULL;
CREATE INDEX runs_of_agent ON runs (agent, ended_at);
CREATE INDEX runs_spent ON runs (room, agent, queued_at) WHERE state <> 6;
CREATE INDEX runs_asked ON runs (asked_by, agent, queued_at) WHERE asked_by IS NOT NULL AND state <> 6;
CREATE INDEX runs_in_room ON runs (room, place);
CREATE INDEX runs_below ON runs (parent, place) WHERE parent IS NOT NULL;
CREATE INDEX runs_in_session ON runs (agent, session, queued_at) WHERE session IS NOT NULL;
CREATE INDEX runs_of_owner ON runs (owner, place) WHERE owner IS NOT NULL;
CREATE INDEX session_runs_ended ON runs (ended_at) WHERE session IS NOT NULL;

CREATE TABLE approvals_in_places (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL,
    room TEXT,
    session TEXT,
    owner TEXT,
    agent TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    gateway TEXT NOT NULL,
    request TEXT NOT NULL,
    tool TEXT NOT NULL,
    matter INTEGER NOT NULL DEFAULT 0,
    input TEXT NOT NULL,
    digest BLOB NOT NULL,
    asked_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    decision INTEGER,
    decider TEXT,
    decider_name TEXT,
    reason TEXT,
    answers TEXT,
    decided_at INTEGER
) STRICT;
INSERT INTO approvals_in_places (place, id, run, room, agent, agent_name, gateway, request, tool, matter, input, digest,
    asked_at, expires_at, decision, decider, decider_name, reason, answers, decided_at)
SELECT place, id, run, room, agent, agent_name, gateway, request, tool, matter, input, digest, asked_at, expires_at,
    decision, decider, decider_name, reason, answers, decided_at
FROM approvals;
DROP TABLE approvals;
ALTER TABLE approvals_in_places RENAME TO approvals;
CREATE INDEX approvals_open ON approvals (room, place) WHERE decision IS NULL;
CREATE INDEX approvals_called ON approvals (gateway, request);
CREATE INDEX approvals_decided ON approvals (decided_at) WHERE decided_at IS NOT NULL;
CREATE INDEX approvals_of_agent ON approvals (agent);

-- Conversation logs of sessions. `kind` is the name of the kind of entry; `details` a JSON object.
CREATE TABLE conversation_entries (
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    run TEXT,
    details TEXT,
    PRIMARY KEY (agent, session, number)
) WITHOUT ROWID, STRICT;
CREATE INDEX conversation_entries_at ON conversation_entries (at);
