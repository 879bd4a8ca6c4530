//! One differential run: a hub on each store, driven by the same steps.

use super::asks::{RandomCommand, Step};
use super::coverage::{Coverage, DEAD_MAIL};
use super::invariants;
use super::picture::Picture;
use super::world::World;
use crate::stores::kinds;
use crate::test_hub::TestHub;
use parlor_engine::Limits;
use parlor_engine::commands::{AnyCommand, AnyReceipt};
use parlor_model::{Approval, Caller, Epoch, Event, LoggedEvent, MemberChange, Refusal, Seq, Time};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// Receipt or refusal of a command.
pub type AnyResult = Result<AnyReceipt, Refusal>;

const MORNING: Time = Time(1_700_000_000_000_000);

pub struct Run {
    pub world: World,
    pub coverage: Coverage,
    /// Whether an anonymous caller tries every command of the script first and must be refused.
    pub anonymous_tries_first: bool,
    /// Name and hub of each store. The first is the in-memory oracle.
    hubs: Vec<(&'static str, TestHub)>,
    last_seq: Seq,
    trace: Vec<String>,
}

impl Run {
    pub fn open() -> Self {
        // Stores that choose their own epoch come first and the others take it over, so that positions are
        // equal.
        let mut epoch = Epoch(0xa11ce);
        let mut hubs = Vec::new();
        for (index, kind) in kinds().iter().enumerate().rev() {
            let fixture = (kind.make)(epoch);
            epoch = fixture.open().0.head().unwrap().epoch;
            // The oracle commits each command alone and caches nothing: sharing a commit or reading through the
            // cache must not change any result.
            let max_commit_batch = if index == 0 { 1 } else { Limits::default().max_commit_batch };
            let cache_entries = if index == 0 { 0 } else { Limits::default().cache_entries };
            // Small limits, so that the commands reach them; `unindexed` leaves the search index partly
            // filled.
            let limits = Limits {
                max_commit_batch,
                cache_entries,
                reactions: 2,
                pins: 2,
                bookmarks: 2,
                unindexed: 10,
                ..Limits::default()
            };
            let project_roots = vec!["/srv".into()];
            let limits = Limits { search_timeout: Duration::MAX, project_roots, ..limits };
            hubs.insert(0, (kind.name, TestHub::with_limits(fixture, MORNING, limits)));
        }
        let (world, coverage) = (World::new(MORNING), Coverage::default());
        Self { world, coverage, anonymous_tries_first: false, hubs, last_seq: Seq(0), trace: Vec::new() }
    }

    pub async fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Commands(commands) => {
                let commands = commands.iter().map(|command| self.resolve(command)).collect();
                self.act(commands).await?;
            }
            Step::Retry(choice) => {
                let posted = self.world.posted[usize::from(choice) % self.world.posted.len()].clone();
                self.act(vec![posted]).await?;
            }
            Step::MoveClock(seconds) => {
                self.move_clock(seconds);
            }
            Step::Neglect(command) => {
                let resolved = self.resolve(&command);
                for _ in 0..6 {
                    self.act(vec![resolved.clone()]).await?;
                    self.move_clock(1);
                }
            }
            Step::Restart => {
                self.trace.push("restart".into());
                for (_, test_hub) in &mut self.hubs {
                    test_hub.restart().await;
                }
                self.compare().await?;
            }
        }
        Ok(())
    }

    /// Builds the command and picks its caller from the oracle's current state.
    pub fn resolve(&mut self, command: &RandomCommand) -> (Caller, AnyCommand) {
        let (_, oracle) = &self.hubs[0];
        command.resolve(&mut self.world, oracle)
    }

    /// The hub on the in-memory store, which the others are compared with.
    pub fn oracle(&self) -> &TestHub {
        &self.hubs[0].1
    }

    /// The last entry of the trace.
    pub fn latest(&self) -> &str {
        self.trace.last().map_or("", |last| last)
    }

    pub fn move_clock(&mut self, seconds: i64) {
        self.world.now = Time(self.world.now.0 + seconds * 1_000_000);
        self.trace.push(format!("the clock moves by {seconds} s"));
        self.hubs.iter().for_each(|(_, test_hub)| test_hub.clock.set(self.world.now));
    }

    /// Executes the same commands on every hub and checks that results and published events equal the
    /// oracle's.
    pub async fn act(
        &mut self,
        commands: Vec<(Caller, AnyCommand)>,
    ) -> Result<Vec<AnyResult>, TestCaseError> {
        self.trace
            .extend(commands.iter().map(|(caller, command)| format!("{:?}: {command:?}", caller.principal)));
        let mut expected: Option<(Vec<AnyResult>, Vec<LoggedEvent>)> = None;
        for (name, test_hub) in &self.hubs {
            let mut receipts = Vec::new();
            for (caller, command) in &commands {
                receipts.push(command.clone().submit(test_hub.hub(), caller).await);
            }
            let mut outcomes = Vec::new();
            for receipt in receipts {
                outcomes.push(receipt.await);
            }
            let published = test_hub.published();
            if commands.len() == 1 {
                let tail = test_hub.read(|s| s.tail(self.last_seq, usize::MAX));
                prop_assert_eq!(
                    &as_logged(&published),
                    &as_logged(&tail),
                    "{}: the log returns the published events",
                    name
                );
            }
            match &expected {
                None => expected = Some((outcomes, published)),
                Some((first_outcomes, first_published)) => {
                    prop_assert_eq!(first_outcomes, &outcomes, "results of memory and {}", name);
                    prop_assert_eq!(first_published, &published, "published events of memory and {}", name);
                }
            }
        }
        let (outcomes, published) = expected.expect("there is at least one store");
        for (caller, command) in &commands {
            survives_encoding(caller)?;
            survives_encoding(command)?;
        }
        survives_encoding(&outcomes)?;
        survives_encoding(&published)?;
        for logged_event in &published {
            prop_assert_eq!(logged_event.seq, self.last_seq.next(), "published events are gap-free");
            self.last_seq = logged_event.seq;
        }
        for ((caller, command), outcome) in commands.iter().zip(&outcomes) {
            self.coverage.count(command, outcome);
            if let Ok(receipt) = outcome {
                self.world.learn(caller, command, receipt);
            }
        }
        Ok(outcomes)
    }

    /// Checks that everything readable equals the oracle's, and that the invariants hold.
    pub async fn compare(&mut self) -> Result<(), TestCaseError> {
        let mut first: Option<Picture> = None;
        for (name, test_hub) in &self.hubs {
            let picture = Picture::of(test_hub, &self.world).await;
            invariants::check(&picture)?;
            match &first {
                None => {
                    if picture.dead_letters.iter().any(|letter| letter.mailbox.is_some()) {
                        self.coverage.note(DEAD_MAIL);
                    }
                    first = Some(picture);
                }
                Some(first) => first.compare(&picture, name)?,
            }
        }
        Ok(())
    }

    /// Closes every hub and returns the trace of executed commands.
    pub async fn close(mut self) -> String {
        for (_, test_hub) in &mut self.hubs {
            test_hub.close().await;
        }
        self.trace.join("\n")
    }
}

/// Checks that a value is the same after it was sent to another machine.
fn survives_encoding<T>(value: &T) -> Result<(), TestCaseError>
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let encoded = serde_json::to_string(value).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let decoded: T =
        serde_json::from_str(&encoded).map_err(|error| TestCaseError::fail(format!("{error}: {encoded}")))?;
    prop_assert_eq!(&decoded, value, "encoded as {}", encoded);
    Ok(())
}

/// Removes from published events what the log does not store: the members of a removed room, the approvals of
/// removed rooms and agents, and the audiences of user and agent events.
fn as_logged(published: &[LoggedEvent]) -> Vec<LoggedEvent> {
    // The agents of a removed user leave every room.
    let with_owner = published.iter().any(|logged_event| matches!(logged_event.event, Event::UserRemoved(_)));
    let is_removed = |approval: &Approval| {
        published.iter().any(|logged_event| match &logged_event.event {
            Event::RoomRemoved { room, .. } => Some(room) == approval.place.room(),
            Event::AgentRemoved { agent, .. } => *agent == approval.agent,
            Event::MembersChanged { change: MemberChange::Removed(member), .. } => {
                with_owner && member.agent() == Some(&approval.agent)
            }
            _ => false,
        })
    };
    let strip = |logged_event: &LoggedEvent| match &logged_event.event {
        Event::ApprovalDecided(approval) if is_removed(approval) => {
            LoggedEvent { event: Event::Tombstone, ..logged_event.clone() }
        }
        Event::RoomRemoved { room, .. } => {
            let event = Event::RoomRemoved { room: room.clone(), people: Default::default() };
            LoggedEvent { event, ..logged_event.clone() }
        }
        Event::AgentChanged { agent, .. } => {
            let event = Event::AgentChanged { agent: agent.clone(), audience: Default::default() };
            LoggedEvent { event, ..logged_event.clone() }
        }
        Event::UserChanged { user, .. } => {
            let event = Event::UserChanged { user: user.clone(), audience: Default::default() };
            LoggedEvent { event, ..logged_event.clone() }
        }
        Event::AgentRemoved { agent, .. } => {
            let event = Event::AgentRemoved { agent: agent.clone(), audience: Default::default() };
            LoggedEvent { event, ..logged_event.clone() }
        }
        _ => logged_event.clone(),
    };
    published.iter().map(strip).collect()
}
