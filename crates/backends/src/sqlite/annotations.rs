//! Annotations: reactions, pins and bookmarks: reads, changes, and conversion between rows and model types.

use super::rows::{all, number, one, run, seq, seq_value, shared, time};
use super::{Sql, SqlTables};
use parlor_engine::Fault;
use parlor_engine::changes::AnnotationChange;
use parlor_engine::ports::{ReadAnnotations, ReadMessages};
use parlor_model::{Bookmark, Message, MessageId, Pin, Reaction, RoomId, Seq, UserId};
use rusqlite::{Connection, Row};
use std::sync::Arc;

impl<C: Sql> ReadAnnotations for SqlTables<C> {
    fn pin(&mut self, message: &MessageId) -> Result<Option<Pin>, Fault> {
        let query = format!("SELECT {} FROM pins WHERE message = ?1", PIN);
        one(self.sql()?, &query, &[&message.as_str()], pin)
    }

    fn pin_count(&mut self, room: &RoomId) -> Result<usize, Fault> {
        self.count("SELECT count(*) FROM pins WHERE room = ?1", &[&room.as_str()])
    }

    fn pins(&mut self, room: &RoomId, beyond: Seq) -> Result<Vec<(Pin, Arc<Message>)>, Fault> {
        let query = format!("SELECT {} FROM pins WHERE room = ?1 ORDER BY seq DESC", PIN);
        let mut pins = Vec::new();
        for pin in all(self.sql()?, &query, &[&room.as_str()], pin)? {
            if let Some(message) = self.message(&pin.message)?.filter(|message| message.seq > beyond) {
                pins.push((pin, message));
            }
        }
        Ok(pins)
    }

    fn bookmark(&mut self, user: &UserId, message: &MessageId) -> Result<Option<Bookmark>, Fault> {
        let query = "SELECT user, seq, message, at FROM bookmarks WHERE message = ?1 AND user = ?2";
        one(self.sql()?, query, &[&message.as_str(), &user.as_str()], bookmark)
    }

    fn bookmark_count(&mut self, user: &UserId) -> Result<usize, Fault> {
        self.count("SELECT count(*) FROM bookmarks WHERE user = ?1", &[&user.as_str()])
    }

    fn bookmarks(
        &mut self,
        user: &UserId,
        before: Option<Seq>,
        limit: usize,
    ) -> Result<Vec<(Bookmark, Arc<Message>)>, Fault> {
        let query = "SELECT b.user, b.seq, b.message, b.at FROM bookmarks b \
                     CROSS JOIN messages m ON m.id = b.message \
                     CROSS JOIN members o ON o.room = m.room AND o.kind = 0 AND o.member = b.user \
                     WHERE b.user = ?1 AND b.seq < ?2 AND m.seq > o.cleared_through \
                     ORDER BY b.seq DESC LIMIT ?3";
        let before = before.map_or(i64::MAX, seq_value);
        let found = all(self.sql()?, query, &[&user.as_str(), &before, &number(limit)], bookmark)?;
        let mut bookmarks = Vec::with_capacity(found.len());
        for bookmark in found {
            if let Some(message) = self.message(&bookmark.message)? {
                bookmarks.push((bookmark, message));
            }
        }
        Ok(bookmarks)
    }
}

pub fn apply(sql: &Connection, change: &AnnotationChange) -> Result<(), Fault> {
    match change {
        AnnotationChange::PutReactions { message, reactions } if reactions.is_empty() => {
            run(sql, "DELETE FROM reactions WHERE message = ?1", &[&message.as_str()])?;
        }
        AnnotationChange::PutReactions { message, reactions } => {
            let query = "INSERT OR REPLACE INTO reactions VALUES (?1, ?2)";
            run(sql, query, &[&message.as_str(), &reactions_json(reactions)])?;
        }
        AnnotationChange::PutPin(pin) => {
            run(
                sql,
                "INSERT INTO pins VALUES (?1, ?2, ?3, ?4, ?5)",
                &[
                    &pin.room.as_str(),
                    &(pin.seq.0 as i64),
                    &pin.message.as_str(),
                    &pin.by.as_str(),
                    &pin.at.0,
                ],
            )?;
        }
        AnnotationChange::RemovePin(message) => {
            run(sql, "DELETE FROM pins WHERE message = ?1", &[&message.as_str()])?;
        }
        AnnotationChange::PutBookmark(bookmark) => {
            run(
                sql,
                "INSERT INTO bookmarks VALUES (?1, ?2, ?3, ?4)",
                &[
                    &bookmark.user.as_str(),
                    &(bookmark.seq.0 as i64),
                    &bookmark.message.as_str(),
                    &bookmark.at.0,
                ],
            )?;
        }
        AnnotationChange::RemoveBookmark(user, message) => {
            let query = "DELETE FROM bookmarks WHERE message = ?1 AND user = ?2";
            run(sql, query, &[&message.as_str(), &user.as_str()])?;
        }
    }
    Ok(())
}

fn reactions_json(reactions: &[Reaction]) -> String {
    let people = |reaction: &'_ Reaction| -> Vec<(String, Box<str>)> {
        reaction.people.iter().map(|person| (person.user.to_string(), person.username.clone())).collect()
    };
    let list: Vec<(&str, _)> =
        reactions.iter().map(|reaction| (&*reaction.emoji, people(reaction))).collect();
    serde_json::to_string(&list).expect("strings always serialise to JSON")
}

pub const PIN: &str = "room, seq, message, user, at";

pub fn pin(row: &Row<'_>) -> rusqlite::Result<Pin> {
    Ok(Pin {
        room: RoomId::stored(shared(row, 0)?),
        seq: seq(row, 1)?,
        message: MessageId::stored(shared(row, 2)?),
        by: UserId::stored(shared(row, 3)?),
        at: time(row, 4)?,
    })
}

pub fn bookmark(row: &Row<'_>) -> rusqlite::Result<Bookmark> {
    Ok(Bookmark {
        user: UserId::stored(shared(row, 0)?),
        seq: seq(row, 1)?,
        message: MessageId::stored(shared(row, 2)?),
        at: time(row, 3)?,
    })
}
