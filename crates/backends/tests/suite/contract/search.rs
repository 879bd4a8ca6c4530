//! What was said, found again: the same as by a look at every message, however far the index has come.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::decide::Change;
use parlor_engine::search::{SearchTerms, TokenizedText, search as find};
use parlor_model::query::{Search, SearchCursor, SearchResults};
use parlor_model::{
    Destination, Event, Member, Message, MessageKind, Revision, Sender, SenderKind, Seq, Time,
};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

fn found(ports: &Ports, asked: &Search, rooms: &[&str]) -> SearchResults {
    let found = found_within(ports, asked, rooms, Duration::MAX);
    assert!(!found.partial);
    found
}

fn found_within(ports: &Ports, asked: &Search, rooms: &[&str], patience: Duration) -> SearchResults {
    let memberships: Vec<Member> = rooms.iter().map(|room| membership(room, 0)).collect();
    let wanted = SearchTerms::parse(&asked.text).unwrap();
    ports.read(|s| find(asked, &wanted, &memberships, patience, s))
}

fn membership(room: &str, cleared: u64) -> Member {
    let mut member = member(room, person("ann"), 1);
    member.room_preferences.cleared_through = Seq(cleared);
    member
}

fn seqs(found: &SearchResults) -> Vec<u64> {
    found.hits.iter().map(|hit| hit.message.seq.0).collect()
}

/// All of them, in the order of their places.
fn places(ports: &Ports, text: &str, rooms: &[&str]) -> Vec<u64> {
    let (mut asked, mut all) = (search(text), Vec::new());
    loop {
        let page = found(ports, &asked, rooms);
        all.extend(seqs(&page));
        let Some(next) = page.next else { break };
        asked.from_place = next;
    }
    all.sort();
    all
}

fn say(ports: &mut Ports, room: &str, text: &str) -> Message {
    let seq = ports.next_seq();
    let said = Message { text: text.into(), ..message(&format!("m{seq}"), room, "ann", seq) };
    ports.post(said.clone());
    said
}

fn revise(ports: &mut Ports, old: &Message, text: &str) -> Message {
    let message = Message { text: text.into(), ..old.clone() };
    let previous = Revision { message: old.id.clone(), text: (&*old.text).into(), edited_at: Time(1) };
    let told = Arc::new(message.clone());
    let change = Change::Revise { message: told.clone(), previous };
    ports.commit(vec![change], vec![Event::MessageEdited(told)]);
    message
}

/// The same before anything is in the index, and with any part of it there.
fn at_every_mark(test: impl Fn(&mut Ports, &mut dyn FnMut(&mut Ports))) {
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
fn words_phrases_and_beginnings_are_found_in_ones_own_rooms_only() {
    at_every_mark(|ports, index| {
        for text in ["The build FAILS", "a build of Café", "failing builds", "你好世界", "r6C6F626279 k0"]
        {
            say(ports, "lobby", text);
            say(ports, "secret", text);
            index(ports);
        }
        let check = |text, expected: &[u64]| assert_eq!(places(ports, text, &["lobby"]), expected, "{text}");
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
        assert_eq!(places(ports, "fails", &["lobby", "secret", "gone"]), [1, 2]);
        assert_eq!(places(ports, "fails", &[]), NOTHING);
        let many: Vec<String> = (0..150).map(|n| format!("room{n}")).chain(["lobby".into()]).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(places(ports, "fails", &many), [1], "in more rooms than the index is asked about");
    });
}

#[test]
fn a_changed_text_is_found_as_it_is_and_a_deleted_one_not_at_all() {
    at_every_mark(|ports, index| {
        ports.change(vec![put_room("lobby"), put_room("other")]);
        let first = say(ports, "lobby", "canary one");
        index(ports);
        let second = say(ports, "lobby", "canary two");
        say(ports, "other", "canary three");
        index(ports);
        let rooms = ["lobby", "other"];
        let first = revise(ports, &first, "sparrow one");
        assert_eq!(places(ports, "canary", &rooms), [2, 3]);
        assert_eq!(places(ports, "sparrow", &rooms), [1]);
        revise(ports, &first, "finch");
        index(ports);
        assert_eq!(places(ports, "sparrow", &rooms), NOTHING);
        assert_eq!(places(ports, "finch", &rooms), [1]);
        ports.change(vec![Change::DeleteMessage(second.id)]);
        assert_eq!(places(ports, "canary", &rooms), [3]);
        ports.change(vec![Change::RemoveRoom(room_id("other"))]);
        assert_eq!(places(ports, "canary", &rooms), NOTHING);
        index(ports);
        ports.restart();
        assert_eq!(places(ports, "canary", &rooms), NOTHING);
        assert_eq!(places(ports, "finch", &rooms), [1]);
    });
}

#[test]
fn room_sender_kind_and_time_narrow_it() {
    at_every_mark(|ports, index| {
        let said = |seq, sender, kind| Message {
            sender,
            kind,
            text: "needle".into(),
            ..message(&format!("m{seq}"), if seq % 2 == 0 { "even" } else { "odd" }, "", seq)
        };
        let ann = || Sender::User(user_id("ann"));
        ports.post(said(1, ann(), MessageKind::Text));
        ports.post(said(2, Sender::User(user_id("Ann")), MessageKind::Text));
        index(ports);
        ports.post(said(3, Sender::Agent(agent_id("ann")), MessageKind::AgentResponse));
        ports.post(said(4, Sender::Source("slack".into()), MessageKind::Text));
        index(ports);
        ports.post(Message { destination: on_path("slack/x"), ..said(5, ann(), MessageKind::Text) });
        index(ports);
        let check = |narrow: &dyn Fn(&mut Search), expected: &[u64]| {
            let mut asked = search("needle");
            narrow(&mut asked);
            let mut found = seqs(&found(ports, &asked, &["even", "odd"]));
            found.sort();
            assert_eq!(found, expected, "{asked:?}");
        };
        check(&|_| {}, &[1, 2, 3, 4]);
        check(&|asked| asked.room = Some(room_id("odd")), &[1, 3]);
        check(&|asked| asked.room = Some(room_id("foreign")), &[]);
        check(&|asked| asked.sender = Some("ann".into()), &[1, 3]);
        check(&|asked| asked.sender_kind = Some(SenderKind::User), &[1, 2]);
        check(&|asked| asked.sender_kind = Some(SenderKind::Agent), &[3]);
        check(&|asked| asked.sender_kind = Some(SenderKind::Source), &[4]);
        check(&|asked| asked.kind = Some(MessageKind::AgentResponse), &[3]);
        check(&|asked| (asked.from, asked.to) = (Some(Time(2000)), Some(Time(3000))), &[2, 3]);
        check(&|asked| asked.from_place.before = Some(Seq(3)), &[1, 2]);
    });
}

#[test]
fn the_best_come_first_and_pages_hold_each_of_them_once() {
    at_every_mark(|ports, index| {
        for n in 0..40 {
            let text = match n % 4 {
                0 => "needle".to_owned(),
                1 => format!("a needle in {}", "hay ".repeat(60)),
                2 => "needle, needle: needle!".to_owned(),
                _ => "needles".to_owned(),
            };
            say(ports, "lobby", &text);
            if n % 8 == 7 {
                index(ports);
            }
        }
        let mut asked = search("needle");
        let all = found(ports, &asked, &["lobby"]);
        let scores: Vec<u32> = all.hits.iter().map(|hit| hit.score).collect();
        assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
        assert_eq!(seqs(&all)[..2], [39, 35], "said more than once, the newest first");
        assert_eq!(all.next, None);
        asked.limit = 7;
        let mut paged = Vec::new();
        loop {
            let page = found(ports, &asked, &["lobby"]);
            paged.extend(seqs(&page));
            let Some(next) = page.next else { break };
            asked.from_place = next;
            say(ports, "lobby", "a needle that came later");
        }
        assert_eq!(paged, seqs(&all));
    });
}

#[test]
fn more_than_are_weighed_at_once_come_on_later_pages() {
    each(|ports| {
        for n in 0..2100 {
            say(ports, "lobby", if n % 700 == 0 { "needle needle" } else { "needle" });
            if n == 1500 {
                ports.store.index(1000).unwrap();
            }
        }
        assert_eq!(
            seqs(&found(ports, &search("needle"), &["lobby"]))[..2],
            [1401, 2100],
            "the best of the newest"
        );
        assert_eq!(places(ports, "needle", &["lobby"]), (1..=2100).collect::<Vec<u64>>());
    });
}

#[test]
fn what_is_common_elsewhere_and_long_ago_here_is_found() {
    each(|ports| {
        say(ports, "lobby", "needle of old");
        let crowd = |seq: u64| {
            Arc::new(Message { text: "needle".into(), ..message(&format!("m{seq}"), "crowd", "ann", seq) })
        };
        let messages: Vec<_> = (2..=20_000).map(crowd).collect();
        let told = |message: &Arc<Message>| Event::MessagePosted {
            message: message.clone(),
            deliveries: Arc::new([]),
        };
        let changes = messages.iter().cloned().map(Change::PutMessage).collect();
        ports.commit(changes, messages.iter().map(told).collect());
        say(ports, "lobby", "a new needle");
        for _ in 0..3 {
            assert_eq!(places(ports, "needle", &["lobby"]), [1, 20_001]);
            ports.store.index(10_000).unwrap();
        }
    });
}

#[test]
fn a_room_too_large_to_take_out_is_gone_at_once_and_the_rest_stays() {
    each(|ports| {
        ports.change(vec![put_room("large"), put_room("small")]);
        say(ports, "small", "canary of the small room");
        for n in 0..1200 {
            say(ports, "large", &format!("canary {n}"));
        }
        ports.store.index(2000).unwrap();
        assert_eq!(places(ports, "canary", &["small", "large"]).len(), 1201);
        ports.change(vec![Change::RemoveRoom(room_id("large"))]);
        for _ in 0..2 {
            assert_eq!(places(ports, "canary", &["small", "large"]), [1]);
            ports.store.index(2000).unwrap();
        }
    });
}

#[test]
fn the_index_reaches_the_head_and_slices_end_early_at_long_texts() {
    let kind = &crate::stores::kinds()[1];
    let home = (kind.make)(parlor_model::Epoch(1));
    let (store, reader) = home.open();
    let mut ports = Ports { store, reader, home, seq: Seq(0) };
    assert_eq!(ports.store.index(10).unwrap(), Seq(0));
    for _ in 0..4 {
        say(&mut ports, "lobby", &"long text ".repeat(60_000));
    }
    assert_eq!(ports.store.index(10).unwrap(), Seq(1), "two of them are more than a slice");
    assert_eq!(ports.store.index(1).unwrap(), Seq(2));
    assert_eq!(ports.store.index(10).unwrap(), Seq(3));
    assert_eq!(ports.store.index(10).unwrap(), Seq(4));
    ports.commit(vec![], vec![Event::Tombstone, Event::Tombstone]);
    assert_eq!(ports.store.index(10).unwrap(), Seq(6), "what is no message is passed");
    assert_eq!(places(&ports, "\"text long\"", &["lobby"]), [1, 2, 3, 4]);
}

#[test]
fn what_a_member_cleared_is_not_found_by_them() {
    at_every_mark(|ports, index| {
        for _ in 0..3 {
            say(ports, "lobby", "needle");
            say(ports, "other", "needle");
            index(ports);
        }
        let memberships = [membership("lobby", 3), membership("other", 0)];
        let (asked, wanted) = (search("needle"), SearchTerms::parse("needle").unwrap());
        let found = ports.read(|s| find(&asked, &wanted, &memberships, Duration::MAX, s));
        assert_eq!(seqs(&found), [6, 5, 4, 2]);
    });
}

#[test]
fn a_search_that_runs_out_of_time_says_so_and_where_to_go_on() {
    at_every_mark(|ports, index| {
        for n in 0..9 {
            say(
                ports,
                if n % 3 == 0 { "foreign" } else { "lobby" },
                if n % 2 == 0 { "needle" } else { "hay" },
            );
            index(ports);
        }
        let (mut asked, mut all) = (search("needle"), Vec::new());
        loop {
            let page = found_within(ports, &asked, &["lobby"], Duration::ZERO);
            assert!(page.hits.len() <= 1);
            all.extend(seqs(&page));
            assert_eq!(page.partial, page.next.is_some());
            let Some(next) = page.next else { break };
            asked.from_place = next;
        }
        assert_eq!(all, [9, 5, 3]);
    });
}

#[derive(Debug, Clone)]
enum Step {
    Say(usize, String),
    Edit(usize, String),
    Erase(usize),
    RemoveRoom(usize),
    Index(usize),
    Restart,
}

const NOTHING: [u64; 0] = [];
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
        8 => (0..3usize, text()).prop_map(|(room, text)| Step::Say(room, text)),
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
    fn search_equals_a_look_at_every_message(
        steps in prop::collection::vec(step(), 1..40),
        queries in prop::collection::vec((query(), 0..8usize), 1..8),
    ) {
        each(|ports| {
            ports.change(ROOMS.map(put_room).into());
            let mut said: Vec<Message> = Vec::new();
            for step in &steps {
                take(ports, &mut said, step.clone());
                for (text, rooms) in &queries {
                    let Ok(wanted) = SearchTerms::parse(text) else { continue };
                    let rooms: Vec<&str> =
                        ROOMS.into_iter().enumerate().filter(|(n, _)| rooms >> n & 1 == 1).map(|(_, r)| r).collect();
                    let seen = |message: &&Message| {
                        let room = message.destination.room().unwrap().as_str();
                        rooms.contains(&room) && wanted.find(&TokenizedText::of(&message.text)).is_some()
                    };
                    let expected: Vec<u64> = said.iter().filter(seen).map(|message| message.seq.0).collect();
                    assert_eq!(places(ports, text, &rooms), expected, "{text:?} in {rooms:?} after {step:?}");
                }
            }
        });
    }
}

fn take(ports: &mut Ports, said: &mut Vec<Message>, step: Step) {
    let count = said.len();
    match step {
        Step::Say(room, text) => {
            let message = say(ports, ROOMS[room], &text);
            said.push(message);
        }
        Step::Edit(which, text) if count > 0 => {
            said[which % count] = revise(ports, &said[which % count], &text);
        }
        Step::Erase(which) if count > 0 => {
            ports.change(vec![Change::DeleteMessage(said.remove(which % count).id)]);
        }
        Step::RemoveRoom(room) => {
            ports.change(vec![Change::RemoveRoom(room_id(ROOMS[room])), put_room(ROOMS[room])]);
            said.retain(|message| message.destination != Destination::Room(room_id(ROOMS[room])));
        }
        Step::Index(most) => drop(ports.store.index(most).unwrap()),
        Step::Restart => ports.restart(),
        Step::Edit(..) | Step::Erase(_) => {}
    }
}

#[test]
fn a_place_on_a_page_before_everything_finds_nothing() {
    each(|ports| {
        say(ports, "lobby", "needle");
        let place = SearchCursor { before: Some(Seq(0)), skip: 0 };
        let asked = Search { from_place: place, ..search("needle") };
        assert_eq!(found(ports, &asked, &["lobby"]), SearchResults::default());
        let place = SearchCursor { before: Some(Seq(u64::MAX)), skip: 5 };
        let asked = Search { from_place: place, ..search("needle") };
        assert_eq!(found(ports, &asked, &["lobby"]), SearchResults::default());
    });
}
