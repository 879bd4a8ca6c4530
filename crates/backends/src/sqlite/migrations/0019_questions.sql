-- Agents ask people not only whether they may use a tool.
ALTER TABLE approvals ADD COLUMN matter INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN answers TEXT;
