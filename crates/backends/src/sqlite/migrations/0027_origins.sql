-- Connection that published a message, and the chain of agents that a message of an agent belongs to, as JSON.
ALTER TABLE messages ADD COLUMN origin TEXT;
ALTER TABLE messages ADD COLUMN answer TEXT;
