-- Settings of sessions. `auto_run` is the JSON of the setting; `settings` a list of (name, value) texts.
ALTER TABLE sessions ADD COLUMN last_used_at INTEGER;
ALTER TABLE sessions ADD COLUMN is_default INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN auto_run TEXT;
ALTER TABLE sessions ADD COLUMN room TEXT;
ALTER TABLE sessions ADD COLUMN settings TEXT NOT NULL DEFAULT '[]';
UPDATE sessions SET is_default = 1 WHERE id = 'main';
