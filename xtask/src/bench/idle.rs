//! Memory of a connection that is signed in and does nothing.

use super::Sample;
use super::server::Server;
use anyhow::{Context, Result, bail};
use std::fs;
use std::sync::Arc;

pub async fn measure(server: &Arc<Server>, connections: usize) -> Result<Sample> {
    has_descriptors_for(connections)?;
    // The first connection also pays for what is set up once.
    let first = server.visitor(0).await?;
    let before = server.process.resident_kib()?;
    let open = server.open_many(connections, |server, number| async move { server.visitor(number).await });
    let open = open.await.context("connecting")?;
    server.process.becomes_quiet().await?;
    let after = server.process.resident_kib()?;
    drop((first, open));
    let each = after.saturating_sub(before) as f64 / connections as f64;
    Ok(Sample { value: each, extra: Vec::new(), server_cpu_us: None, cores_of_others: None })
}

fn has_descriptors_for(connections: usize) -> Result<()> {
    let limits = fs::read_to_string("/proc/self/limits").context("reading the limits of this process")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft =
        line.and_then(|line| line.split_whitespace().next()).context("no limit of open files named")?;
    // Besides the connections: standard streams, the runtime's own, the store's files.
    let needed = connections + 100;
    if soft.parse::<usize>().is_ok_and(|allowed| allowed < needed) {
        bail!(
            "{connections} connections need {needed} open files, the limit is {soft}: raise it (`ulimit -n`)"
        );
    }
    Ok(())
}
