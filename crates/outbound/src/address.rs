//! Checks of a configured address that need no DNS lookup.

use crate::public::is_public;
use std::fmt;
use url::{Host, Url};

/// Which addresses a client may connect to, depending on who configured the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressPolicy {
    /// Any address, such as a model server on this machine: the operator configured it.
    Everywhere,
    /// Public internet addresses only: a user configured it.
    Public,
}

/// Why an address was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressRejected {
    NotAUrl,
    /// Neither `http` nor `https`.
    Scheme,
    /// The URL contains a user name, a password or a fragment.
    Extra,
    Query,
    /// The address belongs to this machine or a private network.
    Private,
}

impl AddressRejected {
    /// The violated rule, worded to follow the name of the field that holds the address.
    pub fn rule(self) -> &'static str {
        match self {
            Self::NotAUrl => "must be a URL, such as https://api.example.org/v1",
            Self::Scheme => "must start with https:// or http://",
            Self::Extra => "must not contain a user name, a password or a fragment",
            Self::Query => "must not contain a query",
            Self::Private => "must not point to a private network",
        }
    }
}

impl fmt::Display for AddressRejected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the address {}", self.rule())
    }
}

impl std::error::Error for AddressRejected {}

/// Parses the URL of an API and applies every check that needs no DNS lookup. A query is rejected, because callers
/// append paths to the address.
pub fn address(text: &str, address_policy: AddressPolicy) -> Result<Url, AddressRejected> {
    let url = address_with_query(text, address_policy)?;
    if url.query().is_some() { Err(AddressRejected::Query) } else { Ok(url) }
}

/// Parses a complete URL, which may have a query, and applies every check that needs no DNS lookup.
pub fn address_with_query(text: &str, address_policy: AddressPolicy) -> Result<Url, AddressRejected> {
    let url = Url::parse(text.trim()).map_err(|_| AddressRejected::NotAUrl)?;
    check(&url, address_policy)?;
    Ok(url)
}

/// Applies every check that needs no DNS lookup.
pub(crate) fn check(url: &Url, address_policy: AddressPolicy) -> Result<(), AddressRejected> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(AddressRejected::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(AddressRejected::Extra);
    }
    let is_private = match url.host().ok_or(AddressRejected::NotAUrl)? {
        Host::Ipv4(address) => !is_public(address.into()),
        Host::Ipv6(address) => !is_public(address.into()),
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            let local = [".localhost", ".local", ".internal", ".home.arpa"];
            !name.contains('.') || local.iter().any(|ending| name.ends_with(ending))
        }
    };
    match is_private && address_policy == AddressPolicy::Public {
        true => Err(AddressRejected::Private),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_address_is_checked_before_any_dns_lookup() {
        let private = [
            "http://localhost:11434/v1",
            "http://LOCALHOST./",
            "https://2130706433/",
            "http://0x7f.1/",
            "http://017700000001/",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://127.1/",
            "http://169.254.169.254/latest/meta-data",
            "http://metadata.google.internal/",
            "http://printer.local/",
            "http://intranet/",
            "http://a.localhost/",
            "http://１２７.０.０.１/",
        ];
        for text in private {
            assert_eq!(address(text, AddressPolicy::Public), Err(AddressRejected::Private), "{text}");
            assert!(address(text, AddressPolicy::Everywhere).is_ok(), "{text}");
        }
        for (text, why) in [
            ("file:///etc/passwd", AddressRejected::Scheme),
            ("gopher://example.com/", AddressRejected::Scheme),
            ("javascript:alert(1)", AddressRejected::Scheme),
            ("example.com", AddressRejected::NotAUrl),
            ("", AddressRejected::NotAUrl),
            ("https://me:secret@example.com/", AddressRejected::Extra),
            ("https://example.com/?key=1", AddressRejected::Query),
            ("https://example.com/#a", AddressRejected::Extra),
        ] {
            for address_policy in [AddressPolicy::Public, AddressPolicy::Everywhere] {
                assert_eq!(address(text, address_policy), Err(why), "{text}");
            }
        }
        assert!(address(" https://api.example.com/v1 ", AddressPolicy::Public).is_ok());
        assert!(address_with_query("https://example.com/hook?key=1", AddressPolicy::Public).is_ok());
        let private = address_with_query("http://127.0.0.1/hook?key=1", AddressPolicy::Public);
        assert_eq!(private, Err(AddressRejected::Private));
    }
}
