-- What waits in a mailbox lies together in front of what was settled, so that one tree finds both; what belongs to a
-- message is found by its place in the order, which is shorter than its id.
CREATE TABLE mail (
    agent TEXT NOT NULL,
    -- Empty: the agent's own mailbox.
    session TEXT NOT NULL,
    -- 0 while it can be handed out.
    settled INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    state INTEGER NOT NULL,
    leased_until INTEGER,
    attempts INTEGER NOT NULL,
    handled_by TEXT,
    PRIMARY KEY (agent, session, settled, seq)
) WITHOUT ROWID, STRICT;
INSERT INTO mail SELECT agent, session, state NOT IN (0, 2), seq, state, leased_until, attempts, handled_by
    FROM deliveries ORDER BY 1, 2, 3, 4;
DROP TABLE deliveries;
ALTER TABLE mail RENAME TO deliveries;
CREATE INDEX deliveries_of_message ON deliveries (seq);
