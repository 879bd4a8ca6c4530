//! Implements `parlor doctor`: checks everything that a hub depends on and prints a fix for each problem.
//!
//! Owns: the order of the checks and the layout of the output. It changes nothing, and can run while the hub
//! is running.

mod disk;
mod network;
mod running;

pub use running::limit as open_files_limit;

use crate::{
    agents::{self, gateway::HostingArguments, local::LocalAgents},
    backup::LastBackup,
    report::wrapped,
    settings::{self, Settings, Sources, Switch},
    style::{TerminalStyle, escape_control},
};
use parlor_agents::finding::Health;
use parlor_backends::sqlite::backup;
use std::borrow::Cow;
use std::fmt::Write;
use std::time::{Duration, SystemTime};

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    what: Cow<'static, str>,
    state: State,
    message: String,
    fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    Warn,
    Fail,
}

fn ok(what: &'static str, message: impl Into<String>) -> Finding {
    Finding { what: what.into(), state: State::Ok, message: message.into(), fix: None }
}

fn warn(what: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { what: what.into(), state: State::Warn, message: message.into(), fix: Some(fix.into()) }
}

fn fail(what: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { what: what.into(), state: State::Fail, message: message.into(), fix: Some(fix.into()) }
}

/// Text to print, and whether a check failed.
pub struct Diagnosis {
    pub text: String,
    pub failed: bool,
}

/// Checks the agents of a gateway, for `parlor gateway doctor`.
pub async fn examine_agents(
    arguments: &HostingArguments,
    config: Option<&std::path::Path>,
) -> anyhow::Result<Diagnosis> {
    let examined = agents::gateway::doctor(arguments, config).await?;
    let findings: Vec<Finding> = examined.into_iter().flat_map(about_agent).collect();
    let failed = findings.iter().any(|finding| finding.state == State::Fail);
    Ok(Diagnosis { text: render(&findings, TerminalStyle::for_stdout()), failed })
}

/// Checks the agents that the hub hosts itself.
async fn own_agents(settings: &Settings, sources: &Sources) -> Vec<Finding> {
    let local_agents = LocalAgents::open(&settings.data, sources.config_file().as_deref());
    let agents = match local_agents.and_then(|local_agents| local_agents.list()) {
        Ok(agents) => agents,
        Err(problem) => {
            let fix = "Correct the entry; docs/agents.md describes the format.";
            return vec![fail("agents", format!("{problem:#}."), fix)];
        }
    };
    let mut findings = Vec::new();
    for agent in agents {
        findings.extend(about_agent(agents::gateway::examine(&agent.entry).await));
    }
    findings
}

fn about_agent(examined: agents::gateway::AgentCheck) -> impl Iterator<Item = Finding> {
    let name: Box<str> = examined.name.into();
    examined.findings.into_iter().map(move |found| Finding {
        what: name.to_string().into(),
        state: match found.state {
            Health::Ok => State::Ok,
            Health::Warning => State::Warn,
            Health::Failure => State::Fail,
        },
        message: found.what.into(),
        fix: found.fix.map(Into::into),
    })
}

pub async fn examine(sources: &Sources) -> Diagnosis {
    let findings = match settings::load(sources) {
        Ok(loaded) => {
            let mut findings = check_hub(&loaded.settings).await;
            findings.extend(own_agents(&loaded.settings, sources).await);
            findings
        }
        Err(problems) => {
            let found = |problem: &settings::Problem| {
                fail(
                    "settings",
                    problem.to_string(),
                    "Correct the setting; parlor config example describes every setting.",
                )
            };
            problems.iter().map(found).collect()
        }
    };
    let failed = findings.iter().any(|finding| finding.state == State::Fail);
    Diagnosis { text: render(&findings, TerminalStyle::for_stdout()), failed }
}

async fn check_hub(settings: &Settings) -> Vec<Finding> {
    let mut findings = about_settings(settings);
    findings.extend(disk::data_directory(settings));
    findings.extend(disk::file_system(settings));
    let database = backup::inspect(&settings.data);
    findings.extend(disk::database(settings, &database));
    findings.push(clock(database.ok().map(|about| about.head.at)));
    let hub = running::status(settings).await;
    findings.push(running::hub(settings, &hub).await);
    findings.push(running::open_files(settings, &hub));
    findings.extend(network::addresses(settings));
    findings.extend(network::tls(settings));
    findings.extend(disk::log_file(settings));
    findings.extend(backups(settings));
    findings
}

fn about_settings(settings: &Settings) -> Vec<Finding> {
    let mut findings: Vec<Finding> = settings
        .warnings()
        .into_iter()
        .map(|warning| warn("settings", warning, "parlor config show prints the source of each setting."))
        .collect();
    if findings.is_empty() {
        findings.push(ok("settings", "All settings are valid."));
    }
    if settings.trusted_proxies.is_empty()
        && settings.limits == Switch::On
        && settings.listens_on_loopback()
        && settings.public_url.is_some()
    {
        findings.push(warn(
            "proxy",
            "public_url is set and the hub listens on loopback, so there is a proxy. Without trusted_proxies, all \
             clients behind it count as one address for the limits.",
            "Set trusted_proxies = [\"127.0.0.1\"], and configure the proxy to send X-Forwarded-For.",
        ));
    }
    findings
}

/// The start of 2025, before the first version of Parlor: an earlier time means that the clock is wrong.
const EARLIEST_PLAUSIBLE_TIME: Duration = Duration::from_secs(1_735_689_600);

fn clock(newest: Option<parlor_model::Time>) -> Finding {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let newest = Duration::from_micros(newest.map_or(0, |time| time.0.max(0) as u64));
    if now < EARLIEST_PLAUSIBLE_TIME {
        return fail(
            "clock",
            "The clock is years behind.",
            "Set the clock, and enable NTP (timedatectl set-ntp true).",
        );
    }
    match newest.checked_sub(now) {
        Some(ahead) if ahead > Duration::from_secs(60) => warn(
            "clock",
            format!(
                "The newest event in the database is {} from now: was the clock set back?",
                in_words(ahead)
            ),
            "Compare the clock with another one, and enable NTP (timedatectl set-ntp true).",
        ),
        _ if newest.is_zero() => ok("clock", "The clock is plausible."),
        _ => ok("clock", "The clock is consistent with the newest event."),
    }
}

/// Age of the last backup from which the check warns.
const OLD_BACKUP_AGE: Duration = Duration::from_secs(8 * 86_400);

fn backups(settings: &Settings) -> Option<Finding> {
    if !settings.data.join("parlor.db").exists() {
        return None;
    }
    let fix = "Run parlor backup FILE daily with a timer; the hub can keep running.";
    let Some(last) = LastBackup::read(&settings.data) else {
        return Some(warn("backup", "No backup was ever made.", fix));
    };
    let age =
        SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().saturating_sub(Duration::from_secs(last.at));
    let message = format!("The last backup was made {} ago: {}.", in_words(age), last.file.display());
    Some(if age > OLD_BACKUP_AGE { warn("backup", message, fix) } else { ok("backup", message) })
}

fn in_words(time: Duration) -> String {
    let (count, unit) = match time.as_secs() {
        seconds if seconds >= 2 * 86_400 => (seconds / 86_400, "day"),
        seconds if seconds >= 2 * 3_600 => (seconds / 3_600, "hour"),
        seconds if seconds >= 2 * 60 => (seconds / 60, "minute"),
        seconds => (seconds, "second"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// Maximum width of a message, in characters.
const WIDTH: usize = 84;

fn render(findings: &[Finding], terminal_style: TerminalStyle) -> String {
    let column = findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    let indent = " ".repeat(column + 10);
    let mut text = String::from("\n");
    for finding in findings {
        let state = match finding.state {
            State::Ok => terminal_style.good("ok  "),
            State::Warn => terminal_style.warning("warn"),
            State::Fail => terminal_style.bad("fail"),
        };
        // Messages contain untrusted text such as file names.
        let message = wrapped(&escape_control(&finding.message), WIDTH).join(&format!("\n{indent}"));
        let _ = writeln!(text, "  {state}  {:column$}  {message}", escape_control(&finding.what));
        if let Some(fix) = &finding.fix {
            let fix = wrapped(&escape_control(fix), WIDTH - 2).join(&format!("\n{indent}  "));
            let _ = writeln!(text, "{indent}{} {}", terminal_style.dim("→"), terminal_style.dim(fix));
        }
    }
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let summary = match (count(State::Warn), count(State::Fail)) {
        (0, 0) => "All checks passed.".to_owned(),
        (warnings, 0) => format!("No check failed, {}.", plural(warnings, "warning", "warnings")),
        (0, failures) => format!("{}.", plural(failures, "check failed", "checks failed")),
        (warnings, failures) => format!(
            "{}, {}.",
            plural(failures, "check failed", "checks failed"),
            plural(warnings, "warning", "warnings")
        ),
    };
    let _ = writeln!(text, "\n  {}\n", terminal_style.bold(summary));
    text
}

fn plural(count: usize, singular: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { singular } else { plural })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_is_one_line_and_each_problem_has_a_fix() {
        let findings = [
            ok("clock", "Right."),
            warn("backup", "None.", "Make one."),
            fail("tls", "Expired.", "Renew it."),
        ];
        let expected = "
  ok    clock   Right.
  warn  backup  None.
                → Make one.
  fail  tls     Expired.
                → Renew it.

  1 check failed, 1 warning.

";
        assert_eq!(render(&findings, TerminalStyle::PLAIN), expected);
        assert!(render(&findings[..1], TerminalStyle::PLAIN).ends_with("All checks passed.\n\n"));
    }

    #[test]
    fn a_clock_behind_the_newest_event_is_a_warning() {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros() as i64;
        assert_eq!(clock(None).state, State::Ok);
        assert_eq!(clock(Some(parlor_model::Time(now - 5_000_000))).state, State::Ok);
        let behind = clock(Some(parlor_model::Time(now + 3 * 86_400_000_000)));
        assert_eq!(behind.state, State::Warn);
        assert!(behind.message.contains("2 days from now"), "{behind:?}");
    }
}
