//! What the desk hands out, to whom, and when no more.

use super::super::host::HostCommand;
use super::*;
use parlor_model::{AddressedBy, ConversationId, Lineage, Usage};
use parlor_model::{Frozen, Room, RoomKind, RoomRole, Time};

struct Nobody;

impl Host for Nobody {
    fn send(&self, _: &HostCommand<'_>) {}
}

pub(super) fn agent() -> AgentId {
    AgentId::stored("coder")
}

pub(super) fn room(id: &str) -> RoomId {
    RoomId::stored(id)
}

pub(super) fn a_run(id: &str, room: &str, state: RunState) -> Run {
    Run {
        id: RunId::stored(id),
        agent: agent(),
        room: RoomId::stored(room),
        trigger: None,
        task: None,
        asked_by: None,
        arrival: None,
        addressed: AddressedBy::Directly,
        lineage: Lineage::start(ConversationId::stored(format!("c{id}")), agent()),
        parent: None,
        state,
        reply: None,
        usage: Usage::default(),
        queued_at: Time(1),
        started_at: None,
        ended_at: None,
    }
}

pub(super) fn run(id: &str, room: &str, state: RunState) -> Event {
    Event::RunChanged(Arc::new(a_run(id, room, state)))
}

pub(super) fn link(scheduler: &mut Scheduler, gateway: &str, by_room: bool) -> GatewayConnectionId {
    let (gateway, owner) = (GatewayId::stored(gateway), UserId::stored("ann"));
    scheduler.connect_gateway(GatewayConnection { gateway, owner, by_room, host: Arc::new(Nobody) })
}

/// With the agent there through a foreign gateway or one of ours, or away.
pub(super) fn desk(
    by_room: Option<bool>,
    runs: &[(&str, &str, RunState)],
) -> (Scheduler, GatewayConnectionId) {
    let mut scheduler = Scheduler::default();
    let id = link(&mut scheduler, "g", by_room.unwrap_or_default());
    if by_room.is_some() {
        scheduler.agent_online(&agent(), id, "Coder", Instant::now());
    }
    for (id, room, state) in runs {
        scheduler.apply_event(&run(id, room, state.clone()), Instant::now());
    }
    (scheduler, id)
}

fn ready(scheduler: &mut Scheduler) -> Vec<String> {
    scheduler.take_ready(Instant::now()).iter().map(ToString::to_string).collect()
}

fn due(scheduler: &mut Scheduler, patience: Duration, now: Instant) -> Vec<(String, RunOutcome)> {
    scheduler
        .take_runs_to_finish(patience, now)
        .into_iter()
        .map(|due| (due.run.to_string(), due.ending.outcome))
        .collect()
}

pub(super) fn over(id: &str) -> Event {
    run(id, "a", RunState::Ended(RunOutcome::Complete))
}

#[test]
fn an_agent_that_is_away_starts_nothing_and_one_that_comes_starts_the_oldest() {
    let (mut scheduler, link) = desk(None, &[("1", "a", RunState::Queued), ("2", "b", RunState::Queued)]);
    assert_eq!(ready(&mut scheduler), [""; 0]);
    scheduler.agent_online(&agent(), link, "Coder", Instant::now());
    assert_eq!(ready(&mut scheduler), ["1"]);
    assert_eq!(ready(&mut scheduler), [""; 0], "it is given once");
    scheduler.not_started(&RunId::stored("1"));
    assert_eq!(ready(&mut scheduler), ["1"]);
}

#[test]
fn a_foreign_host_runs_one_at_a_time_and_ours_one_in_each_room() {
    let waiting = [
        ("0", "a", RunState::Running),
        ("1", "a", RunState::Queued),
        ("2", "b", RunState::Queued),
        ("3", "b", RunState::Queued),
    ];
    assert_eq!(ready(&mut desk(Some(false), &waiting).0), [""; 0]);
    let (mut ours, _) = desk(Some(true), &waiting);
    assert_eq!(ready(&mut ours), ["2"]);
    ours.end(&RunId::stored("0"), PendingEnd::plain(RunOutcome::Complete));
    ours.apply_event(&over("0"), Instant::now());
    assert_eq!(ready(&mut ours), ["1"]);
}

#[test]
fn an_old_link_takes_nothing_from_a_newer_one() {
    let (mut scheduler, old) = desk(Some(false), &[]);
    let new = link(&mut scheduler, "g", false);
    assert_eq!(
        scheduler.agent_online(&agent(), new, "Coder", Instant::now()),
        None,
        "the same gateway came back"
    );
    assert_eq!(scheduler.disconnect_gateway(old, Instant::now()), []);
    assert!(!scheduler.agent_offline(&agent(), old, Instant::now()));
    assert_eq!(scheduler.online_agent(&agent()).map(|seat| seat.link), Some(new));
    let other = link(&mut scheduler, "h", false);
    assert_eq!(
        scheduler.agent_online(&agent(), other, "Coder", Instant::now()),
        Some(new),
        "another gateway takes over, and that is told"
    );
    assert_eq!(scheduler.disconnect_gateway(other, Instant::now()), [agent()]);
    assert_eq!(scheduler.online_agent(&agent()), None);
}

#[test]
fn a_run_is_lost_unless_its_agent_is_heard_of_in_time() {
    let (start, patience) = (Instant::now(), Duration::from_secs(60));
    let (mut scheduler, first) = desk(Some(false), &[("1", "a", RunState::Running)]);
    scheduler.disconnect_gateway(first, start);
    assert_eq!(due(&mut scheduler, patience, start + patience / 2), []);
    let second = link(&mut scheduler, "g", false);
    scheduler.agent_online(&agent(), second, "Coder", Instant::now());
    assert_eq!(
        scheduler.next_deadline(patience, start),
        Some(start + patience),
        "it is there and may know of nothing"
    );
    scheduler.mark_alive(&agent(), None);
    assert_eq!(due(&mut scheduler, patience, start + 2 * patience), []);
    scheduler.disconnect_gateway(second, start + patience);
    let lost = [("1".into(), RunOutcome::Interrupted)];
    assert_eq!(due(&mut scheduler, patience, start + 2 * patience), lost);
    assert_eq!(due(&mut scheduler, patience, start + 2 * patience), [], "asked already");
    assert_eq!(due(&mut scheduler, patience, start + 2 * patience + STORE_RETRY_DELAY), lost, "not answered");
    scheduler.apply_event(&over("1"), start);
    assert_eq!(due(&mut scheduler, patience, start + 9 * patience), []);
}

#[test]
fn a_reply_stays_with_the_run_that_began_it() {
    let (mut scheduler, _) =
        desk(Some(true), &[("1", "a", RunState::Running), ("2", "b", RunState::Running)]);
    let (a, b) = (room("a"), room("b"));
    let (one, two) = (MessageId::stored("m"), MessageId::stored("n"));
    assert_eq!(scheduler.bind(&agent(), &b, &one), ReplyBinding::Run(RunId::stored("2"), true));
    assert_eq!(scheduler.bind(&agent(), &b, &one), ReplyBinding::Run(RunId::stored("2"), false));
    assert_eq!(scheduler.bind(&agent(), &b, &two), ReplyBinding::Unknown, "its turn speaks under another id");
    assert_eq!(scheduler.bind(&agent(), &a, &two), ReplyBinding::Run(RunId::stored("1"), true));
    assert_eq!(scheduler.bind(&AgentId::stored("other"), &a, &two), ReplyBinding::Unknown);
}

#[test]
fn what_was_stopped_says_nothing_more_and_the_next_waits_until_it_is_over() {
    let (mut scheduler, link) =
        desk(Some(false), &[("1", "a", RunState::Running), ("2", "a", RunState::Queued)]);
    let (a, reply) = (room("a"), MessageId::stored("m"));
    scheduler.bind(&agent(), &a, &reply);
    scheduler.cancel_runs(&a, Some(&agent()), Instant::now());
    assert_eq!(scheduler.take_stops(), [(link, agent(), a.clone())]);
    assert_eq!(scheduler.take_unwanted(), [RunId::stored("2")], "what waits is not wanted either");
    assert_eq!(scheduler.bind(&agent(), &a, &reply), ReplyBinding::Over);
    assert_eq!(scheduler.terminal(&agent(), None, "$"), None);
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), [("1".into(), RunOutcome::Cancelled)]);
    scheduler.apply_event(&over("1"), Instant::now());
    scheduler.apply_event(&over("2"), Instant::now());
    scheduler.apply_event(&run("3", "a", RunState::Queued), Instant::now());
    assert_eq!(scheduler.bind(&agent(), &a, &MessageId::stored("late")), ReplyBinding::Over);
    assert_eq!(ready(&mut scheduler), [""; 0]);
    scheduler.stopped(&agent(), Some(&a));
    assert_eq!(ready(&mut scheduler), ["3"]);
}

#[test]
fn what_somebody_else_cancelled_is_stopped_once() {
    let (mut scheduler, link) =
        desk(Some(false), &[("1", "a", RunState::Running), ("2", "a", RunState::Queued)]);
    let reply = MessageId::stored("m");
    scheduler.bind(&agent(), &room("a"), &reply);
    assert_eq!(scheduler.replies_in(&room("a")), [(RunId::stored("1"), reply.clone())]);
    for run_id in ["1", "1", "2"] {
        scheduler.apply_event(&run(run_id, "a", RunState::Ended(RunOutcome::Cancelled)), Instant::now());
    }
    assert_eq!(scheduler.take_stops(), [(link, agent(), room("a"))]);
    assert_eq!(scheduler.bind(&agent(), &room("a"), &reply), ReplyBinding::Over);
}

#[test]
fn a_frozen_room_ends_everything_in_it() {
    let (mut scheduler, link) =
        desk(Some(true), &[("1", "a", RunState::Running), ("2", "b", RunState::Running)]);
    let frozen = Room {
        id: room("a"),
        name: "A".into(),
        kind: RoomKind::Group,
        policy: Default::default(),
        system_prompt: None,
        agent_command_role: RoomRole::Member,
        approve_role: RoomRole::Member,
        router: None,
        frozen: Some(Frozen { by: None, at: Time(2) }),
        project_root: None,
        created_by: UserId::stored("ann"),
        created_at: Time(1),
        updated_at: Time(1),
    };
    scheduler.apply_event(&Event::RoomChanged(Arc::new(frozen)), Instant::now());
    assert_eq!(scheduler.take_stale(), [room("a")].into());
    assert_eq!(scheduler.take_stops(), [(link, agent(), room("a"))]);
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), [], "its host has not ended it yet");
    scheduler.stopped(&agent(), Some(&room("b")));
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), []);
    scheduler.stopped(&agent(), Some(&room("a")));
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), [("1".into(), RunOutcome::Cancelled)]);
}

#[test]
fn a_host_that_does_not_say_that_it_stopped_is_not_waited_for_without_end() {
    for (by_room, ends_at_once) in [(true, false), (false, true)] {
        let (mut scheduler, link) = desk(Some(by_room), &[("1", "a", RunState::Running)]);
        let now = Instant::now();
        scheduler.cancel_runs(&room("a"), None, now);
        assert_eq!(due(&mut scheduler, Duration::MAX, now).len(), usize::from(ends_at_once));
        let later = scheduler.next_deadline(Duration::MAX / 4, now).expect("it is looked at again");
        assert_eq!(due(&mut scheduler, Duration::MAX, later).len(), 1);
        if by_room {
            let (mut scheduler, _) = super::tests::desk(Some(true), &[("1", "a", RunState::Running)]);
            scheduler.cancel_runs(&room("a"), None, now);
            scheduler.disconnect_gateway(link, now);
            assert_eq!(due(&mut scheduler, Duration::MAX, now).len(), 1, "nobody is there to wait for");
        }
    }
}

#[test]
fn an_agent_that_is_idle_has_said_all_it_had_to_say() {
    let (mut scheduler, _) = desk(Some(false), &[("1", "a", RunState::Running)]);
    scheduler.idle(&agent());
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), [], "it has not begun");
    scheduler.bind(&agent(), &room("a"), &MessageId::stored("m"));
    scheduler.idle(&agent());
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), [("1".into(), RunOutcome::Complete)]);
}

#[test]
fn a_run_whose_host_comes_by_another_way_is_lost_too_unless_it_is_heard_of() {
    let (start, patience) = (Instant::now(), Duration::from_secs(60));
    let (mut scheduler, first) = desk(Some(false), &[("1", "a", RunState::Running)]);
    scheduler.agent_online(&agent(), first, "Coder", start);
    assert_eq!(scheduler.next_deadline(patience, start), None, "it only tells more of itself");
    let second = link(&mut scheduler, "g", false);
    scheduler.agent_online(&agent(), second, "Coder", start);
    assert_eq!(scheduler.next_deadline(patience, start), Some(start + patience), "the first may never close");
    assert_eq!(due(&mut scheduler, patience, start + patience), [("1".into(), RunOutcome::Interrupted)]);
}

#[test]
fn a_run_that_the_store_knows_to_be_over_is_not_asked_for_again() {
    let (mut scheduler, _) = desk(Some(false), &[("1", "a", RunState::Running)]);
    scheduler.end(&RunId::stored("1"), PendingEnd::plain(RunOutcome::Complete));
    scheduler.is_over(&RunId::stored("1"));
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), []);
    assert_eq!(scheduler.online_agent(&agent()).map(|seat| seat.status), Some(AgentStatus::Online));
}

#[test]
fn a_host_is_told_of_an_end_that_it_cannot_know() {
    let (mut scheduler, link) = desk(Some(false), &[("1", "a", RunState::Running)]);
    scheduler.apply_event(&run("1", "a", RunState::Ended(RunOutcome::Cancelled)), Instant::now());
    assert_eq!(scheduler.take_stops(), [(link, agent(), room("a"))]);
}

#[test]
fn what_waits_and_is_not_wanted_does_not_begin_meanwhile() {
    let (mut scheduler, _) = desk(Some(false), &[("1", "a", RunState::Queued)]);
    scheduler.cancel_runs(&room("a"), Some(&agent()), Instant::now());
    assert_eq!(ready(&mut scheduler), [""; 0]);
    assert_eq!(scheduler.take_unwanted(), [RunId::stored("1")]);
    assert_eq!(scheduler.take_stops(), [], "it does nothing yet");
}

#[test]
fn what_was_stopped_is_silent_until_its_host_says_so_or_gets_its_next_turn() {
    let (mut scheduler, _) = desk(Some(false), &[("1", "a", RunState::Running)]);
    let (a, start) = (room("a"), Instant::now());
    scheduler.cancel_runs(&a, None, start);
    scheduler.apply_event(&over("1"), start);
    let later = start + 2 * STOP_GRACE;
    assert_eq!(scheduler.next_deadline(Duration::MAX, later), None, "nothing to wake up for");
    assert_eq!(scheduler.bind(&agent(), &a, &MessageId::stored("late")), ReplyBinding::Over);
    scheduler.apply_event(&run("2", "a", RunState::Queued), later);
    assert_eq!(scheduler.take_ready(later), [RunId::stored("2")], "it had time to say so");
    scheduler.apply_event(&run("2", "a", RunState::Running), later);
    assert_eq!(
        scheduler.bind(&agent(), &a, &MessageId::stored("m")),
        ReplyBinding::Run(RunId::stored("2"), true)
    );
}
