-- Threads, what is passed on, and what people hang on messages.

-- What the thread of a reply began with.
ALTER TABLE messages ADD COLUMN thread TEXT;
ALTER TABLE messages ADD COLUMN forwarded TEXT;
CREATE INDEX messages_answering ON messages (reply_to, seq) WHERE reply_to IS NOT NULL;
WITH RECURSIVE answers (id, thread) AS (
    SELECT answer.id, answer.reply_to FROM messages answer
    WHERE answer.reply_to IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM messages first WHERE first.id = answer.reply_to AND first.reply_to IS NOT NULL)
    UNION ALL
    SELECT answer.id, answers.thread FROM answers JOIN messages answer ON answer.reply_to = answers.id
)
UPDATE messages SET thread = answers.thread FROM answers WHERE answers.id = messages.id;
CREATE INDEX messages_in_thread ON messages (thread, seq) WHERE thread IS NOT NULL;

-- A row of its own, so that a reaction does not write a long text anew.
CREATE TABLE reactions (message TEXT PRIMARY KEY, list TEXT NOT NULL) WITHOUT ROWID, STRICT;

CREATE TABLE pins (
    room TEXT NOT NULL,
    seq INTEGER NOT NULL,
    message TEXT NOT NULL UNIQUE,
    user TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (room, seq)
) WITHOUT ROWID, STRICT;

CREATE TABLE bookmarks (
    user TEXT NOT NULL,
    seq INTEGER NOT NULL,
    message TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (user, seq)
) WITHOUT ROWID, STRICT;
CREATE UNIQUE INDEX bookmarks_of_message ON bookmarks (message, user);
