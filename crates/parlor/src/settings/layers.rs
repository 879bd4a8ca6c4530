//! Sources of settings and their precedence: flag, environment variable, settings file, default.
//!
//! Owns: precedence, secrets stored in files, and the rejection of unknown names. The environment is passed
//! in as [`Sources`], so that tests control it.

use super::{
    suggest::nearest,
    table::{Entry, Group, Presence},
    types::SettingType,
};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};
use toml::{Table, Value};

/// Environment variable with the path of the settings file; `--config` overrides it.
pub const CONFIG_VARIABLE: &str = "PARLOR_CONFIG";

/// Keys of the lists `[[agent]]` and `[[chatmd]]` in the settings file. They are parsed by `agents::local` and
/// `chatmd::configured`, not as settings.
const LISTS: [&str; 2] = ["agent", "chatmd"];
/// Variables that only `parlor gateway` and `parlor bridge` read. They are accepted, because a hub and a gateway
/// may share an environment.
const CLIENT_VARIABLES: [&str; 6] = [
    "PARLOR_SERVER",
    "PARLOR_KEY",
    "PARLOR_KEY_FILE",
    "PARLOR_CA_FILE",
    "PARLOR_PASSWORD",
    "PARLOR_GATEWAY_DATA",
];

/// Maximum size of a secret file. A larger file indicates a wrong path.
const MAX_SECRET_FILE_BYTES: u64 = 64 * 1024;

/// Inputs from which the settings are read.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Values given as flags, by setting key.
    pub flags: BTreeMap<&'static str, String>,
    /// The `PARLOR_…` environment variables.
    pub environment: BTreeMap<String, OsString>,
    pub config: Option<PathBuf>,
}

impl Sources {
    /// Combines the given flags with the `PARLOR_…` environment variables of this process.
    pub fn from_process(flags: BTreeMap<&'static str, String>, config: Option<PathBuf>) -> Self {
        let parlor_variable = |(name, value): (OsString, OsString)| {
            let name = name.into_string().ok()?;
            name.starts_with("PARLOR_").then_some((name, value))
        };
        Self { flags, environment: std::env::vars_os().filter_map(parlor_variable).collect(), config }
    }

    pub fn config_file(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| {
            self.environment.get(CONFIG_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
        })
    }
}

/// One problem with the settings. `key` is the name under which the value was given: key, variable or flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub key: String,
    pub reason: String,
}

impl Problem {
    pub fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { key: key.into(), reason: reason.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.key, self.reason)
    }
}

/// Source of a setting's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingSource {
    Default,
    /// Key in the settings file.
    File(String),
    /// Name of the environment variable.
    Environment(String),
    /// Name of the flag, with its dashes.
    Flag(String),
}

impl SettingSource {
    /// Returns the name under which problems with the value are reported.
    fn name<'a>(&'a self, key: &'a str) -> &'a str {
        match self {
            Self::Default => key,
            Self::File(name) | Self::Environment(name) | Self::Flag(name) => name,
        }
    }
}

impl fmt::Display for SettingSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File(key) => write!(formatter, "file ({key})"),
            Self::Environment(variable) => write!(formatter, "env {variable}"),
            Self::Flag(flag) => write!(formatter, "flag {flag}"),
        }
    }
}

/// A value as given, before its setting type parses it.
#[derive(Clone, Debug)]
pub struct RawSetting {
    pub value: Value,
    pub origin: SettingSource,
}

/// Effective value of each key. Optional settings that are unset have no entry.
pub type Effective = BTreeMap<&'static str, RawSetting>;

/// Determines the effective value of each setting by precedence, and collects all problems.
pub fn resolve(groups: &'static [Group], sources: &Sources) -> (Effective, Vec<Problem>) {
    let mut problems = Vec::new();
    let file = sources.config_file().map(|path| read_file(&path, &mut problems)).unwrap_or_default();
    let entries = || groups.iter().flat_map(|group| group.entries);
    refuse_unknown(entries, &file, sources, &mut problems);

    let mut effective = Effective::new();
    for entry in entries() {
        match find(entry, &file, sources) {
            Ok(Some(given)) => drop(effective.insert(entry.key, given)),
            Ok(None) => {}
            Err(problem) => problems.push(problem),
        }
    }
    (effective, problems)
}

fn find(entry: &Entry, file: &Table, sources: &Sources) -> Result<Option<RawSetting>, Problem> {
    if let Some(text) = sources.flags.get(entry.key) {
        let flag = format!("--{}", entry.key.replace('_', "-"));
        let value = (entry.parse_text)(text).map_err(|reason| Problem::new(&flag, reason))?;
        return Ok(Some(RawSetting { value, origin: SettingSource::Flag(flag) }));
    }
    if let Some(given) = in_environment(entry, sources)? {
        return Ok(Some(given));
    }
    if let Some(given) = in_file(entry, file)? {
        return Ok(Some(given));
    }
    Ok(match entry.presence {
        Presence::Default(value) => Some(RawSetting { value: value(), origin: SettingSource::Default }),
        Presence::Optional(_) | Presence::Secret => None,
    })
}

fn in_environment(entry: &Entry, sources: &Sources) -> Result<Option<RawSetting>, Problem> {
    let text_of = |variable: &String| -> Result<Option<String>, Problem> {
        // Compose files pass on variables that are unset on the host as empty strings.
        let Some(text) = sources.environment.get(variable).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let text = text.to_str().ok_or_else(|| Problem::new(variable, "is not valid UTF-8"))?;
        Ok(Some(text.to_owned()))
    };
    let variable = entry.variable();
    let text = text_of(&variable)?;
    if let Some(file_variable) = entry.file_variable()
        && let Some(path) = text_of(&file_variable)?
    {
        if text.is_some() {
            return Err(Problem::new(file_variable, format!("is set together with {variable}; keep one")));
        }
        let value = read_secret(Path::new(&path)).map_err(|reason| Problem::new(&file_variable, reason))?;
        return Ok(Some(RawSetting { value, origin: SettingSource::Environment(file_variable) }));
    }
    let Some(text) = text else { return Ok(None) };
    let value = (entry.parse_text)(&text).map_err(|reason| Problem::new(&variable, reason))?;
    Ok(Some(RawSetting { value, origin: SettingSource::Environment(variable) }))
}

fn in_file(entry: &Entry, file: &Table) -> Result<Option<RawSetting>, Problem> {
    let value = file.get(entry.key);
    if let Some(file_key) = entry.file_key()
        && let Some(path) = file.get(&file_key)
    {
        if value.is_some() {
            return Err(Problem::new(file_key, format!("is set together with {}; keep one", entry.key)));
        }
        let path = path.as_str().ok_or_else(|| Problem::new(&file_key, "must be a path in quotes"))?;
        let value = read_secret(Path::new(path)).map_err(|reason| Problem::new(&file_key, reason))?;
        return Ok(Some(RawSetting { value, origin: SettingSource::File(file_key) }));
    }
    Ok(value.map(|value| RawSetting { value: value.clone(), origin: SettingSource::File(entry.key.into()) }))
}

fn read_secret(path: &Path) -> Result<Value, String> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| format!("cannot read {shown}: {error}");
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() {
        return Err(format!("names {shown}, which is not a file"));
    }
    if about.len() > MAX_SECRET_FILE_BYTES {
        return Err(format!("names {shown}, which is too large for a secret"));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| format!("names {shown}, which is not valid UTF-8"))?;
    // Editors and `echo` append a newline that is not part of the secret.
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(format!("names {shown}, which is empty")),
        secret => Ok(Value::from(secret)),
    }
}

fn read_file(path: &Path, problems: &mut Vec<Problem>) -> Table {
    let name = path.display().to_string();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            problems.push(Problem::new(name, format!("cannot be read: {error}")));
            return Table::new();
        }
    };
    text.parse::<Table>().unwrap_or_else(|error| {
        // `message()` instead of `Display`: the latter quotes the line, which may contain a password.
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
        problems.push(Problem::new(name, format!("is not valid TOML near line {line}: {}", error.message())));
        Table::new()
    })
}

fn refuse_unknown<'a, I: Iterator<Item = &'a Entry>>(
    entries: impl Fn() -> I,
    file: &Table,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) {
    let keys: Vec<String> =
        entries().flat_map(|entry| [Some(entry.key.to_owned()), entry.file_key()]).flatten().collect();
    for (key, value) in file {
        if keys.contains(key) || (LISTS.contains(&key.as_str()) && value.is_array()) {
            continue;
        }
        let kind = if value.is_table() { "table" } else { "setting" };
        problems.push(Problem::new(key, unknown(kind, nearest(key, &keys))));
    }
    let variables: Vec<String> = entries()
        .flat_map(|entry| [Some(entry.variable()), entry.file_variable()])
        .flatten()
        .chain([CONFIG_VARIABLE.to_owned()])
        .chain(CLIENT_VARIABLES.map(str::to_owned))
        .collect();
    for variable in sources.environment.keys().filter(|variable| !variables.contains(variable)) {
        problems.push(Problem::new(variable, unknown("setting", nearest(variable, &variables))));
    }
}

fn unknown(kind: &str, nearest: Option<&str>) -> String {
    let hint = match nearest {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => "`parlor config example` lists them all.".into(),
    };
    format!("there is no such {kind}; {hint}")
}

/// Parses effective values by their setting types and collects the problems.
pub struct SettingReader<'a> {
    effective: &'a Effective,
    problems: &'a mut Vec<Problem>,
}

impl<'a> SettingReader<'a> {
    pub fn new(effective: &'a Effective, problems: &'a mut Vec<Problem>) -> Self {
        Self { effective, problems }
    }

    /// Returns `None` if the value is missing or invalid; an invalid value has been added to the problems.
    pub fn required<F: SettingType>(&mut self, key: &str, form: &F) -> Option<F::Output> {
        self.read(key, form).flatten()
    }

    /// Returns `Some(None)` if the setting is unset, and `None` if its value is invalid.
    pub fn optional<F: SettingType>(&mut self, key: &str, form: &F) -> Option<Option<F::Output>> {
        self.read(key, form)
    }

    fn read<F: SettingType>(&mut self, key: &str, form: &F) -> Option<Option<F::Output>> {
        let Some(given) = self.effective.get(key) else { return Some(None) };
        match form.read(&given.value) {
            Ok(value) => Some(Some(value)),
            Err(reason) => {
                self.problems.push(Problem::new(given.origin.name(key), reason));
                None
            }
        }
    }
}
