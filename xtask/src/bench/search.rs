//! Measures the latency of searching and paging a long history, and the memory of an idle hub with that
//! history.

use super::Sample;
use super::options::Options;
use super::receive::send;
use super::rest;
use super::server::Server;
use super::words::WORDS;
use anyhow::{Context, Result, bail};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Kinds of requests; each is measured for an equal share of the time.
pub const KINDS: [&str; 5] = ["a rare word", "a common word", "a phrase", "a beginning", "a page of history"];

/// Number of senders. It is small, because each sender receives the messages of all.
const SENDERS: usize = 4;
/// Number of different words, similar to a real chat; a few of them occur most of the time.
const VOCABULARY: f64 = 20_000.0;

/// Starts a hub, fills its common room with `history` messages, restarts it, and waits until it is idle.
pub async fn start(options: &Options, name: &str, history: usize) -> Result<Server> {
    let server = Server::start_hub(options, name, 8).await?;
    let (room, _) = server.common_room()?;
    let mut sending = JoinSet::new();
    for sender in 0..SENDERS {
        let count = history / SENDERS + usize::from(sender < history % SENDERS);
        let (room, mut dice) = (room.to_owned(), Dice::new(sender as u64 + 1));
        // Formatted by hand, because texts and IDs need no escaping.
        let messages = (0..count).map(move |number| {
            let text = sentence(&mut dice);
            format!(
                r#"{{"type":"client:send_message","roomId":"{room}","content":"{text}","clientMessageId":"{sender}-{number}"}}"#
            )
        });
        sending.spawn(send(server.visitor(sender).await?, "server:message_ack", messages));
    }
    while let Some(ended) = sending.join_next().await {
        ended?.context("making a history")?;
    }
    // The search index is updated while the hub is idle.
    while server.process.becomes_quiet().await.is_err() {}
    let server = server.restart(options, name)?;
    server.process.becomes_quiet().await?;
    Ok(server)
}

/// Returns the memory of the idle hub in MiB; the extra numbers are median and 99th percentile of each kind,
/// in ms.
pub async fn measure(server: &Server, length: Duration) -> Result<Sample> {
    let resident = server.process.resident_kib()? as f64 / 1024.0;
    let (room, token) = server.common_room()?;
    let mut dice = Dice::new(7);
    let mut extra = Vec::new();
    for kind in KINDS {
        let mut took = Vec::new();
        let started = Instant::now();
        while took.len() < 10 || started.elapsed() < length / KINDS.len() as u32 {
            let path = match kind {
                "a rare word" => search_path(&word((VOCABULARY * 0.9) as usize + dice.below(1_000))),
                "a common word" => search_path(&format!("\"{}\"", WORDS[dice.below(20)])),
                "a phrase" => {
                    search_path(&format!("\"{} {}\"", WORDS[dice.below(20)], WORDS[dice.below(20)]))
                }
                "a beginning" => search_path(&word(WORDS.len() + dice.below(2_000))[..3]),
                _ => format!("/api/messages/rooms/{room}?limit=50"),
            };
            let sent = Instant::now();
            let answer = rest::get(server.process.address, &path, token).await?;
            took.push(sent.elapsed().as_secs_f64() * 1e3);
            if kind == "a common word" && answer["data"].as_array().is_none_or(Vec::is_empty) {
                bail!("{path} returned no result: {answer}");
            }
        }
        took.sort_by(f64::total_cmp);
        let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
        extra.extend([at(0.5), at(0.99)]);
    }
    Ok(Sample { value: resident, extra, server_cpu_us: None, cores_of_others: None })
}

fn search_path(text: &str) -> String {
    format!("/api/messages/search?q={}", text.replace(' ', "+").replace('"', "%22"))
}

fn sentence(dice: &mut Dice) -> String {
    let words = (0..8 + dice.below(24)).map(|_| word(VOCABULARY.powf(dice.share()) as usize - 1));
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the word of this rank: English words first, then words made of syllables.
fn word(rank: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "den", "ki", "lo", "mer", "na", "po", "qui", "ro", "sta", "tel", "un", "ver", "wo", "xi", "zan",
    ];
    match WORDS.get(rank) {
        Some(word) => (*word).into(),
        None => (0..4).map(|place| SYLLABLES[rank >> (4 * place) & 15]).collect(),
    }
}

/// xorshift64: deterministic, and sufficient to choose words.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn share(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, count: usize) -> usize {
        (self.share() * count as f64) as usize
    }
}
