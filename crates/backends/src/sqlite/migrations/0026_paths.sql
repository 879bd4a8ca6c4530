-- Messages on paths outside rooms: their history, and the messages that a reconnecting subscriber has missed.
CREATE INDEX messages_on_path ON messages (path, seq) WHERE path IS NOT NULL;
