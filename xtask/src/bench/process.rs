//! A measured server in a separate process, with its CPU time and memory from `/proc`.

use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

pub struct Process {
    child: Child,
    pub address: SocketAddr,
}

impl Process {
    /// Starts a server and waits for the line of output with its address.
    pub fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().display()))?;
        let output = child.stdout.take().expect("stdout is piped");
        let (found, address) = mpsc::channel();
        // The thread keeps reading after the address, because a full pipe would block the server.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some(address) = address_in(&line) {
                    let _ = found.send(address);
                }
            }
        });
        let address = address.recv_timeout(Duration::from_secs(30));
        let mut process = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        process.address =
            address.context("the server printed no address, or ended; see its messages above")?;
        Ok(process)
    }

    /// Returns the user and system time of all threads so far, including ended ones.
    pub fn cpu(&self) -> Result<Duration> {
        let stat = self.read("stat")?;
        cpu_of(&stat).with_context(|| format!("unexpected format: {stat}"))
    }

    pub fn resident_kib(&self) -> Result<u64> {
        let status = self.read("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let amount = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        amount.context("/proc has no resident size of the server")
    }

    /// Waits until the process is idle, so that remaining work of the last measurement, such as closing
    /// connections, is not counted in the next one.
    pub async fn becomes_quiet(&self) -> Result<()> {
        const POLL_INTERVAL: Duration = Duration::from_millis(100);
        for _ in 0..600 {
            let before = self.cpu()?;
            tokio::time::sleep(POLL_INTERVAL).await;
            if self.cpu()? - before <= POLL_INTERVAL / 10 {
                return Ok(());
            }
        }
        bail!("the server is still busy a minute after the last measurement")
    }

    fn read(&self, name: &str) -> Result<String> {
        let path = format!("/proc/{}/{name}", self.child.id());
        fs::read_to_string(&path).with_context(|| format!("reading {path}: the server ended?"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let named = line.split_once("http://").or_else(|| line.split_once("client connections on "));
    let (_, rest) = named?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

pub fn cpu_of(stat: &str) -> Option<Duration> {
    // The program name is in parentheses and may contain any character. User and system time are fields 14
    // and 15 of the line, in hundredths of a second on all Linux platforms.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_extracted_from_a_line_of_output() {
        check("http://127.0.0.1:7878", Some("127.0.0.1:7878"));
        check("Parlor is at http://127.0.0.1:40123/ now.", Some("127.0.0.1:40123"));
        check("[7] [INF] Listening for client connections on 127.0.0.1:41133", Some("127.0.0.1:41133"));
        check("data: /var/lib/parlor", None);
        check("see http://parlor.example/docs", None);
    }

    #[test]
    fn cpu_times_are_parsed_after_a_name_with_parentheses() {
        let stat = "7 (a) b) S 1 7 7 0 -1 0 1 2 3 4 150 25 0 0 20 0 3 0";
        assert_eq!(cpu_of(stat), Some(Duration::from_millis(1750)));
        assert_eq!(cpu_of("7 (a)"), None);
    }

    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        assert_eq!(address_in(line), expected.map(|address| address.parse().unwrap()));
    }
}
