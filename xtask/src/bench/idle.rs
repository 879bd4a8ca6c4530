//! Measures the memory of an idle authenticated connection.

use super::Sample;
use super::server::Server;
use anyhow::{Context, Result, bail};
use std::fs;
use std::sync::Arc;

pub async fn measure(server: &Arc<Server>, connections: usize) -> Result<Sample> {
    check_open_file_limit(connections)?;
    // The first connection is not counted, because it also allocates shared state.
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

fn check_open_file_limit(connections: usize) -> Result<()> {
    let limits = fs::read_to_string("/proc/self/limits").context("reading the limits of this process")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line
        .and_then(|line| line.split_whitespace().next())
        .context("/proc/self/limits has no limit of open files")?;
    // 100 more than the connections, for standard streams, the runtime and the store.
    let needed = connections + 100;
    if soft.parse::<usize>().is_ok_and(|allowed| allowed < needed) {
        bail!(
            "{connections} connections need {needed} open files, the limit is {soft}: raise it (`ulimit -n`)"
        );
    }
    Ok(())
}
