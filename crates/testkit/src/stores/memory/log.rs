//! Event log of the in-memory store.

use super::TablesView;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::log_row::LogRow;
use parlor_engine::ports::{Head, ReadMail, Snapshot};
use parlor_model::{Destination, Event, LoggedEvent, Message, Path, RoomId, Seq};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

pub type Row = LogRow<Arc<str>>;

impl Snapshot for TablesView {
    fn head(&mut self) -> Result<Head, Fault> {
        Ok(self.tables.head)
    }

    fn tail(&mut self, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault> {
        let rows: Vec<Row> = self.tables.rows_after(after).take(limit).cloned().collect();
        rows.into_iter().map(|row| row.read(self)).collect()
    }

    fn room_tail(&mut self, room: &RoomId, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault> {
        let rows = self.tables.rows_after(after).filter(|row| row.room.as_deref() == Some(room.as_str()));
        let rows: Vec<Row> = rows.take(limit).cloned().collect();
        rows.into_iter().map(|row| row.read(self)).collect()
    }

    fn path_tail(&mut self, path: &Path, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault> {
        let destination = Destination::Path(path.clone());
        let messages: Vec<Arc<Message>> = self
            .tables
            .messages_at(&destination)
            .filter(|message| message.seq > after)
            .take(limit)
            .cloned()
            .collect();
        let mut events = Vec::new();
        for message in messages {
            let deliveries = self.deliveries(&message.id)?.into();
            let (seq, at) = (message.seq, message.at);
            events.push(LoggedEvent { seq, at, event: Event::MessagePosted { message, deliveries } });
        }
        Ok(events)
    }
}

impl Tables {
    pub fn append(&mut self, logged: &LoggedEvent) {
        assert_eq!(logged.seq, self.head.seq.next(), "sequence numbers of the log are gap-free");
        let LogRow { seq, at, kind, room, subject, detail } = LogRow::of(logged);
        let (room, subject, detail) = (room.map(Arc::from), subject.map(Arc::from), detail.map(Arc::from));
        self.log.insert(seq, Row { seq, at, kind, room, subject, detail });
        (self.head.seq, self.head.at) = (seq, at);
    }

    fn rows_after(&self, after: Seq) -> impl Iterator<Item = &Row> {
        self.log.range((Excluded(after), Unbounded)).map(|(_, row)| row)
    }
}
