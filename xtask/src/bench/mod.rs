//! Measures the hub against minimal reference servers.
//!
//! Owns: the scenarios, their number and order of rounds, and the thresholds. The result is the ratio between
//! hub and reference in the same run, because machines differ in speed and load.

mod ably;
mod chatmd;
mod chunks;
mod connect;
mod fake_hub;
mod fan_out;
mod frames;
mod idle;
mod lines;
mod nats;
mod options;
mod process;
mod publish;
mod receive;
mod reference;
mod report;
mod rest;
mod route;
mod search;
mod server;
mod sign_ins;
mod socket;
mod sqlite;
mod subscriptions;
mod timed;
mod words;

use anyhow::{Context, Result, bail};
use options::{Hub, Options};
use report::{Row, RowResult, Threshold};
use server::Server;
use std::sync::Arc;
use std::time::Duration;

/// Result of one measurement of one side.
struct Sample {
    /// Number in the unit of the scenario: a rate, KiB, MiB, MB or ms.
    value: f64,
    /// Additional numbers of the same measurement.
    extra: Vec<f64>,
    server_cpu_us: Option<f64>,
    /// Number of cores used by processes other than server and client; the higher, the less reliable the
    /// measurement.
    cores_of_others: Option<f64>,
}

enum Scenario {
    FanOut {
        subscribers: usize,
        bar: f64,
    },
    /// Fan-out as server-sent events.
    Events {
        readers: usize,
    },
    /// Fan-out to connections of the Ably protocol.
    Ably {
        subscribers: usize,
        format: ably::Format,
    },
    Publish {
        publishers: usize,
    },
    Idle {
        connections: usize,
    },
    Connect,
    /// Routing, compared with NATS with the same number of subscriptions.
    Route {
        senders: usize,
        subscriptions: usize,
        /// Messages in flight per sender.
        window: u64,
    },
    /// Routing with many subscriptions, compared with another hub with few of them.
    RouteLoss {
        senders: usize,
        subscriptions: usize,
        few: usize,
    },
    /// Receiving from a mailbox with a history, compared with another hub without one.
    Receive {
        history: usize,
    },
    /// Search in a long history, compared with another hub with a short one.
    Search {
        history: usize,
        small: usize,
    },
    /// Latency during sign-ins, compared with another hub without sign-ins.
    SignIns {
        attempts: usize,
    },
    Chunks {
        chunks: usize,
        viewers: usize,
    },
    Speakers {
        agents: usize,
        viewers: usize,
    },
    /// Memory of idle agents, compared with idle connections.
    IdleAgents {
        agents: usize,
    },
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Hub,
    Reference,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::Reference => "reference",
        }
    }
}

/// Returns whether a command is internal: only the benchmark runs it, in a separate process.
pub fn is_inner(command: &str) -> bool {
    command.starts_with("bench-")
}

pub fn inner(command: &str, arguments: &[String]) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match command {
        "bench-run" => runtime.block_on(run(&Options::parse(arguments)?)),
        "bench-chatmd" => chatmd::run(&Options::parse(arguments)?),
        "bench-reference" => runtime.block_on(reference::serve()),
        "bench-stand-in" => runtime.block_on(fake_hub::serve()),
        "bench-sqlite" => sqlite::serve(arguments),
        _ => bail!("there is no command `{command}`"),
    }
}

async fn run(options: &Options) -> Result<()> {
    let mut all = scenarios(options.small);
    // The fake hub supports only rooms.
    all.retain(|scenario| !scenario.needs_more_than_rooms() || !matches!(options.hub, Hub::StandIn));
    let scenarios = chosen(all, options.only.as_deref())?;
    std::fs::create_dir_all(&options.folder)
        .with_context(|| format!("creating the folder {}", options.folder.display()))?;
    let mut rows = Vec::new();
    let mut cores_of_others = Vec::new();
    let mut failures = Vec::new();
    for scenario in &scenarios {
        match measure_rounds(scenario, options).await {
            Ok((hub, reference)) => {
                rows.extend(scenario.rows(&hub, &reference));
                let samples = hub.iter().chain(&reference);
                cores_of_others.extend(samples.filter_map(|sample| sample.cores_of_others));
            }
            // A failed scenario does not prevent the others.
            Err(failure) => failures.push(format!("{} failed: {failure:#}", scenario.name())),
        }
    }
    let judged: Vec<RowResult> = report::judge(&rows);
    print!("\n{}", report::table(&judged));
    let others = report::median(&cores_of_others);
    if others.is_finite() {
        println!("Other processes used {others:.2} cores; above 0.2, only the CPU times are reliable.");
    }
    if let Some(file) = &options.json {
        let text = format!("{:#}\n", report::json(&judged, options.rounds, options.seconds, others));
        std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    if !failures.is_empty() {
        bail!("{}\nthe hub's log is in {}", failures.join("\n"), options.folder.display());
    }
    let _ = std::fs::remove_dir_all(&options.folder);
    if options.strict && judged.iter().any(|row| row.ok == Some(false)) {
        bail!("a threshold was missed");
    }
    Ok(())
}

/// Returns the scenario with that name, or else all scenarios whose names contain it.
fn chosen(mut scenarios: Vec<Scenario>, only: Option<&str>) -> Result<Vec<Scenario>> {
    let Some(only) = only else { return Ok(scenarios) };
    let exact = scenarios.iter().any(|scenario| scenario.name() == only);
    scenarios.retain(|scenario| scenario.name() == only || !exact && scenario.name().contains(only));
    if scenarios.is_empty() {
        bail!("no scenario has `{only}` in its name");
    }
    Ok(scenarios)
}

fn scenarios(small: bool) -> Vec<Scenario> {
    let size = |full: usize, few: usize| if small { few } else { full };
    vec![
        Scenario::FanOut { subscribers: size(100, 4), bar: 0.5 },
        Scenario::FanOut { subscribers: size(1_000, 10), bar: 0.7 },
        Scenario::Events { readers: size(1_000, 10) },
        Scenario::Ably { subscribers: size(1_000, 10), format: ably::Format::Json },
        Scenario::Ably { subscribers: size(1_000, 10), format: ably::Format::Msgpack },
        Scenario::Publish { publishers: size(64, 3) },
        Scenario::Idle { connections: size(5_000, 20) },
        Scenario::Connect,
        Scenario::Route { senders: size(64, 3), subscriptions: 100, window: 1 },
        Scenario::Route { senders: size(64, 3), subscriptions: size(10_000, 200), window: 1 },
        Scenario::Route { senders: size(64, 3), subscriptions: size(100_000, 400), window: 1 },
        Scenario::Route { senders: size(64, 3), subscriptions: 100, window: route::WINDOW },
        Scenario::RouteLoss { senders: size(64, 3), subscriptions: size(100_000, 400), few: 100 },
        Scenario::Receive { history: size(1_000_000, 1_000) },
        Scenario::Search { history: size(1_000_000, 3_000), small: 1_000 },
        Scenario::SignIns { attempts: size(1_000, 20) },
        Scenario::Chunks { chunks: size(20_000, 200), viewers: size(100, 4) },
        Scenario::Speakers { agents: size(50, 3), viewers: size(10, 2) },
        Scenario::IdleAgents { agents: size(1_000, 20) },
    ]
}

/// Every round measures both sides directly after each other; the order alternates between rounds.
async fn measure_rounds(scenario: &Scenario, options: &Options) -> Result<(Vec<Sample>, Vec<Sample>)> {
    let mut hub = Vec::new();
    let mut reference = Vec::new();
    let mut pair = start_pair(scenario, options).await?;
    for round in 0..options.rounds {
        eprintln!("{}: round {} of {}", scenario.name(), round + 1, options.rounds);
        if matches!(scenario, Scenario::Idle { .. } | Scenario::IdleAgents { .. }) && round > 0 {
            // A process that had the connections of the last round would reuse their memory.
            drop(pair);
            pair = start_pair(scenario, options).await?;
        }
        let order = if round % 2 == 0 { [Side::Hub, Side::Reference] } else { [Side::Reference, Side::Hub] };
        for side in order {
            for server in [&pair.0, &pair.1] {
                server.process.becomes_quiet().await?;
            }
            let sample = measure(scenario, side, &pair, options)
                .await
                .with_context(|| format!("measuring the {}", side.name()))?;
            match side {
                Side::Hub => hub.push(sample),
                Side::Reference => reference.push(sample),
            }
        }
    }
    Ok((hub, reference))
}

type Pair = (Arc<Server>, Arc<Server>);

async fn start_pair(scenario: &Scenario, options: &Options) -> Result<Pair> {
    let people = match scenario {
        Scenario::Idle { .. } | Scenario::Connect | Scenario::Receive { .. } => 1,
        _ => 8,
    };
    if let Scenario::Search { history, small } = scenario {
        let hub = search::start(options, "hub", *history).await.context("starting the hub")?;
        let other = search::start(options, "other", *small).await.context("starting the other hub")?;
        return Ok((Arc::new(hub), Arc::new(other)));
    }
    let hub = Arc::new(Server::start_hub(options, "hub", people).await.context("starting the hub")?);
    let other = async || Server::start_hub(options, "other", people).await.context("starting the other hub");
    let reference = Arc::new(match scenario {
        Scenario::Route { subscriptions, .. } => {
            Server::start_nats(options, *subscriptions).await.context("starting NATS")?
        }
        Scenario::RouteLoss { .. } | Scenario::Receive { .. } | Scenario::SignIns { .. } => other().await?,
        _ => Server::start_reference().context("starting the reference")?,
    });
    match scenario {
        Scenario::Route { subscriptions, .. } => hub.subscribe(*subscriptions).await?,
        Scenario::RouteLoss { subscriptions, few, .. } => {
            hub.subscribe(*subscriptions).await?;
            reference.subscribe(*few).await?;
        }
        Scenario::Receive { history } => {
            receive::fill(&hub, *history).await.context("creating a history")?;
            receive::fill(&reference, 0).await?;
        }
        Scenario::Chunks { .. } => chunks::prepare(&hub, 1).await.context("creating an agent")?,
        Scenario::Speakers { agents, .. } => {
            chunks::prepare(&hub, *agents).await.context("creating agents")?;
        }
        _ => {}
    }
    Ok((hub, reference))
}

async fn measure(scenario: &Scenario, side: Side, pair: &Pair, options: &Options) -> Result<Sample> {
    let server = if side == Side::Hub { &pair.0 } else { &pair.1 };
    let length = Duration::from_secs_f64(options.seconds);
    match scenario {
        Scenario::FanOut { subscribers, .. }
        | Scenario::Events { readers: subscribers }
        | Scenario::Ably { subscribers, .. } => {
            let transport = match scenario {
                Scenario::Events { .. } => fan_out::Transport::Events,
                Scenario::Ably { format, .. } => fan_out::Transport::Ably(*format),
                _ => fan_out::Transport::Sockets,
            };
            let (sample, frame_bytes) = fan_out::measure(server, transport, *subscribers, length).await?;
            if side == Side::Hub {
                eprintln!("{}: a delivery has {frame_bytes} bytes at both servers", scenario.name());
                pair.1.send_frames_of(frame_bytes);
            }
            Ok(sample)
        }
        Scenario::Publish { publishers } if side == Side::Hub => {
            publish::measure(server, *publishers, length).await
        }
        Scenario::Publish { publishers } => {
            sqlite::measure(&options.folder.join("sqlite"), publishers * publish::WINDOW, length)
        }
        Scenario::Idle { connections } => idle::measure(server, *connections).await,
        Scenario::Connect => connect::measure(server, length).await,
        Scenario::Route { senders, window, .. } => route::measure(server, *senders, *window, length).await,
        Scenario::RouteLoss { senders, subscriptions, few } => {
            // Both hubs have stored about the same amount at this point.
            let more = pair.0.process.resident_kib()?.saturating_sub(pair.1.process.resident_kib()?);
            let each = more as f64 * 1024.0 / (subscriptions - few) as f64;
            let sample = route::measure(server, *senders, route::WINDOW, length).await?;
            let extra = (side == Side::Hub).then_some(each).into_iter().collect();
            Ok(Sample { extra, ..sample })
        }
        Scenario::Receive { .. } => receive::measure(server, length).await,
        Scenario::Search { .. } => search::measure(server, length).await,
        Scenario::SignIns { attempts } => {
            let attempts = if side == Side::Hub { *attempts } else { 0 };
            sign_ins::measure(server, attempts, length).await
        }
        Scenario::Chunks { chunks, viewers } => chunks::measure(server, *chunks, *viewers).await,
        Scenario::Speakers { agents, viewers } => {
            chunks::measure_many(server, *agents, *viewers, length).await
        }
        Scenario::IdleAgents { agents } if side == Side::Hub => chunks::measure_idle(server, *agents).await,
        Scenario::IdleAgents { agents } => idle::measure(server, *agents).await,
    }
}

impl Scenario {
    fn name(&self) -> String {
        match self {
            Self::FanOut { subscribers, .. } => format!("fan-out-{subscribers}"),
            Self::Events { .. } => "sse".into(),
            Self::Ably { format, .. } => format!("ably-{}", format.name()),
            Self::Publish { .. } => "publish".into(),
            Self::Idle { .. } => "idle".into(),
            Self::Connect => "connect".into(),
            Self::Route { subscriptions, window: 1, .. } => format!("route-{subscriptions}"),
            Self::Route { subscriptions, .. } => format!("route-{subscriptions}-flood"),
            Self::RouteLoss { .. } => "route-loss".into(),
            Self::Receive { .. } => "receive".into(),
            Self::Search { .. } => "search".into(),
            Self::SignIns { .. } => "sign-ins".into(),
            Self::Chunks { .. } => "chunks".into(),
            Self::Speakers { .. } => "speakers".into(),
            Self::IdleAgents { .. } => "idle-agents".into(),
        }
    }

    fn needs_more_than_rooms(&self) -> bool {
        use Scenario::*;
        matches!(
            self,
            Events { .. }
                | Ably { .. }
                | Route { .. }
                | RouteLoss { .. }
                | Receive { .. }
                | Search { .. }
                | SignIns { .. }
                | Chunks { .. }
                | Speakers { .. }
                | IdleAgents { .. }
        )
    }

    fn rows(&self, hub: &[Sample], reference: &[Sample]) -> Vec<Row> {
        let name = self.name();
        let value = |label: &str, bar: Threshold| {
            Row::new(format!("{name}: {label}"), bar, hub, reference, |sample| Some(sample.value))
        };
        let cpu = |label: &str, bar: Threshold| {
            Row::new(format!("{name}: {label}"), bar, hub, reference, |sample| sample.server_cpu_us)
        };
        let judged_extra = |index: usize, label: &str, bar: Threshold| {
            let number = |sample: &Sample| sample.extra.get(index).copied();
            Row::new(format!("{name}: {label}"), bar, hub, reference, number)
        };
        let extra = |index: usize, label: &str| judged_extra(index, label, Threshold::None);
        match self {
            Self::FanOut { bar, .. } => vec![
                value("deliveries/s", Threshold::RatioAtLeast { must: *bar, going_to: Some(1.0) }),
                cpu("server CPU µs each", Threshold::InsteadOfTheLast { ratio_at_most: 1.0 }),
            ],
            Self::Events { readers } => vec![
                value(
                    &format!("events/s to {readers} readers (reference: bare axum SSE)"),
                    Threshold::RatioAtLeast { must: 0.7, going_to: Some(1.0) },
                ),
                cpu("server CPU µs each", Threshold::None),
            ],
            Self::Ably { subscribers, .. } => vec![
                value(
                    &format!(
                        "deliveries/s to {subscribers} attached connections (reference: bare broadcast)"
                    ),
                    Threshold::RatioAtLeast { must: 0.6, going_to: Some(1.0) },
                ),
                cpu("server CPU µs each", Threshold::None),
            ],
            Self::Publish { .. } => vec![
                value(
                    "acknowledged/s (reference: bare SQLite)",
                    Threshold::RatioAtLeast { must: 0.6, going_to: None },
                ),
                cpu("server CPU µs each", Threshold::None),
            ],
            Self::Idle { .. } => {
                vec![value("KiB each connection", Threshold::ValueAtMost { must: 12.0, going_to: 6.0 })]
            }
            Self::Connect => vec![
                value(
                    "authenticated connects/s (reference: upgrades/s)",
                    Threshold::RatioAtLeast { must: 0.4, going_to: None },
                ),
                cpu("server CPU µs each", Threshold::None),
            ],
            Self::Route { window, .. } => vec![
                value(
                    &format!(
                        "routed, stored and pushed/s, {window} on the way from each (reference: NATS core, stores nothing)"
                    ),
                    match window {
                        1 => Threshold::RatioAtLeast { must: 0.3, going_to: Some(1.0) },
                        _ => Threshold::None,
                    },
                ),
                cpu("server CPU µs each", Threshold::None),
                extra(0, "load generator CPU µs each"),
            ],
            Self::RouteLoss { subscriptions, few, .. } => vec![
                value(
                    &format!("routed/s at {subscriptions} (reference: at {few})"),
                    Threshold::RatioAtLeast { must: 0.85, going_to: Some(1.0) },
                ),
                cpu("server CPU µs each", Threshold::None),
                extra(0, "bytes each subscription"),
            ],
            Self::Receive { history } => vec![
                value(
                    &format!("ms, median, after {history} messages (reference: after none)"),
                    Threshold::None,
                ),
                extra(0, "ms, 99 of 100 below"),
            ],
            Self::Search { history, small } => {
                let memory = format!("MiB of the hub at rest with {history} messages (reference: {small})");
                let mut rows = vec![value(&memory, Threshold::ValueAtMost { must: 40.0, going_to: 32.0 })];
                for (index, kind) in search::KINDS.iter().enumerate() {
                    rows.push(extra(2 * index, &format!("{kind}, ms, median")));
                    rows.push(extra(2 * index + 1, &format!("{kind}, ms, 99 of 100 below")));
                }
                rows
            }
            Self::SignIns { attempts } => vec![
                value(
                    &format!("ms, 99 of 100 messages below, during {attempts} sign-ins (reference: none)"),
                    Threshold::RatioAtMost { must: 2.0 },
                ),
                extra(0, "ms, median"),
            ],
            Self::Chunks { viewers, .. } => vec![
                value(
                    &format!("MB of text to {viewers} viewers for a second of server CPU"),
                    Threshold::RatioAtLeast { must: 0.8, going_to: None },
                ),
                judged_extra(
                    0,
                    "ms from chunk to viewer, 99 of 100 below",
                    Threshold::ValueAtMost { must: 60.0, going_to: 20.0 },
                ),
                extra(1, "ms, median"),
                extra(2, "chunks/s"),
            ],
            Self::Speakers { agents, .. } => vec![
                value(
                    &format!("ms from chunk to viewer, 99 of 100 below, {agents} agents, 100/s each"),
                    Threshold::None,
                ),
                extra(0, "ms, median"),
            ],
            Self::IdleAgents { agents } => {
                vec![value(&format!("KiB each of {agents} agents (reference: connections)"), Threshold::None)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_name_selects_one_scenario_and_a_part_selects_all_that_contain_it() {
        check(Some("fan-out-100"), &["fan-out-100"]);
        check(Some("fan-out"), &["fan-out-100", "fan-out-1000"]);
        check(Some("route-100"), &["route-100"]);
        let others = [
            "sse",
            "ably-json",
            "ably-msgpack",
            "publish",
            "idle",
            "connect",
            "route-100",
            "route-10000",
            "route-100000",
            "route-100-flood",
            "route-loss",
            "receive",
            "search",
            "sign-ins",
            "chunks",
            "speakers",
            "idle-agents",
        ];
        check(None, &[&["fan-out-100", "fan-out-1000"], &others[..]].concat());
        assert!(chosen(scenarios(false), Some("nothing")).is_err());
    }

    #[track_caller]
    fn check(only: Option<&str>, expected: &[&str]) {
        let chosen = chosen(scenarios(false), only).unwrap();
        assert_eq!(chosen.iter().map(Scenario::name).collect::<Vec<_>>(), expected);
    }
}
