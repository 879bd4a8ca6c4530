//! Parses the options of `cargo xtask bench`; their help text is in `bench_launch`.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;

pub struct Options {
    pub rounds: usize,
    pub seconds: f64,
    pub only: Option<String>,
    pub json: Option<PathBuf>,
    pub strict: bool,
    pub small: bool,
    pub folder: PathBuf,
    pub hub: Hub,
}

pub enum Hub {
    Binary(PathBuf),
    StandIn,
}

impl Options {
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let program = std::env::current_exe().context("finding the folder of this program")?;
        let build_folder = program.parent().context("the executable has no parent folder")?;
        let target_folder = build_folder.parent().unwrap_or(build_folder);
        let mut options = Self {
            rounds: 5,
            seconds: 3.0,
            only: None,
            json: None,
            strict: false,
            small: false,
            // Not the system's temporary folder, which is often in memory, where a sync is free.
            folder: target_folder.join("bench-data"),
            hub: Hub::Binary(build_folder.join("parlor")),
        };
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("`{option}` needs a value"));
            match option.as_str() {
                "--rounds" => options.rounds = value()?.parse().context("`--rounds` takes a number")?,
                "--seconds" => options.seconds = value()?.parse().context("`--seconds` takes a number")?,
                "--only" => options.only = Some(value()?.clone()),
                "--json" => options.json = Some(value()?.into()),
                "--dir" => options.folder = PathBuf::from(value()?).join("bench-data"),
                "--hub" => options.hub = Hub::Binary(value()?.into()),
                "--stand-in" => options.hub = Hub::StandIn,
                "--strict" => options.strict = true,
                "--small" => options.small = true,
                _ => bail!("there is no option `{option}`; see `cargo xtask bench --help`"),
            }
        }
        if options.rounds == 0 || options.seconds.is_nan() || options.seconds <= 0.0 {
            bail!("`--rounds` and `--seconds` must be above zero");
        }
        // The process ID keeps the data of concurrent runs, such as tests, apart.
        options.folder.push(std::process::id().to_string());
        Ok(options)
    }
}
