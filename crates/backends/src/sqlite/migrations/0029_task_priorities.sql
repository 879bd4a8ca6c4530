-- Priority of a task (1: medium), and the task that it follows up.
ALTER TABLE tasks ADD COLUMN priority INTEGER NOT NULL DEFAULT 1;
ALTER TABLE tasks ADD COLUMN parent TEXT;
