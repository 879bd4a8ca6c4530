//! `parlor join CODE`: gives a one-time code for a key, which a gateway then signs in with.

use super::gateway::{address, directory};
use crate::secret::Secret;
use anyhow::{Context, bail};
use clap::Args;
use parlor_agents::gateway::data::replace;
use parlor_agents::gateway::sign_in::pair;
use serde::{Deserialize, Serialize};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

const FILE: &str = "joined.json";

#[derive(Debug, Args)]
pub struct JoinArguments {
    /// The code that the hub shows, such as BCDF-GHJK-MNPQ
    code: String,
    /// The hub, such as https://chat.example.org
    #[arg(long, value_name = "URL", env = "PARLOR_SERVER")]
    server: String,
}

/// Which hub was joined, and with which key.
#[derive(Debug, Serialize, Deserialize)]
pub struct Joined {
    pub server: String,
    #[serde(with = "crate::secret::exposed")]
    pub key: Secret,
}

impl Joined {
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
    // Before the code is spent: what it gives can be had only once.
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let key = match pair(&server, arguments.code.trim(), &name).await {
        Ok(key) => Secret::new(key),
        Err(refused) => bail!("the hub did not take this code: {refused}"),
    };
    let joined = Joined { server: server.to_string(), key };
    replace(&directory.join(FILE), &serde_json::to_vec_pretty(&joined)?)
        .with_context(|| format!("cannot write below {}", directory.display()))?;
    let given = data.map(|data| format!(" --data {data}")).unwrap_or_default();
    let server = server.as_str().trim_end_matches('/');
    Ok(format!(
        "\n  Joined {server}.\n\n  Now host an agent:\n\n    parlor gateway --agent coder=claude:.{given}\n\n"
    ))
}
