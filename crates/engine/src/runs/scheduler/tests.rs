//! Unit tests of the scheduler: which runs it starts and ends, when, and for which gateway connection.

use super::super::host::{Host, HostCommand};
use super::*;
use parlor_model::{AddressedBy, ConversationId, Lineage, RunCause, Usage};
use parlor_model::{Frozen, GatewayId, Room, RoomKind, RoomRole, Time, UserId};

struct NullHost;

impl Host for NullHost {
    fn send(&self, _: HostCommand) {}
}

pub(super) fn agent() -> AgentId {
    AgentId::stored("coder")
}

pub(super) fn room(id: &str) -> RoomId {
    RoomId::stored(id)
}

/// Context of the agent in a room.
pub(super) fn at(id: &str) -> RunContext {
    RunContext::Room(room(id))
}

pub(super) fn a_run(id: &str, room: &str, state: RunState) -> Run {
    Run {
        id: RunId::stored(id),
        agent: agent(),
        place: RunPlace::Room(RoomId::stored(room)),
        cause: RunCause::Unprompted,
        asked_by: None,
        addressed: AddressedBy::Directly,
        lineage: Lineage::start(ConversationId::stored(format!("c{id}")), agent()),
        parent: None,
        state,
        reply: None,
        usage: Usage::default(),
        stop_requested: false,
        queued_at: Time(1),
        started_at: None,
        ended_at: None,
    }
}

pub(super) fn run(id: &str, room: &str, state: RunState) -> Event {
    Event::RunChanged(Arc::new(a_run(id, room, state)))
}

pub(super) fn connection(scheduler: &mut Scheduler, gateway: &str, by_room: bool) -> GatewayConnectionId {
    let (gateway, owner) = (GatewayId::stored(gateway), UserId::stored("ann"));
    let abilities = if by_room { GatewayAbilities::ALL } else { GatewayAbilities::NONE };
    scheduler.connect_gateway(GatewayConnection { gateway, owner, abilities, host: Arc::new(NullHost) })
}

/// A scheduler with these runs and one gateway connection. The agent is online through it as a third-party
/// gateway (`Some(false)`) or a Parlor gateway (`Some(true)`), or offline (`None`).
pub(super) fn scheduler_with(
    by_room: Option<bool>,
    runs: &[(&str, &str, RunState)],
) -> (Scheduler, GatewayConnectionId) {
    let mut scheduler = Scheduler::default();
    let id = connection(&mut scheduler, "g", by_room.unwrap_or_default());
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

/// Takes the commands for gateways and returns the stops among them.
fn stops(scheduler: &mut Scheduler) -> Vec<(GatewayConnectionId, AgentId, RunContext)> {
    let stop = |(connection, command)| match command {
        HostCommand::Stop { agent, context } => Some((connection, agent, context)),
        _ => None,
    };
    std::mem::take(&mut scheduler.commands).into_iter().filter_map(stop).collect()
}

fn due(scheduler: &mut Scheduler, grace_period: Duration, now: Instant) -> Vec<(String, RunOutcome)> {
    scheduler
        .take_runs_to_finish(grace_period, now)
        .into_iter()
        .map(|due| (due.run.to_string(), due.ending.outcome))
        .collect()
}

pub(super) fn over(id: &str) -> Event {
    run(id, "a", RunState::Ended(RunOutcome::Complete))
}

#[test]
fn an_offline_agent_starts_no_run_and_starts_the_oldest_when_it_comes_online() {
    let (mut scheduler, connection) =
        scheduler_with(None, &[("1", "a", RunState::Queued), ("2", "b", RunState::Queued)]);
    assert_eq!(ready(&mut scheduler), [""; 0]);
    scheduler.agent_online(&agent(), connection, "Coder", Instant::now());
    assert_eq!(ready(&mut scheduler), ["1"]);
    assert_eq!(ready(&mut scheduler), [""; 0], "each run is returned once");
    scheduler.retry_start(&RunId::stored("1"));
    assert_eq!(ready(&mut scheduler), ["1"]);
}

#[test]
fn a_third_party_gateway_runs_one_at_a_time_and_a_parlor_gateway_one_per_room() {
    let waiting = [
        ("0", "a", RunState::Running),
        ("1", "a", RunState::Queued),
        ("2", "b", RunState::Queued),
        ("3", "b", RunState::Queued),
    ];
    assert_eq!(ready(&mut scheduler_with(Some(false), &waiting).0), [""; 0]);
    let (mut parlor, _) = scheduler_with(Some(true), &waiting);
    assert_eq!(ready(&mut parlor), ["2"]);
    parlor.end(&RunId::stored("0"), PendingEnd::plain(RunOutcome::Complete));
    parlor.apply_event(&over("0"), Instant::now());
    assert_eq!(ready(&mut parlor), ["1"]);
}

#[test]
fn an_old_gateway_connection_does_not_affect_a_newer_one() {
    let (mut scheduler, old) = scheduler_with(Some(false), &[]);
    let new = connection(&mut scheduler, "g", false);
    assert_eq!(
        scheduler.agent_online(&agent(), new, "Coder", Instant::now()),
        None,
        "the same gateway reconnected"
    );
    assert_eq!(scheduler.disconnect_gateway(old, Instant::now()), []);
    assert!(!scheduler.agent_offline(&agent(), old, Instant::now()));
    assert_eq!(scheduler.online_agent(&agent()).map(|online| online.connection), Some(new));
    let other = connection(&mut scheduler, "h", false);
    assert_eq!(
        scheduler.agent_online(&agent(), other, "Coder", Instant::now()),
        Some(new),
        "another gateway takes the agent over"
    );
    assert_eq!(scheduler.disconnect_gateway(other, Instant::now()), [agent()]);
    assert_eq!(scheduler.online_agent(&agent()), None);
}

#[test]
fn a_run_is_interrupted_unless_its_agent_proves_alive_within_the_grace_period() {
    let (start, grace_period) = (Instant::now(), Duration::from_secs(60));
    let (mut scheduler, first) = scheduler_with(Some(false), &[("1", "a", RunState::Running)]);
    scheduler.disconnect_gateway(first, start);
    assert_eq!(due(&mut scheduler, grace_period, start + grace_period / 2), []);
    let second = connection(&mut scheduler, "g", false);
    scheduler.agent_online(&agent(), second, "Coder", Instant::now());
    assert_eq!(
        scheduler.next_deadline(grace_period, start),
        Some(start + grace_period),
        "the new connection may not know the run"
    );
    scheduler.mark_alive(&agent(), None);
    assert_eq!(due(&mut scheduler, grace_period, start + 2 * grace_period), []);
    scheduler.disconnect_gateway(second, start + grace_period);
    let lost = [("1".into(), RunOutcome::Interrupted)];
    assert_eq!(due(&mut scheduler, grace_period, start + 2 * grace_period), lost);
    assert_eq!(due(&mut scheduler, grace_period, start + 2 * grace_period), [], "already submitted");
    assert_eq!(
        due(&mut scheduler, grace_period, start + 2 * grace_period + STORE_RETRY_DELAY),
        lost,
        "the commit failed"
    );
    scheduler.apply_event(&over("1"), start);
    assert_eq!(due(&mut scheduler, grace_period, start + 9 * grace_period), []);
}

#[test]
fn a_reply_stays_bound_to_the_run_that_started_it() {
    let (mut scheduler, _) =
        scheduler_with(Some(true), &[("1", "a", RunState::Running), ("2", "b", RunState::Running)]);
    let (a, b) = (at("a"), at("b"));
    let (one, two) = (MessageId::stored("m"), MessageId::stored("n"));
    assert_eq!(scheduler.bind(&agent(), &b, &one), ReplyBinding::Run(RunId::stored("2"), true));
    assert_eq!(scheduler.bind(&agent(), &b, &one), ReplyBinding::Run(RunId::stored("2"), false));
    assert_eq!(scheduler.bind(&agent(), &b, &two), ReplyBinding::Unbound, "its run has another reply");
    assert_eq!(scheduler.bind(&agent(), &a, &two), ReplyBinding::Run(RunId::stored("1"), true));
    assert_eq!(scheduler.bind(&AgentId::stored("other"), &a, &two), ReplyBinding::Unbound);
}

#[test]
fn output_of_a_stopped_run_is_dropped_and_the_next_run_waits_for_its_end() {
    let (mut scheduler, connection) =
        scheduler_with(Some(false), &[("1", "a", RunState::Running), ("2", "a", RunState::Queued)]);
    let (a, reply) = (at("a"), MessageId::stored("m"));
    scheduler.bind(&agent(), &a, &reply);
    scheduler.cancel_runs(&room("a"), Some(&agent()), Instant::now());
    assert_eq!(stops(&mut scheduler), [(connection, agent(), a.clone())]);
    assert_eq!(scheduler.cancelled_before_start, [RunId::stored("2")], "the queued run is cancelled too");
    assert_eq!(scheduler.bind(&agent(), &a, &reply), ReplyBinding::Ended);
    assert_eq!(scheduler.terminal(&agent(), None, "$"), None);
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), [("1".into(), RunOutcome::Cancelled)]);
    scheduler.apply_event(&over("1"), Instant::now());
    scheduler.apply_event(&over("2"), Instant::now());
    scheduler.apply_event(&run("3", "a", RunState::Queued), Instant::now());
    assert_eq!(scheduler.bind(&agent(), &a, &MessageId::stored("late")), ReplyBinding::Ended);
    assert_eq!(ready(&mut scheduler), [""; 0]);
    scheduler.stopped(&agent(), Some(&a));
    assert_eq!(ready(&mut scheduler), ["3"]);
}

#[test]
fn a_run_cancelled_in_the_store_is_stopped_once() {
    let (mut scheduler, connection) =
        scheduler_with(Some(false), &[("1", "a", RunState::Running), ("2", "a", RunState::Queued)]);
    let reply = MessageId::stored("m");
    scheduler.bind(&agent(), &at("a"), &reply);
    assert_eq!(scheduler.replies_in(&room("a")), [(RunId::stored("1"), reply.clone())]);
    for run_id in ["1", "1", "2"] {
        scheduler.apply_event(&run(run_id, "a", RunState::Ended(RunOutcome::Cancelled)), Instant::now());
    }
    assert_eq!(stops(&mut scheduler), [(connection, agent(), at("a"))]);
    assert_eq!(scheduler.bind(&agent(), &at("a"), &reply), ReplyBinding::Ended);
}

#[test]
fn freezing_a_room_cancels_all_its_runs() {
    let (mut scheduler, connection) =
        scheduler_with(Some(true), &[("1", "a", RunState::Running), ("2", "b", RunState::Running)]);
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
        description: None,
        created_by: UserId::stored("ann"),
        created_at: Time(1),
        updated_at: Time(1),
    };
    scheduler.apply_event(&Event::RoomChanged(Arc::new(frozen)), Instant::now());
    assert_eq!(scheduler.stale_room_contexts, [room("a")].into());
    assert_eq!(stops(&mut scheduler), [(connection, agent(), at("a"))]);
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), [], "not confirmed by the gateway yet");
    scheduler.stopped(&agent(), Some(&at("b")));
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), []);
    scheduler.stopped(&agent(), Some(&at("a")));
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), [("1".into(), RunOutcome::Cancelled)]);
}

#[test]
fn waiting_for_a_stop_confirmation_is_bounded() {
    for (by_room, ends_at_once) in [(true, false), (false, true)] {
        let (mut scheduler, connection) = scheduler_with(Some(by_room), &[("1", "a", RunState::Running)]);
        let now = Instant::now();
        scheduler.cancel_runs(&room("a"), None, now);
        assert_eq!(due(&mut scheduler, Duration::MAX, now).len(), usize::from(ends_at_once));
        let later = scheduler
            .next_deadline(Duration::MAX / 4, now)
            .expect("a stop without confirmation has a deadline");
        assert_eq!(due(&mut scheduler, Duration::MAX, later).len(), 1);
        if by_room {
            let (mut scheduler, _) =
                super::tests::scheduler_with(Some(true), &[("1", "a", RunState::Running)]);
            scheduler.cancel_runs(&room("a"), None, now);
            scheduler.disconnect_gateway(connection, now);
            assert_eq!(due(&mut scheduler, Duration::MAX, now).len(), 1, "the gateway is offline");
        }
    }
}

#[test]
fn an_idle_report_completes_the_started_reply() {
    let (mut scheduler, _) = scheduler_with(Some(false), &[("1", "a", RunState::Running)]);
    scheduler.idle(&agent());
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), [], "no reply started");
    scheduler.bind(&agent(), &at("a"), &MessageId::stored("m"));
    scheduler.idle(&agent());
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), [("1".into(), RunOutcome::Complete)]);
}

#[test]
fn a_run_is_interrupted_if_its_agent_moves_to_a_new_connection_without_proof_of_life() {
    let (start, grace_period) = (Instant::now(), Duration::from_secs(60));
    let (mut scheduler, first) = scheduler_with(Some(false), &[("1", "a", RunState::Running)]);
    scheduler.agent_online(&agent(), first, "Coder", start);
    assert_eq!(scheduler.next_deadline(grace_period, start), None, "registered again on the same connection");
    let second = connection(&mut scheduler, "g", false);
    scheduler.agent_online(&agent(), second, "Coder", start);
    assert_eq!(
        scheduler.next_deadline(grace_period, start),
        Some(start + grace_period),
        "the old connection may never close"
    );
    assert_eq!(
        due(&mut scheduler, grace_period, start + grace_period),
        [("1".into(), RunOutcome::Interrupted)]
    );
}

#[test]
fn a_run_that_has_ended_in_the_store_is_not_submitted_again() {
    let (mut scheduler, _) = scheduler_with(Some(false), &[("1", "a", RunState::Running)]);
    scheduler.end(&RunId::stored("1"), PendingEnd::plain(RunOutcome::Complete));
    scheduler.forget_ended(&RunId::stored("1"));
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), []);
    assert_eq!(scheduler.online_agent(&agent()).map(|online| online.status), Some(AgentStatus::Online));
}

#[test]
fn a_gateway_is_told_to_stop_a_run_that_was_cancelled_in_the_store() {
    let (mut scheduler, connection) = scheduler_with(Some(false), &[("1", "a", RunState::Running)]);
    scheduler.apply_event(&run("1", "a", RunState::Ended(RunOutcome::Cancelled)), Instant::now());
    assert_eq!(stops(&mut scheduler), [(connection, agent(), at("a"))]);
}

#[test]
fn a_requested_stop_is_sent_once_and_ends_the_run_also_after_a_restart() {
    let stopping = Run { stop_requested: true, ..a_run("1", "a", RunState::Running) };
    let stopping = Event::RunChanged(Arc::new(stopping));
    let cancelled = [("1".into(), RunOutcome::Cancelled)];
    let (mut scheduler, connection) =
        scheduler_with(Some(false), &[("1", "a", RunState::Running), ("2", "a", RunState::Queued)]);
    scheduler.apply_event(&stopping, Instant::now());
    scheduler.apply_event(&stopping, Instant::now());
    assert_eq!(stops(&mut scheduler), [(connection, agent(), at("a"))]);
    assert_eq!(due(&mut scheduler, Duration::MAX, Instant::now()), cancelled);
    let (mut restarted, _) = scheduler_with(None, &[]);
    restarted.apply_event(&stopping, Instant::now());
    assert_eq!(due(&mut restarted, Duration::MAX, Instant::now()), cancelled);
}

#[test]
fn a_cancelled_queued_run_does_not_start() {
    let (mut scheduler, _) = scheduler_with(Some(false), &[("1", "a", RunState::Queued)]);
    scheduler.cancel_runs(&room("a"), Some(&agent()), Instant::now());
    assert_eq!(ready(&mut scheduler), [""; 0]);
    assert_eq!(scheduler.cancelled_before_start, [RunId::stored("1")]);
    assert_eq!(stops(&mut scheduler), [], "the run is not active");
}

#[test]
fn output_after_a_stop_is_dropped_until_the_confirmation_or_the_next_run() {
    let (mut scheduler, _) = scheduler_with(Some(false), &[("1", "a", RunState::Running)]);
    let (a, start) = (at("a"), Instant::now());
    scheduler.cancel_runs(&room("a"), None, start);
    scheduler.apply_event(&over("1"), start);
    let later = start + 2 * STOP_GRACE;
    assert_eq!(scheduler.next_deadline(Duration::MAX, later), None, "no deadline is pending");
    assert_eq!(scheduler.bind(&agent(), &a, &MessageId::stored("late")), ReplyBinding::Ended);
    scheduler.apply_event(&run("2", "a", RunState::Queued), later);
    assert_eq!(scheduler.take_ready(later), [RunId::stored("2")], "the stop grace period is over");
    scheduler.apply_event(&run("2", "a", RunState::Running), later);
    assert_eq!(
        scheduler.bind(&agent(), &a, &MessageId::stored("m")),
        ReplyBinding::Run(RunId::stored("2"), true)
    );
}
