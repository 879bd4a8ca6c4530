mod merged;
mod paths;
pub mod replies;
mod sessions;

use super::subscribe::{Subscribed, Subscription, Topics};
use super::*;
use crate::Limits;
use crate::ports::Clock;
use bytes::Bytes;
use parlor_model::run_event::Stream;
use parlor_model::{
    AgentId, AnswerKind, AnswerPolicy, Answerer, Delivery, DeliveryState, Destination, Epoch, Event,
    GatewayId, InquiryAnswer, LoggedEvent, Mailbox, MemberChange, MemberId, Message, MessageId, MessageKind,
    Path, Payload, QueuedMessage, Room, RoomId, RoomKind, RoomRole, RunEvent, RunId, RunPlace, Sender, Seq,
    Signal, Time,
};

fn clock() -> Arc<dyn Clock> {
    Arc::new(crate::local::SystemClock)
}

fn posted(seq: u64, length: usize) -> LoggedEvent {
    let message = Message {
        id: MessageId::stored(format!("m{seq}")),
        seq: Seq(seq),
        at: Time(0),
        destination: Destination::Room(RoomId::stored("lobby")),
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
        run_output: None,
        relayed: None,
        origin: None,
        answer: None,
    };
    let event = Event::MessagePosted { message: Arc::new(message), deliveries: Arc::new([]) };
    LoggedEvent { seq: Seq(seq), at: Time(0), event }
}

/// A message posted to a path, without mail.
fn published(seq: u64, path: &str) -> LoggedEvent {
    let Event::MessagePosted { message, .. } = posted(seq, 1).event else { unreachable!() };
    let destination = Destination::Path(Path::stored(path));
    let message = Arc::new(Message { destination, ..Message::clone(&message) });
    let event = Event::MessagePosted { message, deliveries: Arc::new([]) };
    LoggedEvent { seq: Seq(seq), at: Time(0), event }
}

/// A message to an agent, with a delivery to its mailbox.
fn mailed(seq: u64) -> LoggedEvent {
    let Event::MessagePosted { message, .. } = published(seq, "agent/coder").event else { unreachable!() };
    let copy = Delivery {
        message: message.id.clone(),
        mailbox: Mailbox::of(AgentId::stored("coder")),
        state: DeliveryState::Pending,
        attempts: 0,
        handled_by: Vec::new(),
    };
    let event = Event::MessagePosted { message, deliveries: Arc::new([copy]) };
    LoggedEvent { seq: Seq(seq), at: Time(0), event }
}

pub(super) fn room(id: &str) -> Room {
    Room {
        id: RoomId::stored(id),
        name: id.into(),
        kind: RoomKind::Group,
        policy: AnswerPolicy::Mention,
        system_prompt: None,
        agent_command_role: RoomRole::Member,
        approve_role: RoomRole::Member,
        router: None,
        frozen: None,
        project_root: None,
        description: None,
        created_by: UserId::stored("ann"),
        created_at: Time(1),
        updated_at: Time(1),
    }
}

fn subscriber(fanout: &Fanout, outbox: &Arc<Outbox>) -> Subscriber {
    Subscriber {
        id: fanout.next_subscriber_id(),
        user: UserId::stored("ann"),
        principal: Principal::Operator,
        outbox: outbox.clone(),
        codec: Codec::new(0),
        kinds: Kinds::ALL,
        order: Order::PerRoom,
        present: false,
        enters_places: false,
        only_follows: false,
    }
}

fn connect(fanout: &Fanout, subscriber: Subscriber, greeting: &'static str) {
    let reservation = fanout.reserve(&subscriber.user, None);
    assert!(
        fanout.connect(&reservation, subscriber, true, Bytes::from_static(greeting.as_bytes())).is_some()
    );
}

/// Subscribes a connection of `ann` to a room.
fn join(
    fanout: &Fanout,
    id: SubscriberId,
    room: &RoomId,
    since: Option<Seq>,
    frame: Option<&LiveFrame>,
) -> Subscribed {
    let reservation = fanout.reserve(&UserId::stored("ann"), None);
    let topics = Topics::Rooms { rooms: std::slice::from_ref(room), following: None };
    fanout.subscribe(&reservation, &Subscription { since, live: frame, ..subscription(id, topics) })
}

/// A subscription that begins now, without frames.
fn subscription(id: SubscriberId, topics: Topics<'_>) -> Subscription<'_> {
    Subscription { id, topics, kinds: Kinds::ALL, since: None, resync: None, opened: None, live: None }
}

fn live_frame() -> LiveFrame {
    Arc::new(|_| Bytes::new())
}

fn replayable(fanout: &Fanout) -> Vec<u64> {
    fanout.state.lock().replay_buffer.contents().0
}

#[test]
fn the_replay_buffer_is_bounded_in_events_and_bytes() {
    let limits = Limits { recent_events: 3, recent_bytes: 100, ..Limits::default() };
    let fanout = Fanout::new(Epoch(1), Seq(0), &limits, clock());
    fanout.publish(&[posted(1, 1), posted(2, 1), posted(3, 1), posted(4, 1)]);
    assert_eq!(replayable(&fanout), [2, 3, 4]);
    fanout.publish(&[posted(5, 99)]);
    assert_eq!(replayable(&fanout), [4, 5]);
    let (room, message) = (RoomId::stored("lobby"), MessageId::stored("m5"));
    let deleted = Event::MessageDeleted { room, message };
    fanout.publish(&[LoggedEvent { seq: Seq(6), at: Time(0), event: deleted }]);
    let (events, bytes, _) = fanout.state.lock().replay_buffer.contents();
    assert_eq!((events.len(), bytes), (3, 1));
    fanout.publish(&[posted(7, 1000)]);
    assert_eq!(replayable(&fanout), [0; 0], "longer than the whole buffer");
}

#[test]
fn mail_takes_no_space_in_the_replay_buffer() {
    let limits = Limits { recent_events: 2, ..Limits::default() };
    let fanout = Fanout::new(Epoch(1), Seq(0), &limits, clock());
    fanout.publish(&[mailed(1), posted(2, 1), mailed(3), mailed(4), mailed(5)]);
    let floor = |fanout: &Fanout| fanout.state.lock().replay_buffer.contents().2;
    assert_eq!((replayable(&fanout), floor(&fanout)), (vec![2], Seq(1)));
    fanout.publish(&[posted(6, 1), mailed(7), posted(8, 1)]);
    assert_eq!((replayable(&fanout), floor(&fanout)), (vec![6, 8], Seq(3)));
}

/// Takes the queued items as words: `event`, `queue`, the ids of mail, or the frames of the connection itself.
async fn take(outbox: &Outbox) -> Vec<String> {
    let mut entries = Vec::new();
    outbox.take(&mut entries, 9).await;
    let word = |entry: &Entry| match &entry.item {
        Item::Frames(frames) => Some(String::from_utf8(frames.to_vec()).unwrap()),
        Item::Events(events) => Some("event".repeat(events.value.len())),
        Item::Mail(mail) => Some(mail.value.iter().map(|mail| mail.message.id.to_string()).collect()),
        Item::Signal(signal) => matches!(signal.value.0, Signal::Queue { .. }).then(|| "queue".into()),
        Item::Opened { .. } => Some("opened".into()),
        Item::Live { .. } => Some("live".into()),
        Item::ReplyText(_) | Item::OpenApproval { .. } | Item::RoomLost(_) | Item::Occupants(_) => None,
    };
    entries.iter().filter_map(word).collect()
}

#[tokio::test]
async fn an_event_published_before_a_connection_follows_rooms_is_delivered_once() {
    let fanout = Fanout::new(Epoch(1), Seq(0), &Limits::default(), clock());
    let outbox = Arc::new(Outbox::new(OutboxLimits { bytes: 1000, buffers: 10 }));
    let subscriber = Subscriber { only_follows: true, ..subscriber(&fanout, &outbox) };
    let (id, user) = (subscriber.id, subscriber.user.clone());
    connect(&fanout, subscriber, "greeting");
    let room = room("lobby");
    let rooms = vec![room.id.clone()];
    let change = MemberChange::Added(MemberId::User(user));
    let event = Event::MembersChanged { room: Arc::new(room), change, members: Arc::new([]) };
    fanout.publish(&[LoggedEvent { seq: Seq(1), at: Time(0), event }]);
    assert_eq!(take(&outbox).await, ["greeting"], "the event is not delivered before the replay");
    let reservation = fanout.reserve(&UserId::stored("ann"), None);
    let topics = Topics::Rooms { rooms: &rooms, following: Some(&RoomFilter::All) };
    let (since, live) = (Some(Seq(0)), Some(&live_frame()));
    let joined = fanout.subscribe(&reservation, &Subscription { since, live, ..subscription(id, topics) });
    assert!(matches!(joined, Subscribed::Live));
    assert_eq!(take(&outbox).await, ["event", "live"]);
}

#[test]
fn a_replay_that_leaves_no_space_for_the_live_frame_is_read_from_the_store() {
    let fanout = Fanout::new(Epoch(1), Seq(0), &Limits::default(), clock());
    fanout.publish(&[posted(1, 1), posted(2, 1)]);
    let outbox = Arc::new(Outbox::new(OutboxLimits { bytes: 1000, buffers: 3 }));
    let subscriber = subscriber(&fanout, &outbox);
    let id = subscriber.id;
    connect(&fanout, subscriber, "greeting");
    let room = RoomId::stored("lobby");
    assert!(matches!(join(&fanout, id, &room, Some(Seq(0)), Some(&live_frame())), Subscribed::NeedsReplay));
    assert!(!outbox.is_closed() && !fanout.is_in(id, &Destination::Room(room.clone())));
    assert!(matches!(join(&fanout, id, &room, Some(Seq(1)), Some(&live_frame())), Subscribed::Live));
    assert!(!outbox.is_closed() && fanout.is_in(id, &Destination::Room(room.clone())));
}

#[tokio::test]
async fn mail_of_a_batch_is_one_buffer_per_subscriber_and_precedes_later_events() {
    let fanout = Fanout::new(Epoch(1), Seq(0), &Limits::default(), clock());
    let outbox = Arc::new(Outbox::new(OutboxLimits { bytes: 1000, buffers: 9 }));
    let subscriber = subscriber(&fanout, &outbox);
    let id = subscriber.id;
    connect(&fanout, subscriber, "greeting");
    let mailbox = Mailbox::of(AgentId::stored("coder"));
    let reservation = fanout.reserve(&UserId::stored("ann"), Some(&mailbox.agent));
    assert!(fanout.listen(&reservation, id, mailbox));
    let removed = Event::AgentRemoved { agent: AgentId::stored("other"), audience: Arc::default() };
    fanout.publish(&[
        mailed(1),
        mailed(2),
        LoggedEvent { seq: Seq(3), at: Time(0), event: removed },
        mailed(4),
        mailed(5),
    ]);
    assert_eq!(take(&outbox).await, ["greeting", "m1m2", "m4m5"]);
}

/// An event of the log that does nothing but affect rights.
fn logged(seq: u64, event: Event) -> LoggedEvent {
    LoggedEvent { seq: Seq(seq), at: Time(0), event }
}

#[test]
fn an_event_that_may_change_the_rights_of_a_subscriber_invalidates_its_reservation() {
    let (ann, ben) = (UserId::stored("ann"), UserId::stored("ben"));
    let (coder, lobby) = (AgentId::stored("coder"), RoomId::stored("lobby"));
    let members = |change| {
        let (room, members) = (Arc::new(room("lobby")), Arc::new([]));
        Event::MembersChanged { room, change, members }
    };
    let removed = |people: &[UserId]| Event::RoomRemoved { room: lobby.clone(), people: people.into() };
    let cases = [
        (members(MemberChange::Removed(MemberId::User(ann.clone()))), true),
        (members(MemberChange::Added(MemberId::User(ann.clone()))), true),
        (members(MemberChange::Removed(MemberId::User(ben.clone()))), false),
        (members(MemberChange::Removed(MemberId::Agent(coder.clone()))), false),
        (removed(std::slice::from_ref(&ann)), true),
        (removed(std::slice::from_ref(&ben)), false),
        (removed(&[]), true),
        (Event::SignInsEnded(ann.clone()), true),
        (Event::UserRemoved(ben), false),
        (Event::AgentRemoved { agent: coder.clone(), audience: Arc::default() }, true),
        (Event::AgentRemoved { agent: AgentId::stored("other"), audience: Arc::default() }, false),
        (posted(1, 1).event, false),
    ];
    for (event, invalidates) in cases {
        let fanout = Fanout::new(Epoch(1), Seq(0), &Limits::default(), clock());
        let outbox = Arc::new(Outbox::new(OutboxLimits { bytes: 1000, buffers: 10 }));
        let subscriber = subscriber(&fanout, &outbox);
        let id = subscriber.id;
        connect(&fanout, subscriber, "");
        let reservation = fanout.reserve(&ann, Some(&coder));
        fanout.publish(&[logged(1, event.clone())]);
        let topics = Topics::Rooms { rooms: std::slice::from_ref(&lobby), following: None };
        let subscribed = fanout.subscribe(&reservation, &subscription(id, topics));
        assert_eq!(matches!(subscribed, Subscribed::Invalid), invalidates, "{event:?}");
        assert_eq!(fanout.listen(&reservation, id, Mailbox::of(coder.clone())), !invalidates, "{event:?}");
    }
}

#[tokio::test]
async fn a_late_joiner_receives_the_backlogs_of_a_room_until_their_agent_is_removed() {
    let fanout = Fanout::new(Epoch(1), Seq(0), &Limits::default(), clock());
    let (lobby, coder) = (RoomId::stored("lobby"), AgentId::stored("coder"));
    let item = QueuedMessage { run: RunId::stored("1"), message: None, preview: "".into(), at: Time(0) };
    let backlog = |items: &[QueuedMessage]| Signal::Queue {
        room: lobby.clone(),
        agent: coder.clone(),
        items: items.into(),
        rev: 1,
    };
    let joined = async || {
        let outbox = Arc::new(Outbox::new(OutboxLimits { bytes: 10_000, buffers: 10 }));
        let subscriber = subscriber(&fanout, &outbox);
        let id = subscriber.id;
        connect(&fanout, subscriber, "");
        join(&fanout, id, &lobby, None, Some(&live_frame()));
        take(&outbox).await
    };
    assert_eq!(joined().await, ["live"]);
    fanout.publish_backlog(&lobby, &backlog(std::slice::from_ref(&item)));
    assert_eq!(joined().await, ["live", "queue"]);
    fanout.publish_backlog(&lobby, &backlog(&[]));
    assert_eq!(joined().await, ["live"]);
    fanout.publish_backlog(&lobby, &backlog(&[item]));
    let removed = Event::AgentRemoved { agent: coder.clone(), audience: Arc::default() };
    fanout.publish(&[logged(1, removed)]);
    assert_eq!(joined().await, ["live"]);
}

#[tokio::test]
async fn an_item_is_encoded_once_per_codec_and_separately_for_each_private_subscriber() {
    let fanout = Fanout::new(Epoch(1), Seq(0), &Limits::default(), clock());
    let codecs = [Codec::new(0), Codec::new(0), Codec::new(1), Codec::PRIVATE, Codec::PRIVATE];
    let outboxes = codecs.map(|codec| {
        let outbox = Arc::new(Outbox::new(OutboxLimits { bytes: 1000, buffers: 10 }));
        let subscriber = Subscriber { codec, ..subscriber(&fanout, &outbox) };
        let id = subscriber.id;
        connect(&fanout, subscriber, "");
        join(&fanout, id, &RoomId::stored("lobby"), None, None);
        outbox
    });
    fanout.publish(&[posted(1, 1), posted(2, 1)]);
    let mut encodings = 0;
    for outbox in &outboxes {
        let mut entries = Vec::new();
        outbox.take(&mut entries, 9).await;
        let Some(Entry { codec, item: Item::Events(events) }) = entries.pop() else { panic!("no events") };
        assert_eq!(events.value.len(), 2, "the messages of a room are one group");
        events.encoded(codec, |_| {
            encodings += 1;
            Some(Bytes::new())
        });
    }
    assert_eq!(encodings, 4);
}

#[test]
fn an_absence_is_not_published_after_the_user_has_come_back() {
    let fanout = Fanout::new(Epoch(1), Seq(0), &Limits::default(), clock());
    let outbox = Arc::new(Outbox::new(OutboxLimits { bytes: 1 << 20, buffers: 64 }));
    connect(&fanout, Subscriber { present: true, ..subscriber(&fanout, &outbox) }, "");
    let ann = UserId::stored("ann");
    let people = [ann.clone()];
    let signal = |online| Signal::Presence { user: ann.clone(), username: "ann".into(), online };
    let empty = [Item::Frames(Bytes::from(vec![b'x'; 1 << 20]))];
    fanout.signal_presence(&ann, false, &people, &signal(false));
    assert!(outbox.fits(&empty), "the user is online");
    fanout.signal_presence(&ann, true, &people, &signal(true));
    assert!(!outbox.fits(&empty), "the signal is queued");
}

#[test]
fn the_weight_of_an_item_includes_its_texts() {
    let long = "x".repeat(10_000);
    let body = Payload(long.as_str().into());
    let (kind, by) = (AnswerKind::Rewind, Answerer::Gateway(GatewayId::stored("g")));
    let answer = Signal::Answered(Box::new(InquiryAnswer { kind, by, body }));
    let event = Arc::new(RunEvent::ToolProgress {
        tool: "sh".into(),
        line: long.as_str().into(),
        stream: Stream::Stdout,
    });
    let (run, agent) = (RunId::stored("r"), AgentId::stored("coder"));
    let place = RunPlace::Room(RoomId::stored("lobby"));
    let report = Signal::RunEvent { run, place, agent, event, rev: 1 };
    for signal in [answer, report] {
        assert!(signal.length() >= 10_000, "{signal:?}");
    }
    let prompted = Room { system_prompt: Some(long.as_str().into()), ..self::room("lobby") };
    assert!(Event::RoomChanged(Arc::new(prompted)).length() >= 10_000);
}
