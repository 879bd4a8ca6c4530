-- Folders of the hub's machine that rooms are about.
ALTER TABLE rooms ADD COLUMN project_root TEXT;
CREATE INDEX rooms_with_root ON rooms (id) WHERE project_root IS NOT NULL;
