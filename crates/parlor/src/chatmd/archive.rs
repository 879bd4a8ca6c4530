//! Implements `parlor chatmd archive`.

use anyhow::Context;
use clap::Args;
use parlor_chatmd::{Workplace, archive};
use parlor_model::Time;
use parlor_wire::chatmd::json::iso_date;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Args)]
pub struct ArchiveArguments {
    /// Project directory that contains .workplace
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub fn run(arguments: &ArchiveArguments) -> anyhow::Result<String> {
    let workplace = Workplace::open(&arguments.directory)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let date = iso_date(Time(now.as_micros() as i64));
    let archived = archive(&workplace, &date).context("cannot archive chat.md")?;
    Ok(match archived {
        Some(path) => format!("Archived chat.md as {}.\n", path.display()),
        None => "chat.md is empty: there is nothing to archive.\n".to_owned(),
    })
}
