-- What an admin lets somebody's agents hear of outside sources: patterns, one to a line.
ALTER TABLE users ADD COLUMN hears TEXT NOT NULL DEFAULT '';
