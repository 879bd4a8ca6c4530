//! Idle agents are prompted by the clock, once each time, and not while they have something to do.

use crate::scene::{Scene, coder};
use parlor_engine::Limits;
use parlor_engine::runs::RuleBasedTriage;
use parlor_model::command::RoomChanges;
use parlor_model::query::Page;
use parlor_model::{
    AgentStatus, Caller, Command, IdlePrompt, MemberId, Message, Mission, MissionScope, Receipt, Refusal,
    RoomId, RoomRole, Seq, mission,
};
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn idle(prompt: &str, interval: u32) -> IdlePrompt {
    IdlePrompt { prompt: Some(prompt.into()), interval: Some(interval) }
}

/// What was said for missions, the oldest first.
fn prompts(scene: &Scene) -> Vec<Arc<Message>> {
    prompts_in(scene, &scene.room)
}

fn prompts_in(scene: &Scene, room: &RoomId) -> Vec<Arc<Message>> {
    let mut found = Vec::new();
    scene
        .reader
        .with(&mut |store| {
            found = store.history(room, Seq(0), Page::After(Seq(0)), 100)?;
            Ok(())
        })
        .unwrap();
    found.retain(|message| mission::of(message).is_some());
    found
}

/// The agent gets its next prompt, does what it was given, and is free again.
async fn is_prompted(scene: &Scene, times: usize) -> String {
    let prompted = async {
        while prompts(scene).len() < times {
            // The desk hears of the end of a turn behind the store.
            scene.hub.prompt_idle().await;
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, prompted).await.expect("prompted in time");
    let run = scene.gateway.works(times).await;
    is_done(scene, &scene.room, &run).await;
    let said = prompts(scene);
    assert_eq!(said.len(), times, "each time once");
    said[times - 1].text.to_string()
}

/// The agent ends what it does in a room, and is free.
async fn is_done(scene: &Scene, room: &RoomId, run: &str) {
    scene.hub.stop(&scene.ann, room, &coder()).await.unwrap();
    let over = async {
        while is_open(scene, run) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, over).await.expect("over in time");
    let link = *scene.gateway.link.lock();
    scene.hub.report_status(link, &coder(), AgentStatus::Online, 0).await;
}

fn is_open(scene: &Scene, run: &str) -> bool {
    let mut open = true;
    scene
        .reader
        .with(&mut |store| {
            open = store.open_runs()?.iter().any(|open| open.id.as_str() == run);
            Ok(())
        })
        .unwrap();
    open
}

async fn is_left_alone(scene: &Scene, times: usize, why: &str) {
    scene.hub.prompt_idle().await;
    assert_eq!(prompts(scene).len(), times, "{why}");
}

async fn pursue(scene: &Scene, agents: Vec<IdlePrompt>) {
    let agents = agents.into_iter().map(|idle| (coder(), idle)).collect();
    let (room, text) = (scene.room.clone(), "Keep the kettle warm".into());
    scene.hub.execute(&scene.ann, Command::SetMission { room, text, agents }).await.unwrap();
}

fn missions(scene: &Scene) -> Vec<Mission> {
    let mut found = Vec::new();
    scene
        .reader
        .with(&mut |store| {
            found = store.missions(&MissionScope::Room(scene.room.clone()), 100)?;
            Ok(())
        })
        .unwrap();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_prompted_when_its_time_has_come_and_never_twice_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    is_left_alone(&scene, 0, "there is no mission").await;
    pursue(&scene, vec![idle("Look at it", 30)]).await;
    assert_eq!(is_prompted(&scene, 1).await, "Mission: Keep the kettle warm\n\nLook at it");
    is_left_alone(&scene, 1, "it had something to do just now").await;
    scene.clock.pass(20);
    is_left_alone(&scene, 1, "not for long enough").await;
    scene.clock.pass(11);
    is_prompted(&scene, 2).await;

    let scene = scene.restart(directory.path()).await;
    is_left_alone(&scene, 2, "it is not there").await;
    scene.gateway.come_back(&scene.hub, &scene.ann).await;
    is_left_alone(&scene, 2, "it was prompted before the hub went").await;
    scene.gateway.lose(&scene.hub).await;
    scene.clock.pass(3600);
    is_left_alone(&scene, 2, "it is away").await;
    scene.gateway.come_back(&scene.hub, &scene.ann).await;
    is_prompted(&scene, 3).await;
    assert_eq!(missions(&scene)[0].prompts, 3);

    scene.hub.execute(&scene.ann, Command::EndMission { room: scene.room.clone() }).await.unwrap();
    scene.clock.pass(3600);
    is_left_alone(&scene, 3, "nobody wants it any more").await;
    assert!(!missions(&scene)[0].is_on());
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_budget_of_the_day_and_a_freeze_bind_prompts_too() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits { room_turns: 2, ..Limits::default() };
    let scene = Scene::with(directory.path(), Arc::new(RuleBasedTriage), limits).await;
    pursue(&scene, vec![idle("Look at it", 30)]).await;
    is_prompted(&scene, 1).await;
    scene.hub.execute(&scene.ann, Command::Freeze { room: scene.room.clone() }).await.unwrap();
    scene.clock.pass(60);
    is_left_alone(&scene, 1, "the room is frozen").await;
    scene.hub.execute(&scene.ann, Command::Thaw { room: scene.room.clone() }).await.unwrap();
    is_prompted(&scene, 2).await;
    scene.clock.pass(60);
    is_left_alone(&scene, 2, "the turns of this day are used up").await;
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mission_says_more_than_an_override_and_this_more_than_the_agent_itself() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    pursue(&scene, Vec::new()).await;
    is_left_alone(&scene, 0, "nobody says what to do").await;
    let set = async |room, idle| {
        let command = Command::SetIdlePrompt { agent: coder(), room, idle };
        scene.hub.execute(&scene.ann, command).await.unwrap();
    };
    set(None, Some(idle("own", 30))).await;
    assert!(is_prompted(&scene, 1).await.ends_with("\n> own"));
    set(Some(scene.room.clone()), Some(IdlePrompt { prompt: Some("override".into()), interval: Some(90) }))
        .await;
    scene.clock.pass(60);
    is_left_alone(&scene, 1, "the override waits for longer").await;
    scene.clock.pass(31);
    assert!(is_prompted(&scene, 2).await.ends_with("\n> override"));
    pursue(&scene, vec![idle("mission", 30)]).await;
    scene.clock.pass(31);
    assert!(is_prompted(&scene, 3).await.ends_with("\n\nmission"));
    assert_eq!(missions(&scene).len(), 2, "the first is history");
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_missions_an_agent_is_prompted_for_one_at_a_time_and_for_each_in_turn() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    let changes = RoomChanges { name: Some("Pantry".into()), ..RoomChanges::default() };
    let made = scene.hub.execute(&scene.ann, Command::CreateRoom { changes, members: Vec::new() }).await;
    let Ok(Receipt::Room(other)) = made else { panic!("{made:?}") };
    let (member, role) = (MemberId::Agent(coder()), RoomRole::Member);
    let add = Command::AddMember { room: other.id.clone(), member, role, description: None };
    scene.hub.execute(&scene.ann, add).await.unwrap();
    let mut missions = Vec::new();
    for room in [&scene.room, &other.id] {
        let agents = vec![(coder(), idle("Look at it", 30))];
        let set = Command::SetMission { room: room.clone(), text: "Tea".into(), agents };
        let set = scene.hub.execute(&scene.ann, set).await;
        let Ok(Receipt::Mission(mission)) = set else { panic!("{set:?}") };
        missions.push(mission);
    }
    let so_far = || [&scene.room, &other.id].map(|room| prompts_in(&scene, room).len());
    for (times, expected) in [(1, [1, 0]), (2, [1, 1]), (3, [2, 1]), (4, [2, 2])] {
        let prompted = async {
            while so_far().iter().sum::<usize>() < times {
                scene.hub.prompt_idle().await;
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, prompted).await.expect("prompted in time");
        let run = scene.gateway.works(times).await;
        for mission in &missions {
            let again = Command::PromptIdle { mission: mission.id.clone(), agent: coder() };
            let refused = scene.hub.execute(&Caller::OPERATOR, again).await;
            assert_eq!(refused.err(), Some(Refusal::Forbidden), "it is busy, wherever that is");
        }
        assert_eq!(so_far(), expected, "none of them starves");
        let room = if times % 2 == 1 { &scene.room } else { &other.id };
        is_done(&scene, room, &run).await;
        scene.clock.pass(31);
    }
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_set_a_mission_and_left_prompts_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    let bob = parlor_model::MemberId::User(crate::scene::user(&scene.bob));
    let (room, role) = (scene.room.clone(), Some(parlor_model::RoomRole::Admin));
    let promote = Command::ChangeMember { room: room.clone(), member: bob.clone(), role, description: None };
    scene.hub.execute(&scene.ann, promote).await.unwrap();
    let agents = vec![(coder(), idle("Look at it", 30))];
    let set = Command::SetMission { room: room.clone(), text: "Tea".into(), agents };
    scene.hub.execute(&scene.bob, set).await.unwrap();
    is_prompted(&scene, 1).await;
    let role = Some(parlor_model::RoomRole::Member);
    let demote = Command::ChangeMember { room: room.clone(), member: bob.clone(), role, description: None };
    scene.hub.execute(&scene.ann, demote).await.unwrap();
    scene.clock.pass(60);
    is_left_alone(&scene, 1, "he could not set it any more").await;
    scene.hub.execute(&scene.ann, Command::RemoveMember { room, member: bob }).await.unwrap();
    is_left_alone(&scene, 1, "nobody answers for it").await;
    scene.hub.close().await;
}
