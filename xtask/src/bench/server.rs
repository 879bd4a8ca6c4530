//! The two servers of a measurement and how a client behaves at each: the hub through `/ws/client` or `/ws/broker`,
//! the reference with the least that does the same.

use super::frames::FrameCounter;
use super::nats;
use super::options::{Hub, Options};
use super::process::Process;
use super::rest;
use super::route::{Counter, LISTENERS, Wire};
use super::socket::Socket;
use super::subscriptions::{channel, patterns};
use super::words;
use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use std::fs::{self, File};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Length of a published text: a long sentence, as people and agents write them.
pub const TEXT_BYTES: usize = 140;
/// How many different texts are published in turn.
pub const TEXTS: usize = 64;
/// Marks a delivery; the references send it too.
pub const DELIVERY: &str = "server:new_message";

pub const PASSWORD: &str = "Parlor-bench-1";

pub struct Server {
    pub process: Process,
    kind: Kind,
}

enum Kind {
    Hub {
        people: Vec<Person>,
        room: String,
    },
    /// Payload length of a delivery, as last measured at the hub.
    Reference {
        frame_bytes: AtomicUsize,
    },
    /// With the connection that holds its many subscriptions.
    Nats {
        _subscriptions: nats::Client,
    },
}

/// Somebody who may speak in the common room and in one of their own.
struct Person {
    token: String,
    own_room: String,
}

impl Server {
    pub fn start_reference() -> Result<Self> {
        let process = Process::start(Command::new(std::env::current_exe()?).arg("bench-reference"))?;
        Ok(Self { process, kind: Kind::Reference { frame_bytes: AtomicUsize::new(512) } })
    }

    /// Starts NATS with that many subscriptions that nothing is sent to.
    pub async fn start_nats(options: &Options, subscriptions: usize) -> Result<Self> {
        let process = nats::start(&options.folder)?;
        let mut client = nats::Client::connect(process.address, false).await?;
        client.subscribe(patterns(subscriptions).map(|pattern| nats::subject(&pattern))).await?;
        Ok(Self { process, kind: Kind::Nats { _subscriptions: client } })
    }

    /// Starts the hub with an empty store and makes the people; the first of them is its admin.
    pub async fn start_hub(options: &Options, name: &str, people: usize) -> Result<Self> {
        let data = options.folder.join(name);
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        let process = Self::launch_hub(options, name)?;
        let kind = furnish(&process, people).await.context("making people and rooms")?;
        Ok(Self { process, kind })
    }

    /// Starts the hub once more on what it has stored: what a process keeps of its past is gone.
    pub fn start_again(self, options: &Options, name: &str) -> Result<Self> {
        let Self { process, kind } = self;
        drop(process);
        Ok(Self { process: Self::launch_hub(options, name)?, kind })
    }

    fn launch_hub(options: &Options, name: &str) -> Result<Process> {
        let data = options.folder.join(name);
        let log = options.folder.join(format!("{name}.log"));
        let mut command = match &options.hub {
            Hub::Binary(file) => Command::new(file),
            Hub::StandIn => Command::new(std::env::current_exe()?),
        };
        command.arg(if matches!(options.hub, Hub::StandIn) { "bench-stand-in" } else { "serve" });
        for (name, _) in std::env::vars_os() {
            // Settings of the person who measures must not change what is measured.
            if name.to_string_lossy().starts_with("PARLOR_") {
                command.env_remove(name);
            }
        }
        command
            .args(["--listen", "127.0.0.1:0", "--data"])
            .arg(&data)
            .env("PARLOR_LIMITS", "off")
            .env("PARLOR_WELCOME", "off")
            .env("PARLOR_ADMIN_PASSWORD", PASSWORD)
            .stderr(File::create(&log)?);
        Process::start(&mut command)
            .with_context(|| format!("what it said on its error output is in {}", log.display()))
    }

    /// Makes the reference's deliveries as long as the hub's.
    pub fn send_frames_of(&self, bytes: usize) {
        if let Kind::Reference { frame_bytes } = &self.kind {
            frame_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// A connection that is signed in and then does nothing; at the reference, one that was heard once.
    pub async fn visitor(&self, number: usize) -> Result<Socket> {
        match &self.kind {
            Kind::Hub { people, .. } => {
                let mut socket = Socket::open(self.process.address, "/ws/client").await?;
                let token = &people[number % people.len()].token;
                socket.send(&json!({"type": "client:auth", "token": token}).to_string()).await?;
                socket.expect(&["server:auth_result", "\"ok\":true"]).await?;
                Ok(socket)
            }
            Kind::Reference { .. } | Kind::Nats { .. } => {
                let mut socket = Socket::open(self.process.address, "/echo").await?;
                socket.send("hello").await?;
                socket.expect(&["hello"]).await?;
                Ok(socket)
            }
        }
    }

    /// A connection that hears everything said in the common room.
    pub async fn subscriber(&self, number: usize) -> Result<Socket> {
        match &self.kind {
            Kind::Hub { room, .. } => {
                let mut socket = self.visitor(number).await?;
                let join = json!({"type": "client:join_room", "roomId": room, "since": "now"});
                socket.send(&join.to_string()).await?;
                socket.expect(&["server:room_joined"]).await?;
                Ok(socket)
            }
            Kind::Reference { .. } | Kind::Nats { .. } => {
                let mut socket = Socket::open(self.process.address, "/broadcast").await?;
                socket.send("join").await?;
                socket.expect(&["joined"]).await?;
                Ok(socket)
            }
        }
    }

    /// A connection that reads events as they happen.
    pub async fn event_reader(&self, number: usize) -> Result<Socket> {
        match &self.kind {
            Kind::Hub { people, .. } => {
                let token = &people[number % people.len()].token;
                let mut socket = Socket::get(self.process.address, "/api/events", Some(token)).await?;
                // Where it stands is told when it is live.
                socket.read_to(b"\nid: ").await?;
                Ok(socket)
            }
            Kind::Reference { .. } | Kind::Nats { .. } => {
                Socket::get(self.process.address, "/events", None).await
            }
        }
    }

    /// How the data of an event begins that is a message.
    pub fn event_marker(&self) -> &'static str {
        match &self.kind {
            Kind::Hub { .. } => r#"data: {"id":"msg-"#,
            Kind::Reference { .. } | Kind::Nats { .. } => r#"data: {"type":"server:new_message""#,
        }
    }

    /// A person's connection to the broker; the first person may speak as a source.
    pub async fn broker(&self, number: usize) -> Result<Socket> {
        let Kind::Hub { people, .. } = &self.kind else { bail!("only the hub is a broker") };
        let mut socket = Socket::open(self.process.address, "/ws/broker").await?;
        let token = &people[number % people.len()].token;
        socket.send(&json!({"type": "auth", "token": token}).to_string()).await?;
        socket.expect(&["auth.ok"]).await?;
        Ok(socket)
    }

    /// A gateway of a person's.
    pub async fn host(&self, number: usize, id: &str) -> Result<Socket> {
        let Kind::Hub { people, .. } = &self.kind else { bail!("only the hub has gateways") };
        let mut socket = Socket::open(self.process.address, "/ws/gateway").await?;
        let device = json!({"hostname": "bench", "platform": "linux", "arch": "x64", "nodeVersion": "v22"});
        let auth = json!({"type": "gateway:auth", "token": people[number % people.len()].token, "gatewayId": id, "deviceInfo": device});
        socket.send(&auth.to_string()).await?;
        socket.expect(&["server:gateway_auth_result", "\"ok\":true"]).await?;
        Ok(socket)
    }

    /// Brings an agent into the common room.
    pub async fn add_agent(&self, id: &str) -> Result<()> {
        let (room, token) = self.common_room()?;
        let member = json!({"memberId": id, "memberType": "agent"});
        let path = format!("/api/rooms/{room}/members");
        rest::post(self.process.address, &path, Some(token), &member).await.map(|_| ())
    }

    /// Makes agents of everybody's with that many subscriptions that nothing is sent to, and those that listen.
    pub async fn subscribe(&self, subscriptions: usize) -> Result<()> {
        let Kind::Hub { people, .. } = &self.kind else { bail!("only the hub has agents") };
        let wanted: Vec<String> = patterns(subscriptions).collect();
        let agents: Vec<_> = wanted.chunks(100).enumerate().collect();
        let of_person = agents.chunks(agents.len().div_ceil(people.len()).max(1)).enumerate();
        let making = of_person.map(async |(person, agents)| {
            let mut socket = self.broker(person).await?;
            for (number, patterns) in agents {
                make_agent(&mut socket, &format!("crowd-{number}"), patterns).await?;
            }
            anyhow::Ok(())
        });
        futures_util::future::try_join_all(making).await?;
        let mut socket = self.broker(0).await?;
        for number in 0..LISTENERS {
            make_agent(&mut socket, &format!("listener-{number}"), &[channel(number)]).await?;
        }
        Ok(())
    }

    /// A connection to which everything on one channel is pushed.
    pub async fn route_listener(&self, number: usize) -> Result<Wire> {
        if let Kind::Nats { .. } = &self.kind {
            let mut client = nats::Client::connect(self.process.address, false).await?;
            client.subscribe(std::iter::once(nats::subject(&channel(number)))).await?;
            let nats::Client { stream, counter } = client;
            return Ok(Wire { stream, counter: Counter::Nats { counter, sends: false } });
        }
        let mut socket = self.broker(0).await?;
        let listen = json!({"type": "msg.listen", "agentId": format!("listener-{number}")});
        socket.send(&listen.to_string()).await?;
        socket.expect(&["msg.listen.ok"]).await?;
        Ok(counted(socket, "msg.push"))
    }

    /// A connection that may send to every channel.
    pub async fn route_sender(&self) -> Result<Wire> {
        if let Kind::Nats { .. } = &self.kind {
            let nats::Client { stream, counter } = nats::Client::connect(self.process.address, true).await?;
            return Ok(Wire { stream, counter: Counter::Nats { counter, sends: true } });
        }
        Ok(counted(self.broker(0).await?, "msg.route.ok"))
    }

    /// Many connections of one kind, opened a few dozen at a time.
    pub async fn open_many<F>(
        self: &Arc<Self>,
        count: usize,
        open: impl Fn(Arc<Self>, usize) -> F,
    ) -> Result<Vec<Socket>>
    where
        F: Future<Output = Result<Socket>>,
    {
        let opening = stream::iter((0..count).map(|number| open(self.clone(), number)));
        opening.buffer_unordered(32).try_collect().await
    }

    /// A connection that speaks in the common room without listening there.
    pub async fn publisher(&self, number: usize) -> Result<Socket> {
        match &self.kind {
            Kind::Hub { .. } => self.visitor(number).await,
            Kind::Reference { .. } | Kind::Nats { .. } => {
                Socket::open(self.process.address, "/broadcast").await
            }
        }
    }

    /// What a publisher sends to say something to the common room.
    pub fn publications(&self) -> Vec<String> {
        match &self.kind {
            Kind::Hub { room, .. } => words::texts(TEXTS, TEXT_BYTES)
                .into_iter()
                // Written by hand: the type goes first, as clients send it, and texts need no escaping.
                .map(|text| {
                    format!(r#"{{"type":"client:send_message","roomId":"{room}","content":"{text}"}}"#)
                })
                .collect(),
            Kind::Reference { frame_bytes } => {
                let (before, after) = (format!(r#"{{"type":"{DELIVERY}","content":""#), r#""}"#);
                let filling = frame_bytes.load(Ordering::Relaxed).saturating_sub(before.len() + after.len());
                words::texts(TEXTS, filling).into_iter().map(|text| before.clone() + &text + after).collect()
            }
            Kind::Nats { .. } => Vec::new(),
        }
    }

    /// The common room, and the token of its owner. Only the hub has them.
    pub fn common_room(&self) -> Result<(&str, &str)> {
        match &self.kind {
            Kind::Hub { people, room } => Ok((room, &people[0].token)),
            Kind::Reference { .. } | Kind::Nats { .. } => bail!("the reference has no rooms"),
        }
    }

    /// The room in which visitor `number` may speak alone. Only the hub has such rooms.
    pub fn own_room(&self, number: usize) -> Result<&str> {
        match &self.kind {
            Kind::Hub { people, .. } => Ok(&people[number % people.len()].own_room),
            Kind::Reference { .. } | Kind::Nats { .. } => bail!("the reference has no rooms"),
        }
    }
}

async fn make_agent(socket: &mut Socket, id: &str, patterns: &[String]) -> Result<()> {
    let config = json!({"subscriptions": patterns});
    socket.send(&json!({"type": "agent.create", "id": id, "config": config}).to_string()).await?;
    socket.expect(&["agent.create.ok"]).await.map(|_| ())
}

fn counted(socket: Socket, marker: &'static str) -> Wire {
    let mut counter = FrameCounter::new(marker);
    counter.feed(&socket.unread);
    Wire { stream: socket.stream, counter: Counter::Hub(counter) }
}

async fn furnish(process: &Process, count: usize) -> Result<Kind> {
    let address = process.address;
    let sign_in = async |name: &str| -> Result<(String, String)> {
        let credentials = json!({"username": name, "password": PASSWORD});
        let answer = rest::post(address, "/api/auth/login", None, &credentials).await?;
        let token = answer["accessToken"].as_str().context("no `accessToken` in the answer to a login")?;
        let id = answer["user"]["id"].as_str().context("no `user.id` in the answer to a login")?;
        Ok((token.to_string(), id.to_string()))
    };
    let make_room = async |name: &str, token: &str, members: &[String]| -> Result<String> {
        let wanted = json!({"name": name, "memberIds": members});
        let answer = rest::post(address, "/api/rooms", Some(token), &wanted).await?;
        Ok(answer["id"].as_str().context("no `id` in the answer to a new room")?.to_string())
    };
    let mut people = Vec::new();
    let mut others = Vec::new();
    let (admin, _) = sign_in("admin").await?;
    for number in 0..count {
        let name = if number == 0 { "admin".to_string() } else { format!("bench-{number}") };
        if number > 0 {
            let account = json!({"username": name, "password": PASSWORD});
            rest::post(address, "/api/users", Some(&admin), &account).await?;
        }
        let (token, id) = sign_in(&name).await?;
        let own_room = make_room(&format!("bench of {name}"), &token, &[]).await?;
        people.push(Person { token, own_room });
        if number > 0 {
            others.push(id);
        }
    }
    let room = make_room("bench", &admin, &others).await?;
    Ok(Kind::Hub { people, room })
}
