//! Addresses and certificates.

use super::{Finding, fail, in_words, ok, warn};
use crate::settings::Settings;
use parlor_server::Tls;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};
use url::Url;

const EXPIRES_SOON: Duration = Duration::from_secs(21 * 86_400);

pub fn addresses(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    match &settings.public_url {
        None if settings.listens_on_loopback() => {
            findings.push(ok("address", format!("For this machine only, at {}.", settings.listen)));
        }
        None => findings.push(warn(
            "address",
            format!(
                "Others reach {}, but by names the hub does not know: it refuses their pages.",
                settings.listen
            ),
            "Set public_url to the URL people use.",
        )),
        Some(url) => findings.push(public(settings, url)),
    }
    let insecure = |origin: &&String| {
        let host = Url::parse(origin).ok().and_then(|url| url.host_str().map(str::to_owned));
        origin.starts_with("http://") && !host.is_some_and(|host| is_local(&host))
    };
    if let Some(origin) = settings.allowed_origins.iter().find(insecure) {
        findings.push(warn(
            "origins",
            format!(
                "Pages of {origin} may connect, and anybody on the way can change what such a page does."
            ),
            "Serve that page over https, and allow that origin instead.",
        ));
    }
    findings
}

fn public(settings: &Settings, url: &Url) -> Finding {
    let local = url.host_str().is_some_and(is_local);
    match (url.scheme(), settings.speaks_tls()) {
        ("http", true) => fail(
            "address",
            format!("public_url is {url}, but Parlor speaks https only."),
            "Let public_url begin with https.",
        ),
        ("http", false) if !local => warn(
            "address",
            format!("{url} goes without TLS: passwords and messages can be read on the way."),
            "Set tls_cert and tls_key, or put a proxy that speaks TLS in front, and let public_url begin with https.",
        ),
        _ if url.path() != "/" => warn(
            "address",
            format!("public_url has a path ({}), and Parlor serves at the root.", url.path()),
            "Give it a host name of its own.",
        ),
        _ => ok("address", format!("People reach it at {url}.")),
    }
}

fn is_local(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

pub fn tls(settings: &Settings) -> Vec<Finding> {
    let (Some(certificate), Some(key)) = (&settings.tls_cert, &settings.tls_key) else { return Vec::new() };
    let tls = match Tls::load(certificate, key) {
        Ok(tls) => tls,
        Err(error) => {
            let fix = "Name the chain in tls_cert and its key in tls_key, both in PEM, and let the hub's user read them.";
            return vec![fail("tls", format!("{error}."), fix)];
        }
    };
    let mut findings = vec![expiry(tls.expires_at())];
    let host = settings.public_url.as_ref().and_then(Url::host_str);
    if let Some(host) = host.filter(|host| !tls.covers_host(host)) {
        findings.push(fail(
            "tls",
            format!("The certificate is not for {host}, so browsers refuse it."),
            "Get one for the host in public_url.",
        ));
    }
    if key.metadata().is_ok_and(|about| about.mode() & 0o007 != 0) {
        let says = format!("Everybody on this machine can read {}.", key.display());
        findings.push(warn("tls", says, format!("chmod o= {}", key.display())));
    }
    findings
}

fn expiry(expires: Option<SystemTime>) -> Finding {
    let renew = "Renew it; Parlor takes the new files without a restart.";
    match expires.map(|time| time.duration_since(SystemTime::now())) {
        None => warn("tls", "When the certificate runs out cannot be read from it.", renew),
        Some(Err(_)) => fail("tls", "The certificate has run out.", renew),
        Some(Ok(left)) if left < EXPIRES_SOON => {
            warn("tls", format!("The certificate runs out in {}.", in_words(left)), renew)
        }
        Some(Ok(left)) => ok("tls", format!("The certificate is good for {}.", in_words(left))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn a_certificate_is_renewed_before_it_runs_out() {
        let now = SystemTime::now();
        let day = Duration::from_secs(86_400);
        let state = |expires| expiry(expires).state;
        assert_eq!(state(Some(now + 90 * day)), State::Ok);
        assert_eq!(state(Some(now + 5 * day)), State::Warn);
        assert_eq!(state(Some(now - day)), State::Fail);
        assert_eq!(state(None), State::Warn);
    }
}
