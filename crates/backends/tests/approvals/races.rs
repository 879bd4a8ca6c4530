//! Many questions, and everything that can happen to each at once.

use crate::scene::{Scene, user};
use parlor_engine::ports::Snapshot;
use parlor_model::{
    Caller, Command, Decision, EntityKind, Event, LoggedEvent, MemberChange, MemberId, Refusal, RoomRole,
    Seq, UserId,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// As many as usual, a third of them while nobody comes or goes; `PARLOR_TEST_ROUNDS` multiplies them.
const RACES: u32 = 60 * TOGETHER as u32;
/// At once; a turn may have no more open than twenty.
const TOGETHER: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_decision_reaches_the_gateway_and_none_from_who_may_not() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Arc::new(Scene::open(directory.path()).await);
    let races = parlor_seed::cases(RACES) as usize;
    // The turn that all of them are asked in.
    scene.ask("first", Duration::ZERO).await.unwrap();
    for batch in 0..races / TOGETHER {
        let mut racers = JoinSet::new();
        for race in batch * TOGETHER..(batch + 1) * TOGETHER {
            let scene = scene.clone();
            racers.spawn(run(scene, race));
        }
        let beside = scene.clone();
        racers.spawn(async move {
            // While they race, somebody leaves, or the gateway is lost.
            match batch % 3 {
                0 => leave_and_return(&beside).await,
                1 => {
                    beside.gateway.lose(&beside.hub).await;
                    beside.gateway.come_back(&beside.hub, &beside.ann).await;
                }
                _ => {}
            }
        });
        while let Some(raced) = racers.join_next().await {
            raced.unwrap();
        }
    }
    scene.ask("last", Duration::ZERO).await.unwrap();
    assert_eq!(scene.gateway.hears("last").await, "timeout");
    judge(&scene, races).await;
    scene.hub.close().await;
}

async fn run(scene: Arc<Scene>, race: usize) {
    let request = race.to_string();
    // Some are over as soon as they are asked, some a moment later, most are not.
    let timeout = match race % 4 {
        0 => Duration::ZERO,
        1 => Duration::from_millis(2),
        _ => Duration::from_secs(300),
    };
    let approval = loop {
        // A gateway that was just lost asks again.
        match scene.ask(&request, timeout).await {
            Ok(()) | Err(Refusal::NotFound(EntityKind::Agent | EntityKind::Gateway)) => {}
            Err(refusal) => panic!("{refusal:?}"),
        }
        if let Some(approval) = scene.approval(&request) {
            break approval;
        }
        tokio::task::yield_now().await;
    };
    // While nobody comes or goes, some are decided before the race: so each of them decides some for certain.
    if race / TOGETHER % 3 == 2 && race % 4 == 2 {
        let first = [&scene.ann, &scene.bob, &scene.cyd][race / 4 % 3];
        assert_eq!(scene.decide(first, &approval, true).await, Ok(()));
    }
    let unanswered = Err(Refusal::NotFound(EntityKind::Approval));
    let mut answers = JoinSet::new();
    for place in race..race + 3 {
        let (scene, approval) = (scene.clone(), approval.clone());
        answers.spawn(async move {
            let (who, allow) = [
                (&scene.ann, race.is_multiple_of(2)),
                (&scene.bob, !race.is_multiple_of(2)),
                (&scene.cyd, true),
            ][place % 3];
            let outcome = scene.decide(who, &approval, allow).await;
            let told = matches!(outcome, Ok(()) | Err(Refusal::AlreadyExists(EntityKind::Approval)));
            // Who has just left is told what a stranger is told.
            let left = *who == scene.cyd && outcome == Err(Refusal::NotFound(EntityKind::Approval));
            assert!(told || left, "{outcome:?}");
        });
    }
    let strangers = async {
        let (eve, key) = tokio::join!(
            scene.decide(&scene.eve, &approval, true),
            scene.decide(&scene.key, &approval, true)
        );
        assert_eq!((eve, key), (unanswered, Err(Refusal::Forbidden)));
    };
    let again = async {
        let asked = scene.ask(&request, timeout).await;
        let lost = matches!(asked, Err(Refusal::NotFound(EntityKind::Agent | EntityKind::Gateway)));
        assert!(lost || asked.is_ok(), "{asked:?}");
    };
    tokio::join!(strangers, again);
    while let Some(answered) = answers.join_next().await {
        answered.unwrap();
    }
}

async fn leave_and_return(scene: &Scene) {
    let member = MemberId::User(user(&scene.cyd));
    let leave = Command::RemoveMember { room: scene.room.clone(), member: member.clone() };
    scene.hub.execute(&scene.cyd, leave).await.unwrap();
    let (room, role) = (scene.room.clone(), RoomRole::Member);
    scene
        .hub
        .execute(&scene.ann, Command::AddMember { room, member, role, description: None })
        .await
        .unwrap();
}

/// What the log says, in its order, against what the gateway heard.
async fn judge(scene: &Scene, races: usize) {
    let mut decided: HashMap<String, Decision> = HashMap::new();
    let mut members: Vec<UserId> = [&scene.ann, &scene.bob, &scene.cyd].map(user).to_vec();
    for logged_event in log(scene) {
        match logged_event.event {
            Event::MembersChanged { change: MemberChange::Removed(MemberId::User(gone)), .. } => {
                members.retain(|member| *member != gone);
            }
            Event::MembersChanged { change: MemberChange::Added(MemberId::User(new)), .. } => {
                members.push(new)
            }
            Event::ApprovalDecided(approval) => {
                let decision = approval.decision.clone().expect("it was decided");
                if let Decision::Allowed { by } | Decision::Denied { by, .. } = &decision {
                    assert!(members.contains(&by.user), "{} answered {}", by.user, approval.request);
                }
                let before = decided.insert(approval.request.to_string(), decision);
                assert_eq!(before, None, "{} was decided twice", approval.request);
            }
            _ => {}
        }
    }
    assert_eq!(decided.len(), races + 2, "every question was decided");
    let mut heard = HashMap::new();
    for (request, decision) in scene.gateway.heard() {
        assert_eq!(decision, decided[&request].as_str(), "what was told is what was decided: {request}");
        assert_eq!(heard.insert(request.clone(), decision), None, "{request} was told twice");
    }
    assert_eq!(heard.len(), races + 2, "and nothing else");
    let count = |wanted: fn(&Decision) -> bool| decided.values().filter(|decision| wanted(decision)).count();
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
    println!("ann, bob, cyd, nobody: {each:?}");
    assert!(each.iter().all(|wins| *wins > 0), "each won some: {each:?}");
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
