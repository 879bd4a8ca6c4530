//! Stops of runs survive a crash of the hub.

use crate::fixtures::*;
use crate::stores::kinds;
use crate::test_hub::TestHub;
use parlor_engine::changes::{Change, CredentialChange, RoomChange};
use parlor_engine::effects::Effects;
use parlor_model::command::{StartUnpromptedRun, StopRuns};
use parlor_model::{Caller, Epoch, Room, RunOutcome, RunState, SecretHash, SignInId, Time};
use std::sync::Arc;

#[tokio::test]
async fn a_run_whose_stop_was_requested_before_a_crash_is_cancelled_at_the_next_start() {
    for kind in kinds() {
        let fixture = (kind.make)(Epoch(1));
        let sign_in = Arc::new(sign_in("of ann", "ann", i64::MAX));
        let changes = vec![
            put_user("ann", 1),
            Change::Credential(CredentialChange::PutSignIn(sign_in, SecretHash([1; 32]))),
            put_agent("coder", "ann"),
            Change::Room(RoomChange::PutRoom(Arc::new(Room { frozen: None, ..room("lobby") }))),
            put_member("lobby", person("ann"), 1),
            put_member("lobby", agent_member("coder"), 2),
        ];
        let (mut store, reader) = fixture.open();
        let mut transaction = store.begin().unwrap();
        transaction.apply(&Effects { changes, ..Effects::default() }).unwrap();
        transaction.commit().unwrap();
        drop((store, reader));
        // The scheduler of this hub receives no events, as if the hub crashed before it could act on the stop.
        let mut test_hub = TestHub::open(fixture, Time(1_000));
        let (room, agent) = (room_id("lobby"), agent_id("coder"));
        let start = StartUnpromptedRun { agent: agent.clone(), room: room.clone() };
        let run = test_hub.hub().execute(&Caller::OPERATOR, start).await.unwrap();
        let ann = Caller::person(user_id("ann"), SignInId::stored("of ann"));
        test_hub.hub().execute(&ann, StopRuns { room, agent }).await.unwrap();
        let stored = |test_hub: &TestHub| test_hub.read(|store| store.run(&run.id)).unwrap();
        let stopping = stored(&test_hub);
        assert_eq!((stopping.state, stopping.stop_requested), (RunState::Running, true), "{}", kind.name);
        test_hub.restart().await;
        assert_eq!(stored(&test_hub).state, RunState::Ended(RunOutcome::Cancelled), "{}", kind.name);
        test_hub.close().await;
    }
}
