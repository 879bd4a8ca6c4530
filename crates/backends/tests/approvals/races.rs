//! Races on approvals: concurrent decisions, retries, expiry, leaving members and lost gateways.

use crate::scene::{Scene, result, user};
use parlor_engine::ports::Snapshot;
use parlor_model::command::{AddMember, RemoveMember};
use parlor_model::{
    Caller, Decision, EntityKind, Event, LoggedEvent, MemberChange, MemberId, Refusal, RoomRole, Seq, UserId,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Default number of races, multiplied by `PARLOR_TEST_ROUNDS`. In a third of them, no member leaves and the
/// gateway stays connected.
const RACES: u32 = 60 * RACES_PER_BATCH as u32;
/// Concurrent races. A run may have at most 20 open approvals.
const RACES_PER_BATCH: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_one_permitted_decision_reaches_the_gateway() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Arc::new(Scene::open(directory.path()).await);
    let races = parlor_seed::cases(RACES) as usize;
    // Starts the run that all approvals belong to.
    scene.ask("first", Duration::ZERO).await.unwrap();
    for batch in 0..races / RACES_PER_BATCH {
        let mut racers = JoinSet::new();
        for race in batch * RACES_PER_BATCH..(batch + 1) * RACES_PER_BATCH {
            let scene = scene.clone();
            racers.spawn(run(scene, race));
        }
        let background = scene.clone();
        racers.spawn(async move {
            // During the races, a member leaves, or the gateway is lost.
            match batch % 3 {
                0 => leave_and_return(&background).await,
                1 => {
                    background.gateway.lose(&background.hub).await;
                    background.gateway.reconnect(&background.hub, &background.ann).await;
                }
                _ => {}
            }
        });
        while let Some(raced) = racers.join_next().await {
            raced.unwrap();
        }
    }
    scene.ask("last", Duration::ZERO).await.unwrap();
    assert_eq!(scene.gateway.receives("last").await, "timeout");
    check_decisions(&scene, races).await;
    scene.hub.close().await;
}

async fn run(scene: Arc<Scene>, race: usize) {
    let request = race.to_string();
    // A quarter of the approvals expires at once, a quarter after 2 ms, the others after 300 s.
    let timeout = match race % 4 {
        0 => Duration::ZERO,
        1 => Duration::from_millis(2),
        _ => Duration::from_secs(300),
    };
    let approval = loop {
        // A gateway that was just lost requests the approval again.
        match scene.ask(&request, timeout).await {
            Ok(()) | Err(Refusal::NotFound(EntityKind::Agent | EntityKind::Gateway)) => {}
            Err(refusal) => panic!("{refusal:?}"),
        }
        if let Some(approval) = scene.approval(&request) {
            break approval;
        }
        tokio::task::yield_now().await;
    };
    // In batches without disturbance, some approvals are decided before the race, so that each user decides
    // some.
    if race / RACES_PER_BATCH % 3 == 2 && race % 4 == 2 {
        let first = [&scene.ann, &scene.bob, &scene.cyd][race / 4 % 3];
        assert_eq!(scene.decide(first, &approval, true).await, Ok(()));
    }
    let not_found = Err(Refusal::NotFound(EntityKind::Approval));
    let mut answers = JoinSet::new();
    for position in race..race + 3 {
        let (scene, approval) = (scene.clone(), approval.clone());
        answers.spawn(async move {
            let (who, allow) = [
                (&scene.ann, race.is_multiple_of(2)),
                (&scene.bob, !race.is_multiple_of(2)),
                (&scene.cyd, true),
            ][position % 3];
            let outcome = scene.decide(who, &approval, allow).await;
            let decided = matches!(outcome, Ok(()) | Err(Refusal::AlreadyExists(EntityKind::Approval)));
            // A user who has just left gets the same refusal as a user who was never a member.
            let left = *who == scene.cyd && outcome == Err(Refusal::NotFound(EntityKind::Approval));
            assert!(decided || left, "{outcome:?}");
        });
    }
    let unauthorised = async {
        let (eve, key) = tokio::join!(
            scene.decide(&scene.eve, &approval, true),
            scene.decide(&scene.key, &approval, true)
        );
        assert_eq!((eve, key), (not_found, Err(Refusal::Forbidden)));
    };
    let retry = async {
        let retried = scene.ask(&request, timeout).await;
        let lost = matches!(retried, Err(Refusal::NotFound(EntityKind::Agent | EntityKind::Gateway)));
        assert!(lost || retried.is_ok(), "{retried:?}");
    };
    tokio::join!(unauthorised, retry);
    while let Some(answered) = answers.join_next().await {
        answered.unwrap();
    }
}

async fn leave_and_return(scene: &Scene) {
    let member = MemberId::User(user(&scene.cyd));
    let leave = RemoveMember { room: scene.room.clone(), member: member.clone() };
    scene.hub.execute(&scene.cyd, leave).await.unwrap();
    let (room, role) = (scene.room.clone(), RoomRole::Member);
    scene.hub.execute(&scene.ann, AddMember { room, member, role, description: None }).await.unwrap();
}

/// Checks the decisions in the log, in order, against those that the gateway received.
async fn check_decisions(scene: &Scene, races: usize) {
    let mut decided: HashMap<String, Decision> = HashMap::new();
    let mut members: Vec<UserId> = [&scene.ann, &scene.bob, &scene.cyd].map(user).to_vec();
    for logged_event in log(scene) {
        match logged_event.event {
            Event::MembersChanged { change: MemberChange::Removed(MemberId::User(removed)), .. } => {
                members.retain(|member| *member != removed);
            }
            Event::MembersChanged { change: MemberChange::Added(MemberId::User(new)), .. } => {
                members.push(new)
            }
            Event::ApprovalDecided(approval) => {
                let decision = approval.decision.clone().expect("a decided approval has a decision");
                if let Decision::Allowed { by } | Decision::Denied { by, .. } = &decision {
                    assert!(members.contains(&by.user), "{} answered {}", by.user, approval.request);
                }
                let before = decided.insert(approval.request.to_string(), decision);
                assert_eq!(before, None, "{} was decided twice", approval.request);
            }
            _ => {}
        }
    }
    assert_eq!(decided.len(), races + 2, "every approval was decided");
    let mut received = HashMap::new();
    for (request, decision) in scene.gateway.received() {
        assert_eq!(
            decision,
            result(&decided[&request]),
            "the gateway received the logged decision: {request}"
        );
        assert_eq!(received.insert(request.clone(), decision), None, "{request} was sent twice");
    }
    assert_eq!(received.len(), races + 2, "and no other decision was sent");
    let count =
        |matches: fn(&Decision) -> bool| decided.values().filter(|decision| matches(decision)).count();
    let by = |caller: &Caller| {
        let who = user(caller);
        let theirs = |decision: &&Decision| match decision {
            Decision::Allowed { by } | Decision::Denied { by, .. } => by.user == who,
            _ => false,
        };
        decided.values().filter(theirs).count()
    };
    let expired = count(|decision| *decision == Decision::Expired);
    let each = [by(&scene.ann), by(&scene.bob), by(&scene.cyd), expired];
    println!("decided by ann, bob, cyd, expired: {each:?}");
    assert!(each.iter().all(|wins| *wins > 0), "each of them decided some: {each:?}");
}

fn log(scene: &Scene) -> Vec<LoggedEvent> {
    let mut found = Vec::new();
    scene
        .reader
        .with(&mut |store: &mut dyn Snapshot| {
            found = store.tail(Seq(0), usize::MAX)?;
            Ok(())
        })
        .unwrap();
    found
}
