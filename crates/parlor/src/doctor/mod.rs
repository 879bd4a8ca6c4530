//! `parlor doctor`: looks at everything a hub needs, and says of each whether it is well and what to do if not.
//!
//! Owns: the order and the look. It changes nothing, and works while the hub runs.

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

/// What was found of one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    what: Cow<'static, str>,
    state: State,
    says: String,
    fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    Warn,
    Fail,
}

fn ok(what: &'static str, says: impl Into<String>) -> Finding {
    Finding { what: what.into(), state: State::Ok, says: says.into(), fix: None }
}

fn warn(what: &'static str, says: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { what: what.into(), state: State::Warn, says: says.into(), fix: Some(fix.into()) }
}

fn fail(what: &'static str, says: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { what: what.into(), state: State::Fail, says: says.into(), fix: Some(fix.into()) }
}

/// What there is to print, and whether something is broken.
pub struct Diagnosis {
    pub text: String,
    pub failed: bool,
}

/// The agents of a gateway.
pub async fn examine_agents(
    arguments: &HostingArguments,
    config: Option<&std::path::Path>,
) -> anyhow::Result<Diagnosis> {
    let examined = agents::gateway::doctor(arguments, config).await?;
    let findings: Vec<Finding> = examined.into_iter().flat_map(about_agent).collect();
    let failed = findings.iter().any(|finding| finding.state == State::Fail);
    Ok(Diagnosis { text: render(&findings, TerminalStyle::for_stdout()), failed })
}

/// The agents that the hub hosts itself.
async fn own_agents(settings: &Settings, sources: &Sources) -> Vec<Finding> {
    let roster = LocalAgents::open(&settings.data, sources.config_file().as_deref());
    let agents = match roster.and_then(|local_agents| local_agents.list()) {
        Ok(agents) => agents,
        Err(problem) => {
            return vec![fail("agents", format!("{problem:#}."), "Correct it; docs/agents.md shows how.")];
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
        says: found.what.into(),
        fix: found.fix.map(Into::into),
    })
}

pub async fn examine(sources: &Sources) -> Diagnosis {
    let findings = match settings::load(sources) {
        Ok(loaded) => {
            let mut findings = look_at(&loaded.settings).await;
            findings.extend(own_agents(&loaded.settings, sources).await);
            findings
        }
        Err(problems) => {
            let found = |problem: &settings::Problem| {
                fail(
                    "settings",
                    problem.to_string(),
                    "Correct it; parlor config example explains every setting.",
                )
            };
            problems.iter().map(found).collect()
        }
    };
    let failed = findings.iter().any(|finding| finding.state == State::Fail);
    Diagnosis { text: render(&findings, TerminalStyle::for_stdout()), failed }
}

async fn look_at(settings: &Settings) -> Vec<Finding> {
    let mut findings = about_settings(settings);
    findings.extend(disk::data_directory(settings));
    findings.extend(disk::file_system(settings));
    let database = backup::inspect(&settings.data);
    findings.extend(disk::database(settings, &database));
    findings.push(clock(database.ok().map(|about| about.head.at)));
    let hub = running::ask(settings).await;
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
        .map(|warning| warn("settings", warning, "parlor config show tells where each setting comes from."))
        .collect();
    if findings.is_empty() {
        findings.push(ok("settings", "They are good."));
    }
    if settings.trusted_proxies.is_empty()
        && settings.limits == Switch::On
        && settings.listens_on_loopback()
        && settings.public_url.is_some()
    {
        findings.push(warn(
            "proxy",
            "A public URL and a loopback address mean that a proxy stands between, and to the limits everybody behind it \
             is one address.",
            "Set trusted_proxies = [\"127.0.0.1\"], and have the proxy send X-Forwarded-For.",
        ));
    }
    findings
}

/// The start of 2025: nothing of ours is older.
const BEFORE_US: Duration = Duration::from_secs(1_735_689_600);

fn clock(newest: Option<parlor_model::Time>) -> Finding {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let newest = Duration::from_micros(newest.map_or(0, |time| time.0.max(0) as u64));
    if now < BEFORE_US {
        return fail(
            "clock",
            "It is years behind.",
            "Set it, and let NTP keep it right (timedatectl set-ntp true).",
        );
    }
    match newest.checked_sub(now) {
        Some(ahead) if ahead > Duration::from_secs(60) => warn(
            "clock",
            format!("The newest event in the database is {} from now: was it set back?", in_words(ahead)),
            "Compare it with another clock, and let NTP keep it right (timedatectl set-ntp true).",
        ),
        _ if newest.is_zero() => ok("clock", "It looks right."),
        _ => ok("clock", "It agrees with the newest event."),
    }
}

const BACKUP_IS_OLD: Duration = Duration::from_secs(8 * 86_400);

fn backups(settings: &Settings) -> Option<Finding> {
    if !settings.data.join("parlor.db").exists() {
        return None;
    }
    let fix = "parlor backup FILE writes one while the hub runs; let a timer do it every day.";
    let Some(last) = LastBackup::read(&settings.data) else {
        return Some(warn("backup", "None was ever made.", fix));
    };
    let age =
        SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().saturating_sub(Duration::from_secs(last.at));
    let says = format!("The last one was made {} ago, in {}.", in_words(age), last.file.display());
    Some(if age > BACKUP_IS_OLD { warn("backup", says, fix) } else { ok("backup", says) })
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
        // A name of a file is text of others.
        let says = wrapped(&escape_control(&finding.says), WIDTH).join(&format!("\n{indent}"));
        let _ = writeln!(text, "  {state}  {:column$}  {says}", escape_control(&finding.what));
        if let Some(fix) = &finding.fix {
            let fix = wrapped(&escape_control(fix), WIDTH - 2).join(&format!("\n{indent}  "));
            let _ = writeln!(text, "{indent}{} {}", terminal_style.dim("→"), terminal_style.dim(fix));
        }
    }
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let summary = match (count(State::Warn), count(State::Fail)) {
        (0, 0) => "All is well.".to_owned(),
        (warnings, 0) => format!("It works; {}.", of(warnings, "thing to look at", "things to look at")),
        (0, failures) => format!("{}.", of(failures, "thing is broken", "things are broken")),
        (warnings, failures) => format!(
            "{}, and {}.",
            of(failures, "thing is broken", "things are broken"),
            of(warnings, "thing to look at", "things to look at")
        ),
    };
    let _ = writeln!(text, "\n  {}\n", terminal_style.bold(summary));
    text
}

fn of(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_is_a_line_and_what_is_not_well_has_a_fix() {
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

  1 thing is broken, and 1 thing to look at.

";
        assert_eq!(render(&findings, TerminalStyle::PLAIN), expected);
        assert!(render(&findings[..1], TerminalStyle::PLAIN).ends_with("All is well.\n\n"));
    }

    #[test]
    fn a_clock_that_was_set_back_is_noticed() {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros() as i64;
        assert_eq!(clock(None).state, State::Ok);
        assert_eq!(clock(Some(parlor_model::Time(now - 5_000_000))).state, State::Ok);
        let behind = clock(Some(parlor_model::Time(now + 3 * 86_400_000_000)));
        assert_eq!(behind.state, State::Warn);
        assert!(behind.says.contains("2 days from now"), "{behind:?}");
    }
}
