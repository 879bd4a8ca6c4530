-- The index for searches once more, with beginnings of three letters in an index of their own: those of common words
-- are as common. What was in it is taken in anew while the hub runs; its triggers stay.
DROP TABLE message_words;
CREATE VIRTUAL TABLE message_words USING fts5 (
    about, words, content = '', columnsize = 0, tokenize = 'ascii', prefix = '3'
);
INSERT INTO message_words (message_words, rank) VALUES ('secure-delete', 1);
UPDATE meta SET value = 0 WHERE key = 'indexed';
