//! Implements `parlor join CODE`: exchanges a one-time pairing code for an API key and stores it for the
//! gateway.

use super::gateway::{address, certificates, directory, trust};
use crate::secret::Secret;
use anyhow::{Context, bail};
use clap::Args;
use parlor_agents::gateway::sign_in::{ConnectError, pair};
use parlor_agents::gateway::store::replace;
use serde::{Deserialize, Serialize};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const FILE: &str = "joined.json";

#[derive(Debug, Args)]
pub struct JoinArguments {
    /// Pairing code that the hub shows, such as BCDF-GHJK-MNPQ
    code: String,
    /// URL of the hub, such as https://chat.example.org
    #[arg(long, value_name = "URL", env = "PARLOR_SERVER")]
    server: String,
    /// Additional certificate to trust, in PEM format
    #[arg(long, value_name = "FILE", env = "PARLOR_CA_FILE")]
    ca_file: Option<PathBuf>,
}

/// The paired hub and the API key for it, as stored in the gateway's data directory.
#[derive(Debug, Serialize, Deserialize)]
pub struct PairedHub {
    pub server: String,
    #[serde(with = "crate::secret::exposed")]
    pub key: Secret,
    /// Additional certificates to trust for this hub, in PEM format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

impl PairedHub {
    pub fn read(data: &Path) -> anyhow::Result<Option<Self>> {
        let path = data.join(FILE);
        match std::fs::read(&path) {
            Ok(bytes) => {
                let paired = serde_json::from_slice(&bytes);
                paired
                    .map(Some)
                    .with_context(|| format!("{} is damaged: run parlor join again", path.display()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }
}

pub async fn run(arguments: &JoinArguments, data: Option<&str>) -> anyhow::Result<String> {
    let directory = directory(data)?;
    let server = address(&arguments.server)?;
    let ca = arguments.ca_file.as_deref().map(certificates).transpose()?;
    let trust = trust(ca.as_deref())?;
    // Create the directory first: the code works only once, so the key must not be lost to a failed write.
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let key = match pair(&server, &trust, arguments.code.trim(), &name).await {
        Ok(key) => Secret::new(key),
        Err(ConnectError::Wrong(why)) => bail!("the hub rejected the pairing code: {why}"),
        Err(ConnectError::NotNow(why)) => bail!("{why}"),
    };
    let paired = PairedHub { server: server.to_string(), key, ca };
    replace(&directory.join(FILE), &serde_json::to_vec_pretty(&paired)?)
        .with_context(|| format!("cannot write to {}", directory.display()))?;
    let data_flag = data.map(|data| format!(" --data {data}")).unwrap_or_default();
    let server = server.as_str().trim_end_matches('/');
    Ok(format!(
        "\n  Paired with {server}.\n\n  To host an agent, run:\n\n    parlor gateway --agent coder=claude:.{data_flag}\n\n"
    ))
}
