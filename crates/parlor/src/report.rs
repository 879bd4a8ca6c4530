//! The start-up report: URL, data directory, next steps and warnings.
//!
//! Owns: its text and layout. It is printed only once the hub accepts connections, so that the printed URL
//! works.

use crate::{settings::Settings, style::TerminalStyle};
use std::{
    fmt::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Component, Path, PathBuf},
    time::Duration,
};
use url::Url;

/// Contents of the start-up report.
#[derive(Clone, Debug)]
pub struct StartupReport {
    /// Bound address of the listener, with the actual port.
    pub listening: SocketAddr,
    pub tls: bool,
    pub public_url: Option<Url>,
    pub data: PathBuf,
    /// Setup link for the first admin; present until an admin exists.
    pub setup: Option<SetupLink>,
    pub warnings: Vec<String>,
}

/// Token and lifetime of the one-time setup link for the first admin.
#[derive(Clone, Debug)]
pub struct SetupLink {
    pub token: crate::secret::Secret,
    pub lifetime: Duration,
}

impl StartupReport {
    /// Combines the settings with the values that are known only once the hub is running.
    pub fn new(settings: &Settings, listening: SocketAddr, setup: Option<SetupLink>) -> Self {
        let data = std::path::absolute(&settings.data).unwrap_or_else(|_| settings.data.clone());
        let warnings = settings.warnings();
        let public_url = settings.public_url.clone();
        Self { listening, tls: settings.speaks_tls(), public_url, data, setup, warnings }
    }

    /// Returns the URL that works on this machine.
    pub fn local_url(&self) -> String {
        // The unspecified address is valid for listening, but not for connecting.
        let ip = match self.listening.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", SocketAddr::new(ip, self.listening.port()))
    }
}

/// Renders the report. It ends with an empty line that separates it from the log.
pub fn render(facts: &StartupReport, terminal_style: TerminalStyle) -> String {
    let local = facts.local_url();
    let public = facts.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
    let user_url = public.clone().unwrap_or_else(|| local.clone());
    let mut text = String::new();
    let mut line = |line: String| {
        let _ = if line.is_empty() { writeln!(text) } else { writeln!(text, "  {line}") };
    };

    line(String::new());
    line(format!("{} {}", terminal_style.bold("Parlor"), terminal_style.dim(env!("CARGO_PKG_VERSION"))));
    line(String::new());
    if let Some(public) = &public {
        line(format!("{}  {}", terminal_style.dim("Open "), terminal_style.link(public)));
        line(format!("{}  {}", terminal_style.dim("Local"), terminal_style.link(&local)));
    } else {
        line(format!("{}  {}", terminal_style.dim("Open "), terminal_style.link(&local)));
    }
    line(format!("{}  {}", terminal_style.dim("Data "), without_dots(&facts.data).display()));
    line(String::new());
    match &facts.setup {
        Some(setup) => {
            line("There is no admin yet. Open this link to create the first admin:".into());
            line(String::new());
            line(format!(
                "  {}",
                terminal_style.link(format!("{user_url}/setup#token={}", setup.token.expose()))
            ));
            line(String::new());
            let lifetime = in_words(setup.lifetime);
            line(
                terminal_style.dim(format!(
                    "It works once, for {lifetime}. Then create a room and invite other users."
                )),
            );
        }
        None => {
            line(format!("{}  {}", terminal_style.dim("Try  "), "open the link above, or from a terminal:"));
            // A TLS certificate is issued for the public name, not for the local address.
            let base = if facts.tls { &user_url } else { &local };
            line(format!("       curl {base}/api/health"));
            line("       parlor admin user add ada".into());
        }
    }
    for warning in &facts.warnings {
        line(String::new());
        let mut lines = wrapped(warning, 76).into_iter();
        line(format!("{} {}", terminal_style.warning("!"), lines.next().unwrap_or_default()));
        for rest in lines {
            line(format!("  {rest}"));
        }
    }
    line(String::new());
    text
}

/// Removes `.` components, so that `/srv/./parlor-data` is printed as `/srv/parlor-data`.
fn without_dots(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}

fn in_words(lifetime: Duration) -> String {
    let (count, unit) = match lifetime.as_secs() {
        seconds if seconds >= 2 * 86_400 => (seconds / 86_400, "day"),
        seconds if seconds >= 2 * 3_600 => (seconds / 3_600, "hour"),
        seconds if seconds >= 2 * 60 => (seconds / 60, "minute"),
        seconds => (seconds, "second"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn the_url_contains_the_actual_port() {
        let text = render(&facts("127.0.0.1:40123"), TerminalStyle::PLAIN);
        assert!(text.lines().any(|line| line.trim() == "Open   http://127.0.0.1:40123"), "{text}");
        assert!(text.contains("/srv/parlor"), "{text}");
        assert!(!text.contains("setup"), "{text}");
    }

    #[test]
    fn the_local_url_of_an_unspecified_address_is_loopback() {
        assert_eq!(facts("0.0.0.0:80").local_url(), "http://127.0.0.1:80");
        assert_eq!(facts("[::]:80").local_url(), "http://[::1]:80");
        assert_eq!(facts("192.168.1.4:80").local_url(), "http://192.168.1.4:80");
        let over_tls = StartupReport { tls: true, ..facts("127.0.0.1:443") };
        assert_eq!(over_tls.local_url(), "https://127.0.0.1:443");
    }

    #[test]
    fn the_setup_link_is_printed_until_an_admin_exists() {
        let mut facts = facts("127.0.0.1:80");
        let lifetime = Duration::from_secs(86_400);
        facts.setup = Some(SetupLink { token: Secret::new("abc"), lifetime });
        let text = render(&facts, TerminalStyle::PLAIN);
        assert!(text.lines().any(|line| line.trim() == "http://127.0.0.1:80/setup#token=abc"), "{text}");
        assert!(text.contains("works once, for 24 hours"), "{text}");
        assert!(!format!("{facts:?}").contains("abc"));
    }

    #[test]
    fn the_public_url_and_the_local_url_are_printed() {
        let mut facts = facts("127.0.0.1:80");
        facts.public_url = Some(Url::parse("https://chat.example.org/").unwrap());
        let lifetime = Duration::from_secs(90);
        facts.setup = Some(SetupLink { token: Secret::new("abc"), lifetime });
        let text = render(&facts, TerminalStyle::PLAIN);
        assert!(text.contains("Open   https://chat.example.org\n"), "{text}");
        assert!(text.contains("Local  http://127.0.0.1:80\n"), "{text}");
        assert!(text.contains("https://chat.example.org/setup#token=abc\n"), "{text}");
        assert!(text.contains("for 90 seconds"), "{text}");
    }

    #[test]
    fn warnings_are_marked_and_wrapped_to_80_columns() {
        let mut facts = facts("0.0.0.0:80");
        facts.warnings = vec!["Beware of the ".to_owned() + &"dog ".repeat(40)];
        let text = render(&facts, TerminalStyle::PLAIN);
        assert!(text.contains("  ! Beware of the dog"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }

    #[test]
    fn output_without_a_terminal_has_no_escape_codes() {
        let mut facts = facts("127.0.0.1:80");
        facts.warnings = vec!["Beware".into()];
        assert!(!render(&facts, TerminalStyle::PLAIN).contains('\x1b'));
        assert!(render(&facts, TerminalStyle::COLOURED).contains('\x1b'));
    }

    fn facts(listening: &str) -> StartupReport {
        StartupReport {
            listening: listening.parse().unwrap(),
            tls: false,
            public_url: None,
            data: "/srv/./parlor".into(),
            setup: None,
            warnings: vec![],
        }
    }
}
