//! Measures the hub against references that do nothing but the one thing measured.
//!
//! Owns: what is measured, how often, in which order, and the bars. What counts is the ratio between hub and
//! reference taken in the same run: machines differ and are busy with other things.

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

/// What one measurement of one side yields.
struct Sample {
    /// The number in the scenario's unit: a rate, KiB, or ms.
    value: f64,
    /// Further numbers of the same measurement.
    extra: Vec<f64>,
    server_cpu_us: Option<f64>,
    /// Cores that neither server nor client had: what was measured beside them is less to be trusted.
    cores_of_others: Option<f64>,
}

enum Scenario {
    FanOut {
        subscribers: usize,
        bar: f64,
    },
    /// The same as server-sent events.
    Events {
        readers: usize,
    },
    Publish {
        publishers: usize,
    },
    Idle {
        connections: usize,
    },
    Connect,
    /// Against NATS with as many subscriptions.
    Route {
        senders: usize,
        subscriptions: usize,
        /// Messages on the way for each sender.
        window: u64,
    },
    /// Against another hub with few of them.
    RouteLoss {
        senders: usize,
        subscriptions: usize,
        few: usize,
    },
    /// Against another hub without a history.
    Receive {
        history: usize,
    },
    /// Against another hub with a small one.
    Search {
        history: usize,
        small: usize,
    },
    /// Against another hub at which nobody signs in.
    SignIns {
        attempts: usize,
    },
    Chunks {
        pieces: usize,
        viewers: usize,
    },
    Speakers {
        agents: usize,
        viewers: usize,
    },
    /// Against connections of which each does as little.
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

/// True for the commands that only the benchmark calls, each of them in a process of its own.
pub fn is_inner(command: &str) -> bool {
    command.starts_with("bench-")
}

pub fn inner(command: &str, arguments: &[String]) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match command {
        "bench-run" => runtime.block_on(run(&Options::parse(arguments)?)),
        "bench-reference" => runtime.block_on(reference::serve()),
        "bench-stand-in" => runtime.block_on(fake_hub::serve()),
        "bench-sqlite" => sqlite::serve(arguments),
        _ => bail!("there is no command `{command}`"),
    }
}

async fn run(options: &Options) -> Result<()> {
    let mut all = scenarios(options.small);
    // The stand-in has rooms only.
    all.retain(|scenario| !scenario.needs_more_than_rooms() || !matches!(options.hub, Hub::StandIn));
    let scenarios = chosen(all, options.only.as_deref())?;
    std::fs::create_dir_all(&options.folder)
        .with_context(|| format!("making the folder {}", options.folder.display()))?;
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
            // The others are still worth measuring.
            Err(failure) => failures.push(format!("{} failed: {failure:#}", scenario.name())),
        }
    }
    let judged: Vec<RowResult> = report::judge(&rows);
    print!("\n{}", report::table(&judged));
    let others = report::median(&cores_of_others);
    if others.is_finite() {
        println!("Other processes had {others:.2} cores meanwhile; above 0.2, trust the CPU times only.");
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
        bail!("a bar was missed");
    }
    Ok(())
}

/// The scenario of that name, or else all whose names contain it.
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
        Scenario::Chunks { pieces: size(20_000, 200), viewers: size(100, 4) },
        Scenario::Speakers { agents: size(50, 3), viewers: size(10, 2) },
        Scenario::IdleAgents { agents: size(1_000, 20) },
    ]
}

/// Every round measures both sides, one directly after the other, and the next round begins with the other one.
async fn measure_rounds(scenario: &Scenario, options: &Options) -> Result<(Vec<Sample>, Vec<Sample>)> {
    let mut hub = Vec::new();
    let mut reference = Vec::new();
    let mut pair = start_pair(scenario, options).await?;
    for round in 0..options.rounds {
        eprintln!("{}: round {} of {}", scenario.name(), round + 1, options.rounds);
        if matches!(scenario, Scenario::Idle { .. } | Scenario::IdleAgents { .. }) && round > 0 {
            // A process that held the connections of the last round would reuse their memory.
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
            receive::fill(&hub, *history).await.context("making a history")?;
            receive::fill(&reference, 0).await?;
        }
        Scenario::Chunks { .. } => chunks::prepare(&hub, 1).await.context("making an agent")?,
        Scenario::Speakers { agents, .. } => {
            chunks::prepare(&hub, *agents).await.context("making agents")?;
        }
        _ => {}
    }
    Ok((hub, reference))
}

async fn measure(scenario: &Scenario, side: Side, pair: &Pair, options: &Options) -> Result<Sample> {
    let server = if side == Side::Hub { &pair.0 } else { &pair.1 };
    let length = Duration::from_secs_f64(options.seconds);
    match scenario {
        Scenario::FanOut { subscribers, .. } | Scenario::Events { readers: subscribers } => {
            let over = match scenario {
                Scenario::Events { .. } => fan_out::Transport::Events,
                _ => fan_out::Transport::Sockets,
            };
            let (sample, frame_bytes) = fan_out::measure(server, over, *subscribers, length).await?;
            if side == Side::Hub {
                eprintln!("{}: a delivery has {frame_bytes} bytes, at the reference too", scenario.name());
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
            // Both hubs have stored about as much by now.
            let more = pair.0.process.resident_kib()?.saturating_sub(pair.1.process.resident_kib()?);
            let each = more as f64 * 1024.0 / (subscriptions - few) as f64;
            let sample = route::measure(server, *senders, route::WINDOW, length).await?;
            let beside = (side == Side::Hub).then_some(each).into_iter().collect();
            Ok(Sample { extra: beside, ..sample })
        }
        Scenario::Receive { .. } => receive::measure(server, length).await,
        Scenario::Search { .. } => search::measure(server, length).await,
        Scenario::SignIns { attempts } => {
            let attempts = if side == Side::Hub { *attempts } else { 0 };
            sign_ins::measure(server, attempts, length).await
        }
        Scenario::Chunks { pieces, viewers } => chunks::measure(server, *pieces, *viewers).await,
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
        let judged_beside = |place: usize, label: &str, bar: Threshold| {
            let number = |sample: &Sample| sample.extra.get(place).copied();
            Row::new(format!("{name}: {label}"), bar, hub, reference, number)
        };
        let beside = |place: usize, label: &str| judged_beside(place, label, Threshold::None);
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
                beside(0, "load generator CPU µs each"),
            ],
            Self::RouteLoss { subscriptions, few, .. } => vec![
                value(
                    &format!("routed/s at {subscriptions} (reference: at {few})"),
                    Threshold::RatioAtLeast { must: 0.85, going_to: Some(1.0) },
                ),
                cpu("server CPU µs each", Threshold::None),
                beside(0, "bytes each subscription"),
            ],
            Self::Receive { history } => vec![
                value(
                    &format!("ms, median, after {history} messages (reference: after none)"),
                    Threshold::None,
                ),
                beside(0, "ms, 99 of 100 below"),
            ],
            Self::Search { history, small } => {
                let memory = format!("MiB of the hub at rest with {history} messages (reference: {small})");
                let mut rows = vec![value(&memory, Threshold::ValueAtMost { must: 40.0, going_to: 32.0 })];
                for (place, kind) in search::KINDS.iter().enumerate() {
                    rows.push(beside(2 * place, &format!("{kind}, ms, median")));
                    rows.push(beside(2 * place + 1, &format!("{kind}, ms, 99 of 100 below")));
                }
                rows
            }
            Self::SignIns { attempts } => vec![
                value(
                    &format!("ms, 99 of 100 messages below, during {attempts} sign-ins (reference: none)"),
                    Threshold::RatioAtMost { must: 2.0 },
                ),
                beside(0, "ms, median"),
            ],
            Self::Chunks { viewers, .. } => vec![
                value(
                    &format!("MB of text to {viewers} viewers for a second of server CPU"),
                    Threshold::RatioAtLeast { must: 0.8, going_to: None },
                ),
                judged_beside(
                    0,
                    "ms from chunk to viewer, 99 of 100 below",
                    Threshold::ValueAtMost { must: 60.0, going_to: 20.0 },
                ),
                beside(1, "ms, median"),
                beside(2, "chunks/s"),
            ],
            Self::Speakers { agents, .. } => vec![
                value(
                    &format!("ms from chunk to viewer, 99 of 100 below, {agents} agents, 100/s each"),
                    Threshold::None,
                ),
                beside(0, "ms, median"),
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
    fn a_full_name_chooses_one_scenario_and_a_part_all_that_have_it() {
        check(Some("fan-out-100"), &["fan-out-100"]);
        check(Some("fan-out"), &["fan-out-100", "fan-out-1000"]);
        check(Some("route-100"), &["route-100"]);
        let others = [
            "sse",
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
