//! How long it takes to find something in a long history, and to read a page of it; and what the hub holds in
//! memory with such a history at rest.

use super::Sample;
use super::options::Options;
use super::receive::send;
use super::rest;
use super::server::Server;
use super::words::WORDS;
use anyhow::{Context, Result, bail};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// What is asked for, each for its share of the time.
pub const KINDS: [&str; 5] = ["a rare word", "a common word", "a phrase", "a beginning", "a page of history"];

/// Few: each hears what all of them say.
const SENDERS: usize = 4;
/// As many words as people use in a chat; a few of them most of the time.
const VOCABULARY: f64 = 20_000.0;

/// A hub in whose common room so much was said, started anew since and at rest.
pub async fn start(options: &Options, name: &str, history: usize) -> Result<Server> {
    let server = Server::start_hub(options, name, 8).await?;
    let (room, _) = server.common_room()?;
    let mut sending = JoinSet::new();
    for sender in 0..SENDERS {
        let count = history / SENDERS + usize::from(sender < history % SENDERS);
        let (room, mut dice) = (room.to_owned(), Dice::new(sender as u64 + 1));
        // Written by hand: texts and ids need no escaping.
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
    // The index follows when nothing else is to be done.
    while server.process.becomes_quiet().await.is_err() {}
    let server = server.start_again(options, name)?;
    server.process.becomes_quiet().await?;
    Ok(server)
}

/// MiB at rest; beside it, for each kind, the median and what 99 of 100 stay below, in ms.
pub async fn measure(server: &Server, length: Duration) -> Result<Sample> {
    let resident = server.process.resident_kib()? as f64 / 1024.0;
    let (room, token) = server.common_room()?;
    let mut dice = Dice::new(7);
    let mut beside = Vec::new();
    for kind in KINDS {
        let mut took = Vec::new();
        let started = Instant::now();
        while took.len() < 10 || started.elapsed() < length / KINDS.len() as u32 {
            let path = match kind {
                "a rare word" => asked(&word((VOCABULARY * 0.9) as usize + dice.below(1_000))),
                "a common word" => asked(&format!("\"{}\"", WORDS[dice.below(20)])),
                "a phrase" => asked(&format!("\"{} {}\"", WORDS[dice.below(20)], WORDS[dice.below(20)])),
                "a beginning" => asked(&word(WORDS.len() + dice.below(2_000))[..3]),
                _ => format!("/api/messages/rooms/{room}?limit=50"),
            };
            let began = Instant::now();
            let answer = rest::get(server.process.address, &path, token).await?;
            took.push(began.elapsed().as_secs_f64() * 1e3);
            if kind == "a common word" && answer["data"].as_array().is_none_or(Vec::is_empty) {
                bail!("nothing was found by {path}: {answer}");
            }
        }
        took.sort_by(f64::total_cmp);
        let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
        beside.extend([at(0.5), at(0.99)]);
    }
    Ok(Sample { value: resident, extra: beside, server_cpu_us: None, cores_of_others: None })
}

fn asked(text: &str) -> String {
    format!("/api/messages/search?q={}", text.replace(' ', "+").replace('"', "%22"))
}

fn sentence(dice: &mut Dice) -> String {
    let words = (0..8 + dice.below(24)).map(|_| word(VOCABULARY.powf(dice.share()) as usize - 1));
    words.collect::<Vec<_>>().join(" ")
}

/// The word of this rank: plain English first, then made of syllables.
fn word(rank: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "den", "ki", "lo", "mer", "na", "po", "qui", "ro", "sta", "tel", "un", "ver", "wo", "xi", "zan",
    ];
    match WORDS.get(rank) {
        Some(word) => (*word).into(),
        None => (0..4).map(|place| SYLLABLES[rank >> (4 * place) & 15]).collect(),
    }
}

/// xorshift64: repeatable, and good enough to choose words.
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
