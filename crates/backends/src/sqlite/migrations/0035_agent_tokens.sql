-- Tokens of a user's agents that were issued before this time are revoked.
ALTER TABLE users ADD COLUMN agent_tokens_valid_from INTEGER NOT NULL DEFAULT 0;
