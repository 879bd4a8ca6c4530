//! Keeps other people's web pages out: which `Host` and `Origin` may open a socket or use a cookie.

use crate::Config;
use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use std::net::IpAddr;

/// Whether a request may come from where it says it does. Programs send no `Origin`; a browser always does.
pub fn is_allowed(headers: &HeaderMap, config: &Config) -> bool {
    let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else { return false };
    if !host_is_ours(host, config) {
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

/// A name that nobody told us is ours may be somebody's who points it at us: an address may not.
fn host_is_ours(host: &str, config: &Config) -> bool {
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
