//! Cross-site request protection: which `Host` and `Origin` headers may open a WebSocket or use the refresh
//! cookie.

use crate::Config;
use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use std::net::IpAddr;

/// Whether the `Host` and `Origin` of a request are allowed. Requests without `Origin` pass, as browsers
/// always send it and other programs do not.
pub fn is_allowed(headers: &HeaderMap, config: &Config) -> bool {
    let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else { return false };
    if !is_own_host(host, config) {
        return false;
    }
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let Ok(origin) = origin.to_str() else { return false };
    if config.allowed_origins.iter().any(|allowed| allowed.trim_end_matches('/').eq_ignore_ascii_case(origin))
    {
        return true;
    }
    let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    own.is_some_and(|own| own.eq_ignore_ascii_case(host))
}

/// Whether the host is an IP address, localhost or a configured name. Other names are rejected: an attacker
/// can point a domain at the hub (DNS rebinding), but not an IP address.
fn is_own_host(host: &str, config: &Config) -> bool {
    let name = without_port(host);
    let literal = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    let configured = config
        .allowed_hosts
        .iter()
        .any(|own| own.eq_ignore_ascii_case(host) || own.eq_ignore_ascii_case(name));
    literal || configured || name.eq_ignore_ascii_case("localhost")
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}
