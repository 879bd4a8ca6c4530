//! The timed part of a measurement: rate, CPU time of the server, and CPU time of other processes.

use super::Sample;
use super::process::{Process, cpu_of};
use anyhow::{Context, Result};
use std::fs;
use std::time::{Duration, Instant};

/// Measures the rate at which `count` grows during `length`. The load must be running already.
pub async fn rate(process: &Process, length: Duration, count: impl Fn() -> u64) -> Result<Sample> {
    // Warm-up, which is not counted: buffers grow, and pages are touched for the first time.
    tokio::time::sleep(length / 5).await;
    let (before, started, counted) = (Cpu::now(process)?, Instant::now(), count());
    tokio::time::sleep(length).await;
    let (counted, took) = (count() - counted, started.elapsed().as_secs_f64());
    let after = Cpu::now(process)?;
    let server = (after.server - before.server).as_secs_f64();
    let own = (after.own - before.own).as_secs_f64();
    let all = after.all.saturating_sub(before.all).as_secs_f64();
    Ok(Sample {
        value: counted as f64 / took,
        // CPU time of the load generator, which shares the cores with the server.
        extra: vec![own * 1e6 / counted.max(1) as f64],
        server_cpu_us: Some(server * 1e6 / counted.max(1) as f64),
        cores_of_others: Some((all - server - own).max(0.0) / took),
    })
}

/// CPU times since the start of the server, of this process, and of the machine.
struct Cpu {
    server: Duration,
    own: Duration,
    all: Duration,
}

impl Cpu {
    fn now(process: &Process) -> Result<Self> {
        let all = busy_of(&fs::read_to_string("/proc/stat")?).context("/proc/stat has no CPU times")?;
        Ok(Self { server: process.cpu()?, own: own_cpu()?, all })
    }
}

pub fn own_cpu() -> Result<Duration> {
    cpu_of(&fs::read_to_string("/proc/self/stat")?).context("/proc/self/stat has no CPU times")
}

/// Returns the time that the cores were busy with any process, or stolen by the hypervisor.
fn busy_of(stat: &str) -> Option<Duration> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?;
    let hundredths: Vec<u64> = fields.split_whitespace().map_while(|field| field.parse().ok()).collect();
    // Interrupt time is not counted as load of other processes: the measured server and the load generator
    // cause a part of it.
    let [user, nice, system, _idle, _waiting, _hard, _soft, stolen, ..] = hundredths[..] else { return None };
    Some(Duration::from_millis((user + nice + system + stolen) * 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_contains_processes_and_stolen_time() {
        let stat = "cpu  100 20 30 9000 400 5 6 7 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(busy_of(stat), Some(Duration::from_millis(1570)));
        assert_eq!(busy_of("cpu 1 2\n"), None);
    }
}
