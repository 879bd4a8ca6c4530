//! Checks of public address, allowed origins and TLS certificate for `parlor doctor`.

use super::{Finding, fail, in_words, ok, warn};
use crate::settings::Settings;
use parlor_server::Tls;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};
use url::Url;

/// Remaining lifetime of the certificate below which the check warns.
const EXPIRES_SOON: Duration = Duration::from_secs(21 * 86_400);

pub fn addresses(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    match &settings.public_url {
        None if settings.listens_on_loopback() => {
            let message = format!("The hub is reachable from this machine only, at {}.", settings.listen);
            findings.push(ok("address", message));
        }
        None => findings.push(warn(
            "address",
            format!(
                "Other machines can reach {}, but the hub rejects requests with an unknown host name.",
                settings.listen
            ),
            "Set public_url to the URL that users open.",
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
            format!("Pages of {origin} may connect, but without TLS they can be modified in transit."),
            "Serve that page over https, and allow the https origin instead.",
        ));
    }
    findings
}

fn public(settings: &Settings, url: &Url) -> Finding {
    let local = url.host_str().is_some_and(is_local);
    match (url.scheme(), settings.speaks_tls()) {
        ("http", true) => fail(
            "address",
            format!("public_url is {url}, but the hub accepts only https."),
            "Start public_url with https.",
        ),
        ("http", false) if !local => warn(
            "address",
            format!("{url} does not use TLS: passwords and messages can be read in transit."),
            "Set tls_cert and tls_key, or use a TLS proxy, and start public_url with https.",
        ),
        _ if url.path() != "/" => warn(
            "address",
            format!("public_url has a path ({}), but the hub serves only at the root.", url.path()),
            "Use a separate host name for the hub.",
        ),
        _ => ok("address", format!("Users reach the hub at {url}.")),
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
            let fix = "Set tls_cert to the chain and tls_key to its key, both in PEM and readable by the hub's user.";
            return vec![fail("tls", format!("{error}."), fix)];
        }
    };
    let mut findings = vec![expiry(tls.expires_at())];
    let host = settings.public_url.as_ref().and_then(Url::host_str);
    if let Some(host) = host.filter(|host| !tls.covers_host(host)) {
        findings.push(fail(
            "tls",
            format!("The certificate is not valid for {host}, so browsers reject it."),
            "Get a certificate for the host in public_url.",
        ));
    }
    if key.metadata().is_ok_and(|about| about.mode() & 0o007 != 0) {
        let message = format!("Every user of this machine can read {}.", key.display());
        findings.push(warn("tls", message, format!("chmod o= {}", key.display())));
    }
    findings
}

fn expiry(expires: Option<SystemTime>) -> Finding {
    let renew = "Renew the certificate; the hub reloads the files without a restart.";
    match expires.map(|time| time.duration_since(SystemTime::now())) {
        None => warn("tls", "The expiry date of the certificate cannot be read.", renew),
        Some(Err(_)) => fail("tls", "The certificate has expired.", renew),
        Some(Ok(left)) if left < EXPIRES_SOON => {
            warn("tls", format!("The certificate expires in {}.", in_words(left)), renew)
        }
        Some(Ok(left)) => ok("tls", format!("The certificate is valid for {}.", in_words(left))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn a_certificate_that_expires_soon_is_a_warning_and_an_expired_one_a_failure() {
        let now = SystemTime::now();
        let day = Duration::from_secs(86_400);
        let state = |expires| expiry(expires).state;
        assert_eq!(state(Some(now + 90 * day)), State::Ok);
        assert_eq!(state(Some(now + 5 * day)), State::Warn);
        assert_eq!(state(Some(now - day)), State::Fail);
        assert_eq!(state(None), State::Warn);
    }
}
