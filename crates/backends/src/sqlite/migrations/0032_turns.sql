-- Decisions about automatic turns. Numbers are never used twice. `kind` is a name, `messages` a JSON list of ids.
CREATE TABLE turn_decisions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT,
    run TEXT,
    attempt INTEGER NOT NULL,
    messages TEXT NOT NULL
) STRICT;
CREATE INDEX turn_decisions_of_agent ON turn_decisions (agent, number);
-- The few sessions with a setting for automatic turns.
CREATE INDEX automatic_sessions ON sessions (agent, id) WHERE auto_run IS NOT NULL;
