-- What agents are going to do, and what people decided about it.
CREATE TABLE plans (
    room TEXT NOT NULL,
    agent TEXT NOT NULL,
    run TEXT NOT NULL,
    plan TEXT NOT NULL,
    state TEXT NOT NULL,
    text TEXT,
    rev INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (room, agent)
) WITHOUT ROWID, STRICT;
CREATE INDEX plans_of_agent ON plans (agent);
