//! The hub prompts an idle agent once per interval, and never while the agent has a run.

use crate::scene::{Scene, coder};
use parlor_engine::Limits;
use parlor_engine::runs::RuleBasedTriage;
use parlor_model::command::{
    AddMember, ChangeMember, CreateRoom, FreezeRoom, RemoveMember, SetIdlePrompt, SetMission, StopRuns,
    {EndMission, PromptIdle, RoomChanges, ThawRoom},
};
use parlor_model::query::Page;
use parlor_model::{
    AgentStatus, Caller, Edit, IdlePrompt, MemberId, Message, Mission, MissionScope, Refusal, RoomId,
    RoomRole, RoomSelection, Seq, mission,
};
use std::sync::Arc;
use std::time::Duration;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

fn idle(prompt: &str, interval: u32) -> IdlePrompt {
    IdlePrompt { prompt: Some(prompt.into()), interval: Some(interval) }
}

/// Mission prompts posted in the room, oldest first.
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

/// Waits for the `times`th prompt, finishes its run, and returns the text of the prompt.
async fn is_prompted(scene: &Scene, times: usize) -> String {
    let prompted = async {
        while prompts(scene).len() < times {
            // The scheduler applies the end of a run later than the store, so retry.
            scene.hub.hosting().prompt_idle().await;
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, prompted).await.expect("the agent is prompted before the timeout");
    let run = scene.gateway.receives_run(times).await;
    finish_run(scene, &scene.room, &run).await;
    let posted = prompts(scene);
    assert_eq!(posted.len(), times, "one prompt each time");
    posted[times - 1].text.to_string()
}

/// Stops the agent's run in a room and reports the agent as online and idle.
async fn finish_run(scene: &Scene, room: &RoomId, run: &str) {
    let stop = StopRuns { room: room.clone(), agent: coder() };
    scene.hub.execute(&scene.ann, stop).await.unwrap();
    let ended = async {
        while is_open(scene, run) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, ended).await.expect("the run ends before the timeout");
    let connection = *scene.gateway.connection.lock();
    scene.hub.hosting().report_status(connection, &coder(), AgentStatus::Online, 0).await;
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

async fn is_not_prompted(scene: &Scene, times: usize, why: &str) {
    scene.hub.hosting().prompt_idle().await;
    assert_eq!(prompts(scene).len(), times, "{why}");
}

async fn set_mission(scene: &Scene, agents: Vec<IdlePrompt>) {
    let agents = agents.into_iter().map(|idle| (coder(), idle)).collect();
    let (rooms, text) = (scene.room.clone().into(), "Keep the kettle warm".into());
    scene.hub.execute(&scene.ann, SetMission { rooms, text, agents }).await.unwrap();
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
async fn an_agent_is_prompted_after_its_interval_and_not_twice_across_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    is_not_prompted(&scene, 0, "there is no mission").await;
    set_mission(&scene, vec![idle("Look at it", 30)]).await;
    assert_eq!(is_prompted(&scene, 1).await, "Mission: Keep the kettle warm\n\nLook at it");
    is_not_prompted(&scene, 1, "its last run has just ended").await;
    scene.clock.advance(20);
    is_not_prompted(&scene, 1, "the interval has not passed").await;
    scene.clock.advance(11);
    is_prompted(&scene, 2).await;

    let scene = scene.restart(directory.path()).await;
    is_not_prompted(&scene, 2, "the agent is offline after the restart").await;
    scene.gateway.reconnect(&scene.hub, &scene.ann).await;
    is_not_prompted(&scene, 2, "it was prompted before the restart").await;
    scene.gateway.lose(&scene.hub).await;
    scene.clock.advance(3600);
    is_not_prompted(&scene, 2, "the agent is offline").await;
    scene.gateway.reconnect(&scene.hub, &scene.ann).await;
    is_prompted(&scene, 3).await;
    assert_eq!(missions(&scene)[0].prompts, 3);

    scene.hub.execute(&scene.ann, EndMission { rooms: scene.room.clone().into() }).await.unwrap();
    scene.clock.advance(3600);
    is_not_prompted(&scene, 3, "the mission has ended").await;
    assert!(!missions(&scene)[0].is_on());
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daily_budget_and_a_freeze_apply_to_prompts() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits { room_turns: 2, ..Limits::default() };
    let scene = Scene::with(directory.path(), Arc::new(RuleBasedTriage), limits).await;
    set_mission(&scene, vec![idle("Look at it", 30)]).await;
    is_prompted(&scene, 1).await;
    scene.hub.execute(&scene.ann, FreezeRoom { room: scene.room.clone() }).await.unwrap();
    scene.clock.advance(60);
    is_not_prompted(&scene, 1, "the room is frozen").await;
    scene.hub.execute(&scene.ann, ThawRoom { room: scene.room.clone() }).await.unwrap();
    is_prompted(&scene, 2).await;
    scene.clock.advance(60);
    is_not_prompted(&scene, 2, "the daily run budget is used up").await;
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mission_prompt_wins_over_a_room_override_and_this_over_the_agents_own() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    set_mission(&scene, Vec::new()).await;
    is_not_prompted(&scene, 0, "no idle prompt is set").await;
    let set = async |rooms, idle| {
        let command = SetIdlePrompt { agent: coder(), rooms, idle };
        scene.hub.execute(&scene.ann, command).await.unwrap();
    };
    set(RoomSelection::EMPTY, Some(idle("own", 30))).await;
    assert!(is_prompted(&scene, 1).await.ends_with("\n> own"));
    set(scene.room.clone().into(), Some(IdlePrompt { prompt: Some("override".into()), interval: Some(90) }))
        .await;
    scene.clock.advance(60);
    is_not_prompted(&scene, 1, "the override has a longer interval").await;
    scene.clock.advance(31);
    assert!(is_prompted(&scene, 2).await.ends_with("\n> override"));
    set_mission(&scene, vec![idle("mission", 30)]).await;
    scene.clock.advance(31);
    assert!(is_prompted(&scene, 3).await.ends_with("\n\nmission"));
    assert_eq!(missions(&scene).len(), 2, "the first mission has ended and is kept");
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_with_several_missions_is_prompted_for_one_at_a_time_in_rotation() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    let changes = RoomChanges { name: Some("Pantry".into()), ..RoomChanges::default() };
    let create = CreateRoom { changes, members: Vec::new() };
    let other = scene.hub.execute(&scene.ann, create).await.unwrap();
    let (member, role) = (MemberId::Agent(coder()), RoomRole::Member);
    let add = AddMember { room: other.id.clone(), member, role, description: None };
    scene.hub.execute(&scene.ann, add).await.unwrap();
    let mut missions = Vec::new();
    for room in [&scene.room, &other.id] {
        let agents = vec![(coder(), idle("Look at it", 30))];
        let set = SetMission { rooms: room.clone().into(), text: "Tea".into(), agents };
        missions.push(scene.hub.execute(&scene.ann, set).await.unwrap());
    }
    let prompt_counts = || [&scene.room, &other.id].map(|room| prompts_in(&scene, room).len());
    for (times, expected) in [(1, [1, 0]), (2, [1, 1]), (3, [2, 1]), (4, [2, 2])] {
        let prompted = async {
            while prompt_counts().iter().sum::<usize>() < times {
                scene.hub.hosting().prompt_idle().await;
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, prompted).await.expect("the agent is prompted before the timeout");
        let run = scene.gateway.receives_run(times).await;
        for mission in &missions {
            let again = PromptIdle { mission: mission.id.clone(), agent: coder() };
            let refused = scene.hub.execute(&Caller::OPERATOR, again).await;
            assert_eq!(refused.err(), Some(Refusal::Forbidden), "the agent is busy in one of its rooms");
        }
        assert_eq!(prompt_counts(), expected, "the missions take turns");
        let room = if times % 2 == 1 { &scene.room } else { &other.id };
        finish_run(&scene, room, &run).await;
        scene.clock.advance(31);
    }
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mission_of_a_user_without_permission_prompts_no_agent() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    let bob = parlor_model::MemberId::User(crate::scene::user(&scene.bob));
    let (room, role) = (scene.room.clone(), Some(parlor_model::RoomRole::Admin));
    let promote = ChangeMember { room: room.clone(), member: bob.clone(), role, description: Edit::Keep };
    scene.hub.execute(&scene.ann, promote).await.unwrap();
    let agents = vec![(coder(), idle("Look at it", 30))];
    let set = SetMission { rooms: room.clone().into(), text: "Tea".into(), agents };
    scene.hub.execute(&scene.bob, set).await.unwrap();
    is_prompted(&scene, 1).await;
    let role = Some(parlor_model::RoomRole::Member);
    let demote = ChangeMember { room: room.clone(), member: bob.clone(), role, description: Edit::Keep };
    scene.hub.execute(&scene.ann, demote).await.unwrap();
    scene.clock.advance(60);
    is_not_prompted(&scene, 1, "its creator may not set missions any more").await;
    scene.hub.execute(&scene.ann, RemoveMember { room, member: bob }).await.unwrap();
    is_not_prompted(&scene, 1, "its creator left the room").await;
    scene.hub.close().await;
}
