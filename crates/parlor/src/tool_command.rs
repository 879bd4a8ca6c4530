//! Implements `parlor tool`: lists and calls the tools of an agent, from a program that works for it.
//!
//! Owns: the arguments, the token, and the output. The token is never an argument, because other users of the machine
//! could read it.

use crate::agents::gateway::{address, api_key, certificates, trust};
use crate::secret::Secret;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use futures_util::{SinkExt, StreamExt};
use parlor_agents::gateway::connect::{Socket, open};
use parlor_agents::gateway::sign_in::ConnectError;
use parlor_chatmd::bridge::client::websocket_config;
use parlor_model::Payload;
use parlor_wire::broker::client;
use parlor_wire::broker::tool_client::{self, ToolAnswer};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

/// Maximum time for the answer to the sign-in.
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum bytes of an input that is read from standard input. The hub accepts no larger frame.
const MAX_INPUT_BYTES: u64 = 1024 * 1024;

#[derive(Debug, Args)]
pub struct ToolArguments {
    #[command(subcommand)]
    command: ToolCommand,
    /// URL of the hub
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "PARLOR_URL",
        default_value = "http://127.0.0.1:7878"
    )]
    server: String,
    /// ID of the agent
    #[arg(long, global = true, value_name = "AGENT", env = "TOOL_AGENT_ID")]
    agent: Option<String>,
    /// ID of the session
    #[arg(long, global = true, value_name = "SESSION", env = "TOOL_SESSION_ID")]
    session: Option<String>,
    /// File with an API key with the scope agents; alternatively, set PARLOR_KEY to the key. A program of an agent has
    /// PARLOR_TOKEN and needs no key
    #[arg(long, global = true, value_name = "FILE", env = "PARLOR_KEY_FILE")]
    key_file: Option<PathBuf>,
    /// Additional certificate to trust, in PEM format
    #[arg(long, global = true, value_name = "FILE", env = "PARLOR_CA_FILE")]
    ca_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum ToolCommand {
    /// Print the agent's tools, one line of JSON each
    List,
    /// Call a tool and print its output as a line of JSON; exits with 1 if the call failed
    Call {
        /// Name of the tool
        name: String,
        /// Input of the tool; - reads it from standard input
        #[arg(long, value_name = "JSON", default_value = "{}")]
        input: String,
    },
}

/// Performs the command. Returns whether a call failed.
pub async fn run(arguments: ToolArguments) -> anyhow::Result<bool> {
    let Some(agent) = &arguments.agent else { bail!("there is no agent: use --agent or TOOL_AGENT_ID") };
    let request = match &arguments.command {
        ToolCommand::List => tool_client::list(agent),
        ToolCommand::Call { name, input } => {
            let input = Payload(read_input(input)?.into());
            let request = tool_client::execute(agent, arguments.session.as_deref(), name, &input);
            request.context("the input is not JSON")?
        }
    };
    if request.len() > client::MAX_REQUEST_BYTES {
        bail!("the input is larger than the hub accepts");
    }
    let server = address(&arguments.server)?;
    let certificates = arguments.ca_file.as_deref().map(certificates).transpose()?;
    let trust = trust(certificates.as_deref())?;
    let token = token(&arguments)?;
    let opened = open(&server, "ws/broker", &trust, websocket_config()).await;
    let mut socket = opened.map_err(|error| match error {
        ConnectError::Wrong(why) | ConnectError::NotNow(why) => anyhow::anyhow!(why),
    })?;
    let auth = client::auth(token.expose(), 1);
    match timeout(SIGN_IN_TIMEOUT, ask(&mut socket, auth)).await.context("the hub does not answer")?? {
        ToolAnswer::SignedIn => {}
        ToolAnswer::Refused(why) => bail!("the hub does not accept the token: {why}"),
        ToolAnswer::Tools(_) | ToolAnswer::Output { .. } => bail!("the hub sent an unexpected frame"),
    }
    let answer = ask(&mut socket, request).await?;
    let _ = socket.close(None).await;
    let (lines, failed) = match answer {
        ToolAnswer::Tools(tools) => (tools, false),
        ToolAnswer::Output { output, is_error } => (vec![output], is_error),
        ToolAnswer::Refused(why) => bail!("{why}"),
        ToolAnswer::SignedIn => bail!("the hub sent an unexpected frame"),
    };
    let text: String = lines.iter().map(|line| format!("{}\n", line.0)).collect();
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .context("cannot write to standard output")?;
    Ok(failed)
}

/// The token of a program that works for the agent, or the API key of its owner.
fn token(arguments: &ToolArguments) -> anyhow::Result<Secret> {
    if arguments.key_file.is_none()
        && let Some(token) = std::env::var("PARLOR_TOKEN").ok().filter(|token| !token.is_empty())
    {
        return Ok(Secret::new(token));
    }
    match api_key(arguments.key_file.as_deref())? {
        Some(key) => Ok(key),
        None => bail!(
            "there are no credentials for the hub: set PARLOR_TOKEN or PARLOR_KEY, or use --key-file FILE"
        ),
    }
}

fn read_input(given: &str) -> anyhow::Result<String> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    let mut stdin = std::io::stdin().lock().take(MAX_INPUT_BYTES + 1);
    stdin.read_to_string(&mut text).context("cannot read the input")?;
    Ok(text)
}

/// Sends a request and waits for the frame that ends it. The hub limits the time of a call.
async fn ask(socket: &mut Socket, request: String) -> anyhow::Result<ToolAnswer> {
    socket.send(Message::text(request)).await.context("the hub closed the connection")?;
    loop {
        let message = socket.next().await.context("the hub closed the connection")?;
        let message = message.context("the hub closed the connection")?;
        if let Message::Text(text) = message
            && let Some(answer) = tool_client::read(&text)
        {
            return Ok(answer);
        }
    }
}
