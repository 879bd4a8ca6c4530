-- Turns by where they were, and by what set them off.
CREATE INDEX runs_in_room ON runs (room, place);
CREATE INDEX runs_below ON runs (parent, place) WHERE parent IS NOT NULL;
