//! `parlor join CODE`: gives a one-time code for a key, which a gateway then signs in with.

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
    /// The code that the hub shows, such as BCDF-GHJK-MNPQ
    code: String,
    /// The hub, such as https://chat.example.org
    #[arg(long, value_name = "URL", env = "PARLOR_SERVER")]
    server: String,
    /// A certificate to trust besides those that this system knows, in PEM
    #[arg(long, value_name = "FILE", env = "PARLOR_CA_FILE")]
    ca_file: Option<PathBuf>,
}

/// Which hub was joined, and with which key.
#[derive(Debug, Serialize, Deserialize)]
pub struct PairedHub {
    pub server: String,
    #[serde(with = "crate::secret::exposed")]
    pub key: Secret,
    /// Certificates that it is known by besides those of the system, in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

impl PairedHub {
    pub fn read(data: &Path) -> anyhow::Result<Option<Self>> {
        let path = data.join(FILE);
        match std::fs::read(&path) {
            Ok(bytes) => {
                let joined = serde_json::from_slice(&bytes);
                joined.map(Some).with_context(|| format!("{} is damaged: join again", path.display()))
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
    // Before the code is spent: what it gives can be had only once.
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let key = match pair(&server, &trust, arguments.code.trim(), &name).await {
        Ok(key) => Secret::new(key),
        Err(ConnectError::Wrong(why)) => bail!("the hub did not take this code: {why}"),
        Err(ConnectError::NotNow(why)) => bail!("{why}"),
    };
    let joined = PairedHub { server: server.to_string(), key, ca };
    replace(&directory.join(FILE), &serde_json::to_vec_pretty(&joined)?)
        .with_context(|| format!("cannot write below {}", directory.display()))?;
    let given = data.map(|data| format!(" --data {data}")).unwrap_or_default();
    let server = server.as_str().trim_end_matches('/');
    Ok(format!(
        "\n  Joined {server}.\n\n  Now host an agent:\n\n    parlor gateway --agent coder=claude:.{given}\n\n"
    ))
}
