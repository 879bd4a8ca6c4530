//! NATS as the reference for routing: starts its server, and implements the part of its protocol that the
//! load generator needs.

use super::process::Process;
use super::socket::RESPONSE_TIMEOUT;
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Starts the server on a free port with default settings, except for a longer ping interval.
pub fn start(folder: &Path) -> Result<Process> {
    let settings = folder.join("nats.conf");
    std::fs::write(&settings, "listen: \"127.0.0.1:-1\"\nping_interval: \"1h\"\n")?;
    // The log contains the address, so it is redirected to stdout. Debian installs the program in /usr/sbin.
    let mut command = Command::new("sh");
    command.args(["-c", r#"PATH="$PATH:/usr/sbin" exec nats-server -c "$0" 2>&1"#]).arg(&settings);
    Process::start(&mut command)
        .context("cannot start nats-server; is the Debian package nats-server installed?")
}

/// Returns the NATS subject for a path or pattern. A trailing `**` becomes `>`; an inner `**`, which NATS
/// does not support, becomes `*`.
pub fn subject(path: &str) -> String {
    let mut subject = path.replace("/**/", "/*/").replace('/', ".");
    if subject.ends_with("**") {
        subject.truncate(subject.len() - 2);
        subject.push('>');
    }
    subject
}

pub struct Client {
    pub stream: TcpStream,
    pub counter: Counter,
}

impl Client {
    /// Connects. With `verbose`, the server acknowledges each published message.
    pub async fn connect(address: SocketAddr, verbose: bool) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        let mut client = Self { stream, counter: Counter::default() };
        client.send_and_wait(&format!("CONNECT {{\"verbose\":{verbose}}}\r\n")).await?;
        client.counter.acknowledged = 0;
        Ok(client)
    }

    pub async fn subscribe(&mut self, subjects: impl Iterator<Item = String>) -> Result<()> {
        let mut lines = String::new();
        for (number, subject) in subjects.enumerate() {
            write!(lines, "SUB {subject} {number}\r\n").expect("writing to a string cannot fail");
        }
        self.send_and_wait(&lines).await
    }

    /// Sends protocol lines and waits until the server has processed them.
    async fn send_and_wait(&mut self, lines: &str) -> Result<()> {
        let before = self.counter.pongs;
        self.stream.write_all(lines.as_bytes()).await?;
        self.stream.write_all(b"PING\r\n").await?;
        let mut buffer = vec![0; 8 * 1024];
        while self.counter.pongs == before {
            let read = timeout(RESPONSE_TIMEOUT, self.stream.read(&mut buffer)).await;
            match read.with_context(|| format!("no answer within {RESPONSE_TIMEOUT:?}"))?? {
                0 => bail!("NATS closed the connection; last error: {:?}", self.counter.error),
                read => self.counter.feed(&buffer[..read]),
            }
        }
        Ok(())
    }
}

/// Appends a `PUB` command with its payload.
pub fn push_message(out: &mut Vec<u8>, subject: &str, payload: &[u8]) {
    out.extend_from_slice(format!("PUB {subject} {}\r\n", payload.len()).as_bytes());
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
}

/// Parses the stream of the server and counts messages and acknowledgements, without storing payloads.
#[derive(Default)]
pub struct Counter {
    line: Vec<u8>,
    /// Remaining bytes of the current payload, including its line end.
    payload_left: usize,
    pub messages: u64,
    pub acknowledged: u64,
    pongs: u64,
    /// Last `-ERR` line.
    pub error: Option<String>,
}

impl Counter {
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.payload_left > 0 {
                let taken = bytes.len().min(self.payload_left);
                self.payload_left -= taken;
                self.messages += u64::from(self.payload_left == 0);
                bytes = &bytes[taken..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                self.line.extend_from_slice(bytes);
                return;
            };
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            self.end_of_line();
            self.line.clear();
        }
    }

    fn end_of_line(&mut self) {
        let line = self.line.trim_ascii_end();
        if line.starts_with(b"MSG ") {
            let length = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
            let length = std::str::from_utf8(length).ok().and_then(|length| length.parse::<usize>().ok());
            self.payload_left = length.unwrap_or_default() + 2;
        } else if line == b"+OK" {
            self.acknowledged += 1;
        } else if line == b"PONG" {
            self.pongs += 1;
        } else if line.starts_with(b"-ERR") {
            self.error = Some(String::from_utf8_lossy(line).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_acknowledgements_are_counted_for_any_chunk_size() {
        let stream = b"INFO {}\r\nPONG\r\nMSG a.b 1 5\r\n+OK\r\n\r\n+OK\r\nMSG a.b 1 0\r\n\r\nPING\r\n-ERR 'Stale'\r\nPONG\r\n";
        for piece in [1, 2, 3, 7, stream.len()] {
            let mut counter = Counter::default();
            stream.chunks(piece).for_each(|bytes| counter.feed(bytes));
            let counts = (counter.messages, counter.acknowledged, counter.pongs);
            assert_eq!(counts, (2, 1, 2), "in chunks of {piece}");
            assert_eq!(counter.error.as_deref(), Some("-ERR 'Stale'"));
        }
    }

    #[test]
    fn a_pattern_is_converted_to_the_nearest_subject() {
        check("slack/team/#general", "slack.team.#general");
        check("*/*/#topic", "*.*.#topic");
        check("email/inbox/**", "email.inbox.>");
        check("github/org/**/release", "github.org.*.release");
    }

    #[track_caller]
    fn check(pattern: &str, expected: &str) {
        assert_eq!(subject(pattern), expected);
    }
}
