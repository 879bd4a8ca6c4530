//! Hosts agents: drives what they are made of over a connection to a hub, and over the next one when that is lost.
//!
//! Owns: each turn is ended at the hub exactly once; nothing that was said is lost or said twice, whatever happens to
//! the connection; a stop reaches an agent at once. One task has all of this in its hands, and every queue has an
//! end: what agents say waits in their replies, which are bounded, and becomes a frame when there is room for one.

mod answers;
mod changes;
pub mod connect;
mod registration;
pub mod remote;
mod reply;
mod runs;
pub mod sign_in;
pub mod store;
pub mod trust;
mod workspace;

use crate::FrameChannel;
use crate::kinds::{AgentConfig, AgentKind, SlashCommand};
use parlor_model::{AgentId, MessageId, RoomId, RunId, RunOutcome};
use parlor_wire::agentim::gateway::host::egress;
use parlor_wire::agentim::gateway::host::ingress::{Instruction, RoomView, read};
use parlor_wire::agentim::gateway::ingress::{GatewayMessage, ReplyTarget as Place};
use registration::{register, slash_commands};
use reply::{Mark, OutgoingPiece, Reply};
use runs::{RunFinished, RunHandle};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use store::{GatewayStore, PersistedRun};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// Answers that wait to be sent; who asks faster than they go is not answered.
const ANSWERS: usize = 1024;

/// An agent, as it is to be hosted.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSpec {
    pub id: AgentId,
    pub name: Box<str>,
    pub agent_config: AgentConfig,
}

/// What happens, for who runs the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayNotice {
    Began {
        agent: Box<str>,
        room: Box<str>,
        by: Box<str>,
    },
    Ended {
        agent: Box<str>,
        room: Box<str>,
        how: RunOutcome,
    },
    /// The hub has no place for this agent any more, or somebody else hosts it.
    Dismissed {
        agent: Box<str>,
    },
    /// The hub did not take something, in its own words.
    Refused {
        message: Box<str>,
    },
}

/// What owners may make on this machine from afar.
#[derive(Debug, Clone, Default)]
pub struct SpawnPolicy {
    /// Kinds; none by default.
    pub kinds: Vec<String>,
}

pub struct Gateway {
    data: Arc<GatewayStore>,
    agents: HashMap<AgentId, HostedAgent>,
    /// By the number under which they are kept.
    turns: BTreeMap<u64, HostedRun>,
    next: u64,
    tasks: JoinSet<RunFinished>,
    /// Answers for which a disk is looked at; a stop does not wait for that.
    looks: JoinSet<String>,
    /// Rings when there may be something to send.
    output_ready: Arc<Notify>,
    /// Frames that belong to no turn, or to one that is over.
    frames: VecDeque<String>,
    /// Something could not be told: the connection ends, for on the next one everything that counts is told anew.
    overfull: bool,
    /// Whose turn it is to be sent something of.
    last_sent: u64,
    spawning: SpawnPolicy,
    news: mpsc::Sender<GatewayNotice>,
}

struct HostedAgent {
    name: Box<str>,
    agent_config: AgentConfig,
    kind: Arc<AgentKind>,
    /// What it understood after a slash when the hub was last told.
    commands: Vec<SlashCommand>,
    rooms: HashMap<RoomId, Arc<RoomView>>,
}

struct HostedRun {
    kept: PersistedRun,
    agent: AgentId,
    room: RoomId,
    run: RunId,
    reply: MessageId,
    /// Absent when it was begun by an earlier process.
    act: Option<RunHandle>,
    said: Arc<runs::RunTranscript>,
    standing: HubRunState,
    ending: Option<RunOutcome>,
    /// Whether the hub was told of the ending, on this connection.
    told: bool,
    /// Whether the hub keeps its end.
    over: bool,
}

/// What the hub knows of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HubRunState {
    /// The connection is new, and the hub has not said yet how far it is.
    Unknown,
    GoesOn,
    /// It gave the turn up; what comes of it is told as a whole.
    GivenUp,
    /// It ended the turn: nobody wants to hear more.
    Over,
}

impl Gateway {
    /// With everything that an earlier process left to do.
    pub fn new(
        data: Arc<GatewayStore>,
        spawning: SpawnPolicy,
        news: mpsc::Sender<GatewayNotice>,
    ) -> io::Result<Self> {
        let mut turns = BTreeMap::new();
        for (number, kept) in data.unfinished_runs()? {
            let Some((agent, room, run, reply)) = kept.ids() else {
                data.forget(number);
                continue;
            };
            let (parts, ending) = match &kept.finished {
                Some(finished) => {
                    let ending = finished.failed.clone().map_or(RunOutcome::Complete, RunOutcome::Failed);
                    (finished.parts.clone(), ending)
                }
                // It was being played when that process died.
                None => (Vec::new(), RunOutcome::Interrupted),
            };
            let taken = kept.taken.iter().filter_map(|id| RunId::parse(id).ok()).collect();
            let said = Arc::new(runs::RunTranscript::of(Reply::of(parts), taken));
            let standing = HubRunState::Unknown;
            let ending = Some(ending);
            let playing = HostedRun {
                kept,
                agent,
                room,
                run,
                reply,
                act: None,
                said,
                standing,
                ending,
                told: false,
                over: false,
            };
            turns.insert(number, playing);
        }
        let next = turns.keys().next_back().map_or(0, |last| last + 1);
        let mut gateway = Self {
            data,
            agents: HashMap::new(),
            turns,
            next,
            tasks: JoinSet::new(),
            looks: JoinSet::new(),
            output_ready: Arc::default(),
            frames: VecDeque::new(),
            overfull: false,
            last_sent: 0,
            spawning,
            news,
        };
        for plan in gateway.data.spawned() {
            let name = plan.name.clone();
            if !gateway.spawning.kinds.contains(&plan.agent_config.kind) {
                tracing::warn!(agent = %name, kind = plan.agent_config.kind, "made from afar, which is not allowed now");
            } else if let Err(problem) = gateway.add(plan) {
                tracing::warn!(agent = %name, %problem, "an agent that was made from afar cannot be hosted");
            }
        }
        Ok(gateway)
    }

    /// Hosts an agent from the next connection on.
    pub fn add(&mut self, plan: AgentSpec) -> Result<(), Box<str>> {
        let kind = AgentKind::new(&plan.agent_config)?;
        self.add_with_kind(plan, kind);
        Ok(())
    }

    /// The same, where there is more to its kind than a recipe may say.
    pub fn add_with_kind(&mut self, plan: AgentSpec, kind: AgentKind) {
        let AgentSpec { id, name, agent_config } = plan;
        let commands = kind.commands();
        let kind = Arc::new(kind);
        self.agents.insert(id, HostedAgent { name, agent_config, kind, commands, rooms: HashMap::new() });
    }

    /// Hosts no others any more.
    pub fn keep_only(&mut self, known: &[AgentId]) {
        let gone: Vec<AgentId> = self.agents.keys().filter(|id| !known.contains(id)).cloned().collect();
        for agent in gone {
            self.dismissed(&agent);
        }
    }

    /// Until the connection is lost. What agents do goes on meanwhile, if this is called again or `idle` is.
    pub async fn serve(&mut self, link: FrameChannel) {
        let FrameChannel { mut incoming, outgoing } = link;
        self.begin_connection();
        let bell = self.output_ready.clone();
        while !self.overfull {
            let waiting = self.has_frames();
            tokio::select! {
                biased;
                // What comes in is heard whatever happens to what goes out: a stop does not wait.
                frame = incoming.recv() => match frame {
                    Some(frame) => self.hear(&frame),
                    None => break,
                },
                Some(over) = self.tasks.join_next(), if !self.tasks.is_empty() => self.is_over(over),
                Some(Ok(answer)) = self.looks.join_next(), if !self.looks.is_empty() => self.say(answer),
                permit = outgoing.reserve(), if waiting => match permit {
                    Ok(permit) => {
                        if let Some(frame) = self.next_frame() {
                            permit.send(frame);
                        }
                    }
                    Err(_) => break,
                },
                () = bell.notified() => {}
            }
        }
        self.end_connection();
    }

    /// Attends to what agents do while there is no connection. Never ends by itself.
    pub async fn idle(&mut self) {
        loop {
            match self.tasks.join_next().await {
                Some(over) => self.is_over(over),
                None => std::future::pending().await,
            }
        }
    }

    /// Ends everything that is played, and waits for it.
    pub async fn stop(&mut self) {
        for playing in self.turns.values() {
            if let Some(act) = &playing.act {
                act.stop();
            }
        }
        // Not noted as over: the next process tells the hub that they were interrupted.
        while self.tasks.join_next().await.is_some() {}
    }

    fn begin_connection(&mut self) {
        self.frames.clear();
        self.overfull = false;
        // Who asked on the last connection has given up.
        self.looks = JoinSet::new();
        let forms: Vec<String> = self.agents.iter().map(|(id, hosted)| register(id, hosted)).collect();
        self.frames.extend(forms);
        for playing in self.turns.values_mut() {
            playing.standing = HubRunState::Unknown;
            playing.told = false;
            let (agent, room, run) = (playing.agent.clone(), playing.room.clone(), playing.run.clone());
            self.frames.push_back(egress::write(&GatewayMessage::Resume { agent, room, run }));
        }
        // A hub that no agent of an old turn is hosted at cannot be asked for it.
        let unhosted = |playing: &HostedRun| !self.agents.contains_key(&playing.agent);
        let gone: Vec<u64> = self.turns.iter().filter(|(_, one)| unhosted(one)).map(|(n, _)| *n).collect();
        for number in gone {
            self.forget(number);
        }
    }

    fn end_connection(&mut self) {
        for playing in self.turns.values() {
            playing.said.disconnect();
        }
    }

    fn has_frames(&self) -> bool {
        let due = |playing: &HostedRun| match playing.standing {
            HubRunState::GoesOn => {
                let said = playing.said.reply.lock();
                !said.is_told() || (playing.ending.is_some() && !playing.told)
            }
            HubRunState::GivenUp => playing.ending.is_some() && !playing.told,
            HubRunState::Unknown | HubRunState::Over => false,
        };
        !self.frames.is_empty() || self.turns.values().any(due)
    }

    /// Turns take turns, so that one that says much keeps nobody else from being heard.
    fn next_frame(&mut self) -> Option<String> {
        if let Some(frame) = self.frames.pop_front() {
            return Some(frame);
        }
        let after = self.turns.range(self.last_sent + 1..).map(|(number, _)| *number);
        let order: Vec<u64> = after.chain(self.turns.range(..=self.last_sent).map(|(n, _)| *n)).collect();
        for number in order {
            let Some(playing) = self.turns.get_mut(&number) else { continue };
            if let Some(frame) = playing.next_frame() {
                self.last_sent = number;
                return Some(frame);
            }
        }
        None
    }

    fn hear(&mut self, frame: &str) {
        // What cannot be understood was not meant for this gateway.
        let Ok(Some(instruction)) = read(frame) else { return };
        match instruction {
            Instruction::Answer(request) => self.begin(request),
            Instruction::Add(addition) => self.add_to(addition),
            Instruction::Look { agent, room } => {
                if let Some(hosted) = self.agents.get_mut(&agent) {
                    hosted.rooms.insert(room.room.clone(), Arc::new(room));
                }
            }
            Instruction::Stop { agent, room } => {
                let meant = |one: &HostedRun| {
                    one.agent == agent && room.as_ref().is_none_or(|room| one.room == *room)
                };
                for playing in self.turns.values_mut().filter(|one| meant(one)) {
                    playing.called_off();
                }
            }
            Instruction::Ended { run, interrupted } => self.ended(&run, interrupted),
            Instruction::Resumed { run, parts, bytes } => {
                if let Some(playing) = self.turns.values_mut().find(|one| one.run == run) {
                    playing.standing = HubRunState::GoesOn;
                    playing.said.reply.lock().resume(Mark { part: parts, byte: bytes });
                    playing.said.ask_again(&mut self.frames);
                    self.frames.extend(playing.taken());
                }
            }
            Instruction::Decided { agent, request, verdict } => {
                let mut own = self.turns.values().filter(|one| one.agent == agent);
                own.any(|one| one.said.decided(&request, &verdict));
            }
            Instruction::Remove { agent } => self.dismissed(&agent),
            Instruction::Refused { message, .. } => self.tell(GatewayNotice::Refused { message }),
            // No agent of its own asks people anything but permission.
            Instruction::Welcome
            | Instruction::Answered { .. }
            | Instruction::AuthFailed { .. }
            | Instruction::Pong { .. } => {}
            asked => self.answer(asked),
        }
    }

    /// The hub keeps the end of a turn.
    fn ended(&mut self, run: &RunId, interrupted: bool) {
        let Some((number, playing)) = self.turns.iter_mut().find(|(_, one)| one.run == *run) else { return };
        let number = *number;
        let done = playing.told || playing.ending == Some(RunOutcome::Interrupted);
        match (interrupted && !done, playing.ending.is_some()) {
            (true, _) => {
                playing.standing = HubRunState::GivenUp;
                playing.said.disconnect();
            }
            (false, true) => self.forget(number),
            (false, false) => {
                playing.over = true;
                playing.called_off();
            }
        }
    }

    fn dismissed(&mut self, agent: &AgentId) {
        let Some(hosted) = self.agents.remove(agent) else { return };
        for playing in self.turns.values_mut().filter(|one| one.agent == *agent) {
            playing.called_off();
        }
        if let Err(error) = self.data.forget_spawned(agent) {
            tracing::warn!(%error, "an agent that was made from afar cannot be forgotten");
        }
        self.tell(GatewayNotice::Dismissed { agent: hosted.name });
    }

    fn forget(&mut self, number: u64) {
        if self.turns.remove(&number).is_some() {
            self.data.forget(number);
        }
    }

    fn say(&mut self, frame: String) {
        if self.frames.len() < ANSWERS {
            self.frames.push_back(frame);
        } else if !self.overfull {
            tracing::warn!("the hub does not take what it is told: connecting anew");
            self.overfull = true;
            self.output_ready.notify_one();
        }
    }

    fn tell(&self, news: GatewayNotice) {
        // Who does not listen misses it.
        let _ = self.news.try_send(news);
    }
}

impl HostedRun {
    fn place(&self) -> Place {
        Place {
            agent: self.agent.clone(),
            room: Some(self.room.clone()),
            message: Some(self.reply.clone()),
            run: Some(self.run.clone()),
            target_agent: None,
        }
    }

    /// What became part of it, for a hub that may not have heard so.
    fn taken(&self) -> Vec<String> {
        self.said
            .taken()
            .into_iter()
            .map(|added| runs::added(&self.agent, &self.room, &self.run, added))
            .collect()
    }

    fn next_frame(&mut self) -> Option<String> {
        let next = match self.standing {
            HubRunState::GoesOn => self.said.next(),
            HubRunState::GivenUp => None,
            HubRunState::Unknown | HubRunState::Over => return None,
        };
        match next {
            Some(OutgoingPiece::Chunk(chunk)) => {
                Some(egress::write(&GatewayMessage::Chunk { reply: self.place(), chunk }))
            }
            Some(OutgoingPiece::Signal(frame)) => Some(frame),
            None if self.told => None,
            None => {
                let outcome = self.ending.clone()?;
                self.told = true;
                Some(self.complete(outcome))
            }
        }
    }

    /// The end of the reply. What was heard is its text; where the hub gave up hearing, it is told as a whole.
    fn complete(&self, outcome: RunOutcome) -> String {
        let whole = (self.standing == HubRunState::GivenUp).then(|| self.said.reply.lock().text());
        let text = whole.map(|text| reply::head(&text, runs::IN_ONE_FRAME).into());
        egress::write(&GatewayMessage::Complete {
            reply: self.place(),
            text,
            chunks: Vec::new(),
            conversation: self.kept.conversation.as_deref().map(Into::into),
            depth: Some(self.kept.depth),
            outcome,
        })
    }

    /// Nobody wants to hear more of it.
    fn called_off(&mut self) {
        self.standing = HubRunState::Over;
        self.said.disconnect();
        if let Some(act) = &self.act {
            act.stop();
        }
    }
}
