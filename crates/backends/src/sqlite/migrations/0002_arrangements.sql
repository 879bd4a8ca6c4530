-- How each member keeps a room, and what they are there for.

ALTER TABLE members ADD COLUMN role_description TEXT;
ALTER TABLE members ADD COLUMN pinned_at INTEGER;
ALTER TABLE members ADD COLUMN archived_at INTEGER;
ALTER TABLE members ADD COLUMN cleared_at INTEGER;
ALTER TABLE members ADD COLUMN cleared_through INTEGER NOT NULL DEFAULT 0;
ALTER TABLE members ADD COLUMN notifications INTEGER NOT NULL DEFAULT 0;
