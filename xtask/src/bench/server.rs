//! The two servers of a measurement, and the client operations for each: the hub through `/ws/client` or
//! `/ws/broker`, the reference with a minimal equivalent.

use super::ably::{self, Format};
use super::frames::{self, FrameCounter};
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
use tokio::sync::OnceCell;

/// Length of a published text: a long sentence, like typical messages.
pub const TEXT_BYTES: usize = 140;
/// Number of different texts, which are published in rotation.
pub const TEXTS: usize = 64;
/// Marker of a delivery frame; the references send it too.
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
        /// Key for Ably clients, created with the first of them.
        ably_key: OnceCell<String>,
    },
    Reference {
        /// Payload length of a delivery, as last measured at the hub.
        frame_bytes: AtomicUsize,
    },
    Nats {
        /// Connection that holds the many subscriptions.
        _subscriptions: nats::Client,
    },
}

/// A user with access to the common room and to a room of their own.
struct Person {
    token: String,
    own_room: String,
}

impl Server {
    pub fn start_reference() -> Result<Self> {
        let process = Process::start(Command::new(std::env::current_exe()?).arg("bench-reference"))?;
        Ok(Self { process, kind: Kind::Reference { frame_bytes: AtomicUsize::new(512) } })
    }

    /// Starts NATS with this number of subscriptions that no message matches.
    pub async fn start_nats(options: &Options, subscriptions: usize) -> Result<Self> {
        let process = nats::start(&options.folder)?;
        let mut client = nats::Client::connect(process.address, false).await?;
        client.subscribe(patterns(subscriptions).map(|pattern| nats::subject(&pattern))).await?;
        Ok(Self { process, kind: Kind::Nats { _subscriptions: client } })
    }

    /// Starts the hub with an empty store and creates the users; the first user is its admin.
    pub async fn start_hub(options: &Options, name: &str, people: usize) -> Result<Self> {
        let data = options.folder.join(name);
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        let process = Self::launch_hub(options, name)?;
        let kind = create_users_and_rooms(&process, people).await.context("creating users and rooms")?;
        Ok(Self { process, kind })
    }

    /// Restarts the hub on the same data, so that its memory contains no leftovers of earlier work.
    pub fn restart(self, options: &Options, name: &str) -> Result<Self> {
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
            // Settings in the environment of the benchmark must not affect the hub.
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
        Process::start(&mut command).with_context(|| format!("its error output is in {}", log.display()))
    }

    /// Sets the payload length of the reference's deliveries to that of the hub.
    pub fn send_frames_of(&self, bytes: usize) {
        if let Kind::Reference { frame_bytes } = &self.kind {
            frame_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// Opens an authenticated connection; at the reference, a connection after one echo.
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

    /// Opens a connection that receives all messages of the common room.
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

    /// Opens an Ably connection; at the reference, one that may publish.
    pub async fn ably_publisher(&self, number: usize, format: Format) -> Result<Socket> {
        let Kind::Hub { people, ably_key, .. } = &self.kind else { return self.publisher(number).await };
        let create = async || {
            let body = json!({"name": "bench", "scopes": [], "capability": r#"{"*":["*"]}"#});
            let token = Some(&*people[0].token);
            let answer = rest::post(self.process.address, "/api/keys", token, &body).await?;
            Ok::<_, anyhow::Error>(answer["key"].as_str().context("no `key` in the answer")?.to_owned())
        };
        let key = ably_key.get_or_try_init(create).await?;
        let key = key.replace(':', "%3A");
        let path = format!("/?key={key}&format={}&v=6&heartbeats=false", format.name());
        let mut socket = Socket::open(self.process.address, &path).await?;
        socket.expect_bytes(format.connected()).await?;
        Ok(socket)
    }

    /// Opens an Ably connection that receives all messages of the measured channel.
    pub async fn ably_subscriber(&self, number: usize, format: Format) -> Result<Socket> {
        let Kind::Hub { .. } = &self.kind else { return self.subscriber(number).await };
        let mut socket = self.ably_publisher(number, format).await?;
        let mut attach = Vec::new();
        format.push_attach(&mut attach);
        socket.send_frames(&attach).await?;
        socket.expect_bytes(format.attached()).await?;
        Ok(socket)
    }

    /// Returns the marker of a delivery to an Ably connection.
    pub fn ably_marker(&self, format: Format) -> &'static str {
        match &self.kind {
            Kind::Hub { .. } => format.message(),
            Kind::Reference { .. } | Kind::Nats { .. } => DELIVERY,
        }
    }

    /// Returns the messages of publishers over Ably.
    pub fn ably_publications(&self, format: Format) -> Publications {
        match &self.kind {
            Kind::Hub { .. } => Publications::Ably { format, texts: words::texts(TEXTS, TEXT_BYTES) },
            Kind::Reference { .. } | Kind::Nats { .. } => Publications::encoded(&self.publications()),
        }
    }

    /// Opens a connection that reads live events.
    pub async fn event_reader(&self, number: usize) -> Result<Socket> {
        match &self.kind {
            Kind::Hub { people, .. } => {
                let token = &people[number % people.len()].token;
                let mut socket = Socket::get(self.process.address, "/api/events", Some(token)).await?;
                // The hub sends the position once the stream is live.
                socket.read_to(b"\nid: ").await?;
                Ok(socket)
            }
            Kind::Reference { .. } | Kind::Nats { .. } => {
                Socket::get(self.process.address, "/events", None).await
            }
        }
    }

    /// Returns the prefix of the data line of an event that delivers a message.
    pub fn event_marker(&self) -> &'static str {
        match &self.kind {
            Kind::Hub { .. } => r#"data: {"id":"msg-"#,
            Kind::Reference { .. } | Kind::Nats { .. } => r#"data: {"type":"server:new_message""#,
        }
    }

    /// Opens a broker connection of a user; the first user may send as any source.
    pub async fn broker(&self, number: usize) -> Result<Socket> {
        let Kind::Hub { people, .. } = &self.kind else { bail!("only the hub is a broker") };
        let mut socket = Socket::open(self.process.address, "/ws/broker").await?;
        let token = &people[number % people.len()].token;
        socket.send(&json!({"type": "auth", "token": token}).to_string()).await?;
        socket.expect(&["auth.ok"]).await?;
        Ok(socket)
    }

    /// Opens a gateway connection of a user.
    pub async fn host(&self, number: usize, id: &str) -> Result<Socket> {
        let Kind::Hub { people, .. } = &self.kind else { bail!("only the hub has gateways") };
        let mut socket = Socket::open(self.process.address, "/ws/gateway").await?;
        let device = json!({"hostname": "bench", "platform": "linux", "arch": "x64", "nodeVersion": "v22"});
        let auth = json!({"type": "gateway:auth", "token": people[number % people.len()].token, "gatewayId": id, "deviceInfo": device});
        socket.send(&auth.to_string()).await?;
        socket.expect(&["server:gateway_auth_result", "\"ok\":true"]).await?;
        Ok(socket)
    }

    /// Adds an agent to the common room.
    pub async fn add_agent(&self, id: &str) -> Result<()> {
        let (room, token) = self.common_room()?;
        let member = json!({"memberId": id, "memberType": "agent"});
        let path = format!("/api/rooms/{room}/members");
        rest::post(self.process.address, &path, Some(token), &member).await.map(|_| ())
    }

    /// Creates agents of all users with this number of subscriptions that no message matches, and the
    /// listening agents.
    pub async fn subscribe(&self, subscriptions: usize) -> Result<()> {
        let Kind::Hub { people, .. } = &self.kind else { bail!("only the hub has agents") };
        let patterns: Vec<String> = patterns(subscriptions).collect();
        let agents: Vec<_> = patterns.chunks(100).enumerate().collect();
        let by_user = agents.chunks(agents.len().div_ceil(people.len()).max(1)).enumerate();
        let creating = by_user.map(async |(person, agents)| {
            let mut socket = self.broker(person).await?;
            for (number, patterns) in agents {
                make_agent(&mut socket, &format!("crowd-{number}"), patterns).await?;
            }
            anyhow::Ok(())
        });
        futures_util::future::try_join_all(creating).await?;
        let mut socket = self.broker(0).await?;
        for number in 0..LISTENERS {
            make_agent(&mut socket, &format!("listener-{number}"), &[channel(number)]).await?;
        }
        Ok(())
    }

    /// Opens a connection that receives all messages of one channel.
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

    /// Opens a connection that may send to every channel.
    pub async fn route_sender(&self) -> Result<Wire> {
        if let Kind::Nats { .. } = &self.kind {
            let nats::Client { stream, counter } = nats::Client::connect(self.process.address, true).await?;
            return Ok(Wire { stream, counter: Counter::Nats { counter, sends: true } });
        }
        Ok(counted(self.broker(0).await?, "msg.route.ok"))
    }

    /// Opens many connections, 32 at a time.
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

    /// Opens a connection that can publish to the common room without subscribing to it.
    pub async fn publisher(&self, number: usize) -> Result<Socket> {
        match &self.kind {
            Kind::Hub { .. } => self.visitor(number).await,
            Kind::Reference { .. } | Kind::Nats { .. } => {
                Socket::open(self.process.address, "/broadcast").await
            }
        }
    }

    /// Returns the frames with which a publisher posts messages to the common room.
    pub fn publications(&self) -> Vec<String> {
        match &self.kind {
            Kind::Hub { room, .. } => words::texts(TEXTS, TEXT_BYTES)
                .into_iter()
                // Formatted by hand: the type comes first, like in real clients, and texts need no escaping.
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

    /// Returns the common room and the token of its owner. Only the hub has rooms.
    pub fn common_room(&self) -> Result<(&str, &str)> {
        match &self.kind {
            Kind::Hub { people, room, .. } => Ok((room, &people[0].token)),
            Kind::Reference { .. } | Kind::Nats { .. } => bail!("the reference has no rooms"),
        }
    }

    /// Returns the private room of user `number`. Only the hub has rooms.
    pub fn own_room(&self, number: usize) -> Result<&str> {
        match &self.kind {
            Kind::Hub { people, .. } => Ok(&people[number % people.len()].own_room),
            Kind::Reference { .. } | Kind::Nats { .. } => bail!("the reference has no rooms"),
        }
    }
}

/// Frames of the publishers.
pub enum Publications {
    /// Encoded frames, sent in rotation.
    Frames(Vec<Vec<u8>>),
    /// Texts, sent in rotation, each in a frame with its own serial.
    Ably { format: ably::Format, texts: Vec<String> },
}

impl Publications {
    pub fn encoded(texts: &[String]) -> Self {
        let encode = |text: &String| {
            let mut frame = Vec::new();
            frames::push_text(&mut frame, text.as_bytes());
            frame
        };
        Self::Frames(texts.iter().map(encode).collect())
    }

    /// Appends the frame of the message with this number.
    pub fn push(&self, out: &mut Vec<u8>, number: u64) {
        match self {
            Self::Frames(frames) => out.extend_from_slice(&frames[(number % frames.len() as u64) as usize]),
            Self::Ably { format, texts } => {
                format.push_message(out, number, &texts[(number % texts.len() as u64) as usize]);
            }
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

async fn create_users_and_rooms(process: &Process, count: usize) -> Result<Kind> {
    let address = process.address;
    let sign_in = async |name: &str| -> Result<(String, String)> {
        let credentials = json!({"username": name, "password": PASSWORD});
        let answer = rest::post(address, "/api/auth/login", None, &credentials).await?;
        let token = answer["accessToken"].as_str().context("no `accessToken` in the answer to a login")?;
        let id = answer["user"]["id"].as_str().context("no `user.id` in the answer to a login")?;
        Ok((token.to_string(), id.to_string()))
    };
    let make_room = async |name: &str, token: &str, members: &[String]| -> Result<String> {
        let request = json!({"name": name, "memberIds": members});
        let answer = rest::post(address, "/api/rooms", Some(token), &request).await?;
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
    Ok(Kind::Hub { people, room, ably_key: OnceCell::new() })
}
