mod replies;

use super::*;
use parlor_model::{MessageKind, Place, Sender, Time};

fn said(seq: u64, length: usize) -> Logged {
    let message = Message {
        id: MessageId::stored(format!("m{seq}")),
        seq: Seq(seq),
        at: Time(0),
        place: Place::Room(RoomId::stored("lobby")),
        sender: Sender::Source("test".into()),
        sender_name: "test".into(),
        kind: MessageKind::Text,
        text: "x".repeat(length).into(),
        mentions: Vec::new(),
        reply_to: None,
        thread: None,
        reactions: Vec::new(),
        forwarded: None,
        attachments: Vec::new(),
        client_message_id: None,
        command: None,
        payload: None,
        source: "test".into(),
        external_id: None,
        edited_at: None,
        turn: None,
    };
    let event = Event::MessagePosted { message: Arc::new(message), deliveries: Arc::new([]) };
    Logged { seq: Seq(seq), at: Time(0), event }
}

fn kept(switchboard: &Switchboard) -> Vec<u64> {
    switchboard.state.lock().recent.iter().map(|logged| logged.seq.0).collect()
}

#[test]
fn what_is_kept_for_those_who_come_back_is_bounded_in_number_and_length() {
    let limits = Limits { recent_events: 3, recent_bytes: 100, ..Limits::default() };
    let switchboard = Switchboard::new(Epoch(1), Seq(0), &limits);
    switchboard.publish(&[said(1, 1), said(2, 1), said(3, 1), said(4, 1)]);
    assert_eq!(kept(&switchboard), [2, 3, 4]);
    switchboard.publish(&[said(5, 99)]);
    assert_eq!(kept(&switchboard), [4, 5]);
    let (room, message) = (RoomId::stored("lobby"), MessageId::stored("m5"));
    let deleted = Event::MessageDeleted { room, message };
    switchboard.publish(&[Logged { seq: Seq(6), at: Time(0), event: deleted }]);
    assert_eq!((kept(&switchboard).len(), switchboard.state.lock().recent_bytes), (3, 1));
    switchboard.publish(&[said(7, 1000)]);
    assert_eq!(kept(&switchboard), [], "too long to keep at all");
}

struct Plain;

impl Egress for Plain {
    fn event(&self, _: &Logged, _: Epoch) -> Option<Bytes> {
        Some(Bytes::from_static(b"event"))
    }

    fn room_lost(&self, _: &RoomId) -> Option<Bytes> {
        None
    }

    fn delivery(&self, _: &Message, _: &Delivery) -> Option<Bytes> {
        None
    }

    fn signal(&self, _: &Signal) -> Option<Bytes> {
        None
    }

    fn farewell(&self, _: Farewell) -> Bytes {
        Bytes::new()
    }
}

#[test]
fn a_replay_that_leaves_no_room_for_its_answer_is_read_from_the_store() {
    let switchboard = Switchboard::new(Epoch(1), Seq(0), &Limits::default());
    switchboard.publish(&[said(1, 1), said(2, 1)]);
    let outbox = Arc::new(Outbox::new(Caps { bytes: 1000, buffers: 3 }, Bytes::new()));
    let viewer = Viewer {
        id: switchboard.viewer_id(),
        user: UserId::stored("ann"),
        principal: Principal::Operator,
        egress: Arc::new(Plain),
        outbox: outbox.clone(),
        present: false,
    };
    let id = viewer.id;
    switchboard.connect(viewer, Bytes::from_static(b"greeting"), || Ok(Ok(()))).unwrap().unwrap();
    let room = RoomId::stored("lobby");
    let welcome = |_| Some(Bytes::from_static(b"joined"));
    let joined = switchboard.join(id, &room, Some(Seq(0)), || Ok(true), welcome).unwrap();
    assert!(matches!(joined, Some(Joined::Behind)));
    assert!(!outbox.is_closed() && !switchboard.is_in(id, &room));
    let joined = switchboard.join(id, &room, Some(Seq(1)), || Ok(true), welcome).unwrap();
    assert!(matches!(joined, Some(Joined::Live { .. })));
    assert!(!outbox.is_closed() && switchboard.is_in(id, &room));
}
