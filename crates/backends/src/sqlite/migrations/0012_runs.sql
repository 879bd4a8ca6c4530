-- Turns of agents, also those that were refused: why an agent did or did not answer.
CREATE TABLE runs (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    room TEXT NOT NULL,
    message TEXT,
    task TEXT,
    asked_by TEXT,
    arrival TEXT,
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
    ended_at INTEGER
) STRICT;
CREATE INDEX runs_open ON runs (place) WHERE state < 2;
CREATE INDEX runs_of_message ON runs (message) WHERE message IS NOT NULL;
CREATE INDEX runs_of_agent ON runs (agent, ended_at);
CREATE INDEX runs_spent ON runs (room, agent, queued_at) WHERE state <> 6;
CREATE INDEX runs_asked ON runs (asked_by, agent, queued_at) WHERE asked_by IS NOT NULL AND state <> 6;

-- How a message came about that an agent said in a turn.
CREATE TABLE turns (
    message TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    outcome INTEGER NOT NULL,
    chunks TEXT NOT NULL
) WITHOUT ROWID, STRICT;
