//! Implements `parlor chatmd append`.

use anyhow::{Context, bail, ensure};
use clap::Args;
use parlor_chatmd::follow::MAX_BODY_BYTES;
use parlor_chatmd::{Workplace, append};
use parlor_wire::chatmd::render::render;
use std::io::{self, Read};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct AppendArguments {
    /// Project directory that contains .workplace
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Name of the sender
    #[arg(long, value_name = "NAME")]
    from: String,
    /// Name of the recipient, or `all`
    #[arg(long, value_name = "NAME")]
    to: String,
    /// Names of observers, separated by commas (repeatable)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cc: Vec<String>,
    /// Text of the message; `-` reads it from standard input
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
}

pub fn run(arguments: &AppendArguments) -> anyhow::Result<String> {
    let workplace = Workplace::open(&arguments.directory)?;
    let text = match &*arguments.text {
        [dash] if dash == "-" => from_stdin(io::stdin().lock())?,
        words => words.join(" "),
    };
    ensure!(!text.trim().is_empty(), "the message has no text");
    let lines = render(&arguments.from, &arguments.to, &arguments.cc, &text)?;
    if lines.len() > MAX_BODY_BYTES {
        bail!("the message is too long: it has {} bytes, of at most {MAX_BODY_BYTES}", lines.len());
    }
    append(&workplace, lines.as_bytes(), false).context("cannot append the message")?;
    Ok(String::new())
}

fn from_stdin(input: impl Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    input.take(MAX_BODY_BYTES as u64 + 1).read_to_end(&mut bytes).context("cannot read the text")?;
    if bytes.len() > MAX_BODY_BYTES {
        bail!("the message is too long: it has more than {MAX_BODY_BYTES} bytes");
    }
    String::from_utf8(bytes).context("the text is not valid UTF-8")
}
