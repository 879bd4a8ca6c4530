//! One run: a hub on each store, side by side.

use super::asks::{Ask, Step};
use super::coverage::{Coverage, GIVEN_UP};
use super::invariants;
use super::picture::Picture;
use super::world::World;
use crate::stores::kinds;
use crate::test_hub::TestHub;
use parlor_engine::Limits;
use parlor_engine::hub::CommandResult;
use parlor_model::{Approval, Caller, Command, Epoch, Event, LoggedEvent, MemberChange, Seq, Time};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::time::Duration;

const MORNING: Time = Time(1_700_000_000_000_000);

pub struct Run {
    pub world: World,
    pub coverage: Coverage,
    /// Whether an outsider tries first whatever must be done.
    pub strangers_try: bool,
    /// The oracle first.
    houses: Vec<(&'static str, TestHub)>,
    seen: Seq,
    trace: Vec<String>,
}

impl Run {
    pub fn open() -> Self {
        // A store that chooses its own epoch gives it to the others, so that positions compare.
        let mut epoch = Epoch(0xa11ce);
        let mut houses = Vec::new();
        for (index, kind) in kinds().iter().enumerate().rev() {
            let home = (kind.make)(epoch);
            epoch = home.open().0.head().unwrap().epoch;
            // The oracle decides each command by itself: sharing a commit must change nothing.
            let group = if index == 0 { 1 } else { Limits::default().max_commit_batch };
            // Few enough to be reached; the index is anywhere between nothing and everything when it is asked.
            let limits = Limits {
                max_commit_batch: group,
                reactions: 2,
                pins: 2,
                bookmarks: 2,
                unindexed: 10,
                ..Limits::default()
            };
            let project_roots = vec!["/srv".into()];
            let limits = Limits { search_timeout: Duration::MAX, project_roots, ..limits };
            houses.insert(0, (kind.name, TestHub::with_limits(home, MORNING, limits)));
        }
        let (world, coverage) = (World::new(MORNING), Coverage::default());
        Self { world, coverage, strangers_try: false, houses, seen: Seq(0), trace: Vec::new() }
    }

    pub async fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Asks(asks) => {
                let asks = asks.iter().map(|ask| self.resolve(ask)).collect();
                self.act(asks).await?;
            }
            Step::Retry(choice) => {
                let ask = self.world.posted[usize::from(choice) % self.world.posted.len()].clone();
                self.act(vec![ask]).await?;
            }
            Step::MoveClock(seconds) => {
                self.move_clock(seconds);
            }
            Step::Neglect(ask) => {
                let ask = self.resolve(&ask);
                for _ in 0..6 {
                    self.act(vec![ask.clone()]).await?;
                    self.move_clock(1);
                }
            }
            Step::Restart => {
                self.trace.push("restart".into());
                for (_, test_hub) in &mut self.houses {
                    test_hub.restart().await;
                }
                self.compare().await?;
            }
        }
        Ok(())
    }

    /// Who asks for what, as things stand.
    pub fn resolve(&mut self, ask: &Ask) -> (Caller, Command) {
        let (_, oracle) = &self.houses[0];
        ask.resolve(&mut self.world, oracle)
    }

    /// The hub whose answers the others are compared with.
    pub fn oracle(&self) -> &TestHub {
        &self.houses[0].1
    }

    /// What was done last.
    pub fn latest(&self) -> &str {
        self.trace.last().map_or("", |last| last)
    }

    pub fn move_clock(&mut self, seconds: i64) {
        self.world.now = Time(self.world.now.0 + seconds * 1_000_000);
        self.trace.push(format!("the clock moves by {seconds} s"));
        self.houses.iter().for_each(|(_, test_hub)| test_hub.clock.set(self.world.now));
    }

    /// Has every hub do the same; outcomes and news must be those of the first.
    pub async fn act(&mut self, asks: Vec<(Caller, Command)>) -> Result<Vec<CommandResult>, TestCaseError> {
        self.trace
            .extend(asks.iter().map(|(caller, command)| format!("{:?}: {command:?}", caller.principal)));
        let mut expected: Option<(Vec<CommandResult>, Vec<LoggedEvent>)> = None;
        for (name, test_hub) in &self.houses {
            let mut receipts = Vec::new();
            for (caller, command) in &asks {
                receipts.push(test_hub.hub().submit(caller, command.clone()).await);
            }
            let mut outcomes = Vec::new();
            for receipt in receipts {
                outcomes.push(receipt.await);
            }
            let news = test_hub.news();
            if asks.len() == 1 {
                let tail = test_hub.read(|s| s.tail(self.seen, usize::MAX));
                prop_assert_eq!(
                    &as_logged(&news),
                    &as_logged(&tail),
                    "{}: the log tells what was announced",
                    name
                );
            }
            match &expected {
                None => expected = Some((outcomes, news)),
                Some((first_outcomes, first_news)) => {
                    prop_assert_eq!(first_outcomes, &outcomes, "outcomes of memory and {}", name);
                    prop_assert_eq!(first_news, &news, "news of memory and {}", name);
                }
            }
        }
        let (outcomes, news) = expected.expect("there is a first store");
        for logged_event in &news {
            prop_assert_eq!(logged_event.seq, self.seen.next(), "news follow each other without a hole");
            self.seen = logged_event.seq;
        }
        for ((caller, command), outcome) in asks.iter().zip(&outcomes) {
            self.coverage.count(command, outcome);
            if let Ok(receipt) = outcome {
                self.world.learn(caller, command, receipt);
            }
        }
        Ok(outcomes)
    }

    /// Everything that can be read must be the same, and keep the promises.
    pub async fn compare(&mut self) -> Result<(), TestCaseError> {
        let mut first: Option<Picture> = None;
        for (name, test_hub) in &self.houses {
            let picture = Picture::of(test_hub, &self.world).await;
            invariants::check(&picture)?;
            match &first {
                None => {
                    if picture.dead_letters.iter().any(|letter| letter.mailbox.is_some()) {
                        self.coverage.note(GIVEN_UP);
                    }
                    first = Some(picture);
                }
                Some(first) => first.compare(&picture, name)?,
            }
        }
        Ok(())
    }

    /// Ends every hub; gives what was done.
    pub async fn close(mut self) -> String {
        for (_, test_hub) in &mut self.houses {
            test_hub.close().await;
        }
        self.trace.join("\n")
    }
}

/// Who was in a removed room is told once, and not kept; nor is what its agents, or those that were removed, waited for,
/// nor who sees a person or an agent.
fn as_logged(news: &[LoggedEvent]) -> Vec<LoggedEvent> {
    // The agents of somebody who is removed leave every room.
    let with_owner = news.iter().any(|logged_event| matches!(logged_event.event, Event::UserRemoved(_)));
    let gone = |approval: &Approval| {
        news.iter().any(|logged_event| match &logged_event.event {
            Event::RoomRemoved { room, .. } => *room == approval.room,
            Event::AgentRemoved { agent, .. } => *agent == approval.agent,
            Event::MembersChanged { change: MemberChange::Removed(member), .. } => {
                with_owner && member.agent() == Some(&approval.agent)
            }
            _ => false,
        })
    };
    let forget = |logged_event: &LoggedEvent| match &logged_event.event {
        Event::ApprovalDecided(approval) if gone(approval) => {
            LoggedEvent { event: Event::Tombstone, ..logged_event.clone() }
        }
        Event::RoomRemoved { room, .. } => {
            let event = Event::RoomRemoved { room: room.clone(), people: Default::default() };
            LoggedEvent { event, ..logged_event.clone() }
        }
        Event::AgentChanged { agent, .. } => {
            let event = Event::AgentChanged { agent: agent.clone(), circle: Default::default() };
            LoggedEvent { event, ..logged_event.clone() }
        }
        Event::UserChanged { user, .. } => {
            let event = Event::UserChanged { user: user.clone(), circle: Default::default() };
            LoggedEvent { event, ..logged_event.clone() }
        }
        Event::AgentRemoved { agent, .. } => {
            let event = Event::AgentRemoved { agent: agent.clone(), circle: Default::default() };
            LoggedEvent { event, ..logged_event.clone() }
        }
        _ => logged_event.clone(),
    };
    news.iter().map(forget).collect()
}
