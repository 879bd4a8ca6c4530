-- Author and addressees of messages that an account relayed for an author outside the hub, as JSON.
ALTER TABLE messages ADD COLUMN relayed TEXT;
