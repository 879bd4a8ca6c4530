//! Search: results equal a scan of every message, no matter how much of the log is indexed.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::changes::{Change, MessageChange, RoomChange};
use parlor_engine::search::{SearchTerms, TokenizedText, search as find};
use parlor_model::query::{SearchCursor, SearchMessages, SearchResults};
use parlor_model::{
    Destination, Event, Member, Message, MessageKind, Revision, Sender, SenderKind, Seq, Time,
};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

fn found(ports: &Ports, request: &SearchMessages, rooms: &[&str]) -> SearchResults {
    let found = search_with_timeout(ports, request, rooms, Duration::MAX);
    assert!(!found.partial);
    found
}

fn search_with_timeout(
    ports: &Ports,
    request: &SearchMessages,
    rooms: &[&str],
    timeout: Duration,
) -> SearchResults {
    let memberships: Vec<Member> = rooms.iter().map(|room| membership(room, 0)).collect();
    let terms = SearchTerms::parse(&request.text).unwrap();
    ports.read(|s| find(request, &terms, &memberships, timeout, s))
}

fn membership(room: &str, cleared: u64) -> Member {
    let mut member = member(room, person("ann"), 1);
    member.room_preferences.cleared_through = Seq(cleared);
    member
}

fn seqs(found: &SearchResults) -> Vec<u64> {
    found.hits.iter().map(|hit| hit.message.seq.0).collect()
}

/// Sequence numbers of all results over all pages, sorted.
fn all_seqs(ports: &Ports, text: &str, rooms: &[&str]) -> Vec<u64> {
    let (mut request, mut all) = (search(text), Vec::new());
    loop {
        let page = found(ports, &request, rooms);
        all.extend(seqs(&page));
        let Some(next) = page.next else { break };
        request.from_place = next;
    }
    all.sort();
    all
}

fn post(ports: &mut Ports, room: &str, text: &str) -> Message {
    let seq = ports.next_seq();
    let message = Message { text: text.into(), ..message(&format!("m{seq}"), room, "ann", seq) };
    ports.post(message.clone());
    message
}

fn revise(ports: &mut Ports, old: &Message, text: &str) -> Message {
    let message = Message { text: text.into(), ..old.clone() };
    let previous = Revision { message: old.id.clone(), text: (&*old.text).into(), edited_at: Time(1) };
    let edited = Arc::new(message.clone());
    let change = Change::Message(MessageChange::Revise { message: edited.clone(), previous });
    ports.commit(vec![change], vec![Event::MessageEdited(edited)]);
    message
}

/// Runs a test without an index and with indexes that were filled in slices of different sizes.
fn with_every_index_state(test: impl Fn(&mut Ports, &mut dyn FnMut(&mut Ports))) {
    for slice in [0, 1, 2, 1000] {
        each(|ports| {
            test(ports, &mut |ports| {
                if slice > 0 {
                    ports.store.index(slice).unwrap();
                }
            })
        });
    }
}

#[test]
fn words_phrases_and_prefixes_are_found_in_the_callers_rooms_only() {
    with_every_index_state(|ports, index| {
        for text in ["The build FAILS", "a build of Café", "failing builds", "你好世界", "r6C6F626279 k0"]
        {
            post(ports, "lobby", text);
            post(ports, "secret", text);
            index(ports);
        }
        let check =
            |text, expected: &[u64]| assert_eq!(all_seqs(ports, text, &["lobby"]), expected, "{text}");
        check("build", &[1, 3, 5]);
        check("\"build\"", &[1, 3]);
        check("build fail", &[1]);
        check("build* fail*", &[1, 5]);
        check("\"build fails\"", &[1]);
        check("\"fails build\"", &[]);
        check("cafe", &[3]);
        check("-of build", &[1, 5]);
        check("好世", &[7]);
        check("nowhere", &[]);
        check("r6C6F626279", &[9]);
        check("\"k0\"", &[9]);
        assert_eq!(all_seqs(ports, "fails", &["lobby", "secret", "gone"]), [1, 2]);
        assert_eq!(all_seqs(ports, "fails", &[]), NO_RESULTS);
        let many: Vec<String> = (0..150).map(|n| format!("room{n}")).chain(["lobby".into()]).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(all_seqs(ports, "fails", &many), [1], "in more rooms than an index query lists");
    });
}

#[test]
fn an_edited_message_is_found_by_its_current_text_and_a_deleted_one_is_not_found() {
    with_every_index_state(|ports, index| {
        ports.change(vec![put_room("lobby"), put_room("other")]);
        let first = post(ports, "lobby", "canary one");
        index(ports);
        let second = post(ports, "lobby", "canary two");
        post(ports, "other", "canary three");
        index(ports);
        let rooms = ["lobby", "other"];
        let first = revise(ports, &first, "sparrow one");
        assert_eq!(all_seqs(ports, "canary", &rooms), [2, 3]);
        assert_eq!(all_seqs(ports, "sparrow", &rooms), [1]);
        revise(ports, &first, "finch");
        index(ports);
        assert_eq!(all_seqs(ports, "sparrow", &rooms), NO_RESULTS);
        assert_eq!(all_seqs(ports, "finch", &rooms), [1]);
        ports.change(vec![Change::Message(MessageChange::DeleteMessage(second.id))]);
        assert_eq!(all_seqs(ports, "canary", &rooms), [3]);
        ports.change(vec![Change::Room(RoomChange::RemoveRoom(room_id("other")))]);
        assert_eq!(all_seqs(ports, "canary", &rooms), NO_RESULTS);
        index(ports);
        ports.restart();
        assert_eq!(all_seqs(ports, "canary", &rooms), NO_RESULTS);
        assert_eq!(all_seqs(ports, "finch", &rooms), [1]);
    });
}

#[test]
fn room_sender_kind_and_time_filter_the_results() {
    with_every_index_state(|ports, index| {
        let new = |seq, sender, kind| Message {
            sender,
            kind,
            text: "needle".into(),
            ..message(&format!("m{seq}"), if seq % 2 == 0 { "even" } else { "odd" }, "", seq)
        };
        let ann = || Sender::User(user_id("ann"));
        ports.post(new(1, ann(), MessageKind::Text));
        ports.post(new(2, Sender::User(user_id("Ann")), MessageKind::Text));
        index(ports);
        ports.post(new(3, Sender::Agent(agent_id("ann")), MessageKind::AgentResponse));
        ports.post(new(4, Sender::Source("slack".into()), MessageKind::Text));
        index(ports);
        ports.post(Message { destination: on_path("slack/x"), ..new(5, ann(), MessageKind::Text) });
        index(ports);
        let check = |filter: &dyn Fn(&mut SearchMessages), expected: &[u64]| {
            let mut request = search("needle");
            filter(&mut request);
            let mut found = seqs(&found(ports, &request, &["even", "odd"]));
            found.sort();
            assert_eq!(found, expected, "{request:?}");
        };
        check(&|_| {}, &[1, 2, 3, 4]);
        check(&|request| request.room = Some(room_id("odd")), &[1, 3]);
        check(&|request| request.room = Some(room_id("foreign")), &[]);
        check(&|request| request.sender = Some("ann".into()), &[1, 3]);
        check(&|request| request.sender_kind = Some(SenderKind::User), &[1, 2]);
        check(&|request| request.sender_kind = Some(SenderKind::Agent), &[3]);
        check(&|request| request.sender_kind = Some(SenderKind::Source), &[4]);
        check(&|request| request.kind = Some(MessageKind::AgentResponse), &[3]);
        check(&|request| (request.from, request.to) = (Some(Time(2000)), Some(Time(3000))), &[2, 3]);
        check(&|request| request.from_place.before = Some(Seq(3)), &[1, 2]);
    });
}

#[test]
fn the_best_results_come_first_and_pages_contain_each_result_once() {
    with_every_index_state(|ports, index| {
        for n in 0..40 {
            let text = match n % 4 {
                0 => "needle".to_owned(),
                1 => format!("a needle in {}", "hay ".repeat(60)),
                2 => "needle, needle: needle!".to_owned(),
                _ => "needles".to_owned(),
            };
            post(ports, "lobby", &text);
            if n % 8 == 7 {
                index(ports);
            }
        }
        let mut request = search("needle");
        let all = found(ports, &request, &["lobby"]);
        let scores: Vec<u32> = all.hits.iter().map(|hit| hit.score).collect();
        assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
        assert_eq!(seqs(&all)[..2], [39, 35], "most occurrences first, then the newest");
        assert_eq!(all.next, None);
        request.limit = 7;
        let mut paged = Vec::new();
        loop {
            let page = found(ports, &request, &["lobby"]);
            paged.extend(seqs(&page));
            let Some(next) = page.next else { break };
            request.from_place = next;
            post(ports, "lobby", "a needle that came later");
        }
        assert_eq!(paged, seqs(&all));
    });
}

#[test]
fn results_beyond_the_ranking_window_come_on_later_pages() {
    each(|ports| {
        for n in 0..2100 {
            post(ports, "lobby", if n % 700 == 0 { "needle needle" } else { "needle" });
            if n == 1500 {
                ports.store.index(1000).unwrap();
            }
        }
        assert_eq!(
            seqs(&found(ports, &search("needle"), &["lobby"]))[..2],
            [1401, 2100],
            "the best of the newest window"
        );
        assert_eq!(all_seqs(ports, "needle", &["lobby"]), (1..=2100).collect::<Vec<u64>>());
    });
}

#[test]
fn an_old_match_is_found_when_the_word_is_frequent_in_other_rooms() {
    each(|ports| {
        post(ports, "lobby", "needle of old");
        let foreign = |seq: u64| {
            Arc::new(Message { text: "needle".into(), ..message(&format!("m{seq}"), "foreign", "ann", seq) })
        };
        let messages: Vec<_> = (2..=20_000).map(foreign).collect();
        let posted = |message: &Arc<Message>| Event::MessagePosted {
            message: message.clone(),
            deliveries: Arc::new([]),
        };
        let changes =
            messages.iter().cloned().map(|it| Change::Message(MessageChange::PutMessage(it))).collect();
        ports.commit(changes, messages.iter().map(posted).collect());
        post(ports, "lobby", "a new needle");
        for _ in 0..3 {
            assert_eq!(all_seqs(ports, "needle", &["lobby"]), [1, 20_001]);
            ports.store.index(10_000).unwrap();
        }
    });
}

#[test]
fn removing_a_room_that_is_too_large_to_unindex_rebuilds_the_index() {
    each(|ports| {
        ports.change(vec![put_room("large"), put_room("small")]);
        post(ports, "small", "canary of the small room");
        for n in 0..1200 {
            post(ports, "large", &format!("canary {n}"));
        }
        ports.store.index(2000).unwrap();
        assert_eq!(all_seqs(ports, "canary", &["small", "large"]).len(), 1201);
        ports.change(vec![Change::Room(RoomChange::RemoveRoom(room_id("large")))]);
        for _ in 0..2 {
            assert_eq!(all_seqs(ports, "canary", &["small", "large"]), [1]);
            ports.store.index(2000).unwrap();
        }
    });
}

#[test]
fn the_index_reaches_the_head_and_long_texts_end_a_slice_early() {
    let kind = &crate::stores::kinds()[1];
    let fixture = (kind.make)(parlor_model::Epoch(1));
    let (store, reader) = fixture.open();
    let mut ports = Ports { store, reader, fixture, seq: Seq(0) };
    assert_eq!(ports.store.index(10).unwrap(), Seq(0));
    for _ in 0..4 {
        post(&mut ports, "lobby", &"long text ".repeat(60_000));
    }
    assert_eq!(ports.store.index(10).unwrap(), Seq(1), "two of these messages exceed a slice");
    assert_eq!(ports.store.index(1).unwrap(), Seq(2));
    assert_eq!(ports.store.index(10).unwrap(), Seq(3));
    assert_eq!(ports.store.index(10).unwrap(), Seq(4));
    ports.commit(vec![], vec![Event::Tombstone, Event::Tombstone]);
    assert_eq!(ports.store.index(10).unwrap(), Seq(6), "events that are not messages are skipped");
    assert_eq!(all_seqs(&ports, "\"text long\"", &["lobby"]), [1, 2, 3, 4]);
}

#[test]
fn cleared_messages_are_not_found() {
    with_every_index_state(|ports, index| {
        for _ in 0..3 {
            post(ports, "lobby", "needle");
            post(ports, "other", "needle");
            index(ports);
        }
        let memberships = [membership("lobby", 3), membership("other", 0)];
        let (request, terms) = (search("needle"), SearchTerms::parse("needle").unwrap());
        let found = ports.read(|s| find(&request, &terms, &memberships, Duration::MAX, s));
        assert_eq!(seqs(&found), [6, 5, 4, 2]);
    });
}

#[test]
fn a_timed_out_search_is_partial_and_has_a_cursor_to_continue() {
    with_every_index_state(|ports, index| {
        for n in 0..9 {
            post(
                ports,
                if n % 3 == 0 { "foreign" } else { "lobby" },
                if n % 2 == 0 { "needle" } else { "hay" },
            );
            index(ports);
        }
        let (mut request, mut all) = (search("needle"), Vec::new());
        loop {
            let page = search_with_timeout(ports, &request, &["lobby"], Duration::ZERO);
            assert!(page.hits.len() <= 1);
            all.extend(seqs(&page));
            assert_eq!(page.partial, page.next.is_some());
            let Some(next) = page.next else { break };
            request.from_place = next;
        }
        assert_eq!(all, [9, 5, 3]);
    });
}

#[derive(Debug, Clone)]
enum Step {
    Post(usize, String),
    Edit(usize, String),
    Erase(usize),
    RemoveRoom(usize),
    Index(usize),
    Restart,
}

const NO_RESULTS: [u64; 0] = [];
const ROOMS: [&str; 3] = ["one", "two", "three"];
const VOCABULARY: [&str; 10] =
    ["build", "builds", "Bauträger", "é", "e\u{301}", "go", "你好", "x\u{200d}y", "a-b", "🎉"];

fn text() -> impl Strategy<Value = String> {
    let words = prop::sample::select(&VOCABULARY[..]);
    prop::collection::vec((words, prop::sample::select(&[" ", ", ", ""][..])), 0..6)
        .prop_map(|parts| parts.into_iter().map(|(word, gap)| format!("{word}{gap}")).collect())
}

fn query() -> impl Strategy<Value = String> {
    let term = (prop::sample::select(&["", "", "-"][..]), text(), prop::sample::select(&["", "\"", "*"][..]));
    let term = term.prop_map(|(sign, text, form)| match form {
        "\"" => format!("{sign}\"{text}\""),
        form => format!("{sign}{}{form}", text.trim()),
    });
    prop::collection::vec(term, 1..3).prop_map(|terms| terms.join(" "))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..3usize, text()).prop_map(|(room, text)| Step::Post(room, text)),
        3 => (any::<usize>(), text()).prop_map(|(which, text)| Step::Edit(which, text)),
        2 => any::<usize>().prop_map(Step::Erase),
        1 => (0..3usize).prop_map(Step::RemoveRoom),
        3 => (1..6usize).prop_map(Step::Index),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(parlor_seed::proptest_config_with(24))]

    #[test]
    fn search_equals_a_scan_of_every_message(
        steps in prop::collection::vec(step(), 1..40),
        queries in prop::collection::vec((query(), 0..8usize), 1..8),
    ) {
        each(|ports| {
            ports.change(ROOMS.map(put_room).into());
            let mut messages: Vec<Message> = Vec::new();
            for step in &steps {
                apply_step(ports, &mut messages, step.clone());
                for (text, rooms) in &queries {
                    let Ok(terms) = SearchTerms::parse(text) else { continue };
                    let rooms: Vec<&str> =
                        ROOMS.into_iter().enumerate().filter(|(n, _)| rooms >> n & 1 == 1).map(|(_, r)| r).collect();
                    let matches = |message: &&Message| {
                        let room = message.destination.room().unwrap().as_str();
                        rooms.contains(&room) && terms.find(&TokenizedText::of(&message.text)).is_some()
                    };
                    let expected: Vec<u64> = messages.iter().filter(matches).map(|message| message.seq.0).collect();
                    assert_eq!(all_seqs(ports, text, &rooms), expected, "{text:?} in {rooms:?} after {step:?}");
                }
            }
        });
    }
}

fn apply_step(ports: &mut Ports, messages: &mut Vec<Message>, step: Step) {
    let count = messages.len();
    match step {
        Step::Post(room, text) => {
            let message = post(ports, ROOMS[room], &text);
            messages.push(message);
        }
        Step::Edit(which, text) if count > 0 => {
            messages[which % count] = revise(ports, &messages[which % count], &text);
        }
        Step::Erase(which) if count > 0 => {
            ports.change(vec![Change::Message(MessageChange::DeleteMessage(
                messages.remove(which % count).id,
            ))]);
        }
        Step::RemoveRoom(room) => {
            ports.change(vec![
                Change::Room(RoomChange::RemoveRoom(room_id(ROOMS[room]))),
                put_room(ROOMS[room]),
            ]);
            messages.retain(|message| message.destination != Destination::Room(room_id(ROOMS[room])));
        }
        Step::Index(limit) => drop(ports.store.index(limit).unwrap()),
        Step::Restart => ports.restart(),
        Step::Edit(..) | Step::Erase(_) => {}
    }
}

#[test]
fn a_cursor_before_or_beyond_all_results_finds_nothing() {
    each(|ports| {
        post(ports, "lobby", "needle");
        let cursor = SearchCursor { before: Some(Seq(0)), skip: 0 };
        let request = SearchMessages { from_place: cursor, ..search("needle") };
        assert_eq!(found(ports, &request, &["lobby"]), SearchResults::default());
        let cursor = SearchCursor { before: Some(Seq(u64::MAX)), skip: 5 };
        let request = SearchMessages { from_place: cursor, ..search("needle") };
        assert_eq!(found(ports, &request, &["lobby"]), SearchResults::default());
    });
}
