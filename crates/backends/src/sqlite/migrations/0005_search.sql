-- The index for searches: the words of every message in a room up to the place named 'indexed', without the text
-- itself. Before them come the room, the sender and the kind of sender, as words too, so that common words in other
-- rooms cost nothing.
CREATE VIRTUAL TABLE message_words USING fts5 (
    about, words, content = '', columnsize = 0, tokenize = 'ascii'
);
-- What leaves the index leaves no trace in it.
INSERT INTO message_words (message_words, rank) VALUES ('secure-delete', 1);
INSERT INTO meta VALUES ('indexed', 0);

-- Whoever changes or removes a message, the index follows within the same transaction. `words` is Parlor's own.
CREATE TRIGGER message_words_of_changed
AFTER UPDATE OF text, erased ON messages
WHEN old.room IS NOT NULL AND old.erased = 0 AND old.seq <= (SELECT value FROM meta WHERE key = 'indexed')
BEGIN
    INSERT INTO message_words (message_words, rowid, about, words) VALUES
        ('delete', old.seq, 'r' || hex(old.room) || ' s' || hex(old.sender) || ' k' || old.sender_kind, words(old.text));
    INSERT INTO message_words (rowid, about, words)
        SELECT new.seq, 'r' || hex(new.room) || ' s' || hex(new.sender) || ' k' || new.sender_kind, words(new.text)
        WHERE new.erased = 0;
END;

CREATE TRIGGER message_words_of_removed
AFTER DELETE ON messages
WHEN old.room IS NOT NULL AND old.erased = 0 AND old.seq <= (SELECT value FROM meta WHERE key = 'indexed')
BEGIN
    INSERT INTO message_words (message_words, rowid, about, words) VALUES
        ('delete', old.seq, 'r' || hex(old.room) || ' s' || hex(old.sender) || ' k' || old.sender_kind, words(old.text));
END;
