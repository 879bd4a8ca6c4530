//! The SSRF guard: outbound HTTP to addresses that users or the operator configured.
//!
//! Owns: which addresses may be reached. An address from a user's request must not give access to this
//! machine or its network. The resolver checks the resolved addresses at connect time, and the client
//! connects only to the addresses that it returns, so DNS rebinding cannot bypass the check. Redirects are
//! not followed.

use crate::tls;
pub use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use url::{Host, Url};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

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
    /// The URL contains a user name, a password, a query or a fragment.
    Extra,
    /// The address belongs to this machine or a private network.
    Private,
}

impl AddressRejected {
    /// The violated rule, worded to follow the name of the field that holds the address.
    pub fn rule(self) -> &'static str {
        match self {
            Self::NotAUrl => "must be a URL, such as https://api.example.org/v1",
            Self::Scheme => "must start with https:// or http://",
            Self::Extra => "must not contain a user name, a password, a query or a fragment",
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

/// Parses a URL and applies every check that needs no DNS lookup.
pub fn address(text: &str, address_policy: AddressPolicy) -> Result<Url, AddressRejected> {
    let url = Url::parse(text.trim()).map_err(|_| AddressRejected::NotAUrl)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(AddressRejected::Scheme);
    }
    let extra = !url.username().is_empty() || url.password().is_some();
    if extra || url.query().is_some() || url.fragment().is_some() {
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
        false => Ok(url),
    }
}

/// Builds an HTTP client that enforces `address_policy` at DNS resolution too.
pub fn client(address_policy: AddressPolicy) -> Client {
    let mut tls = tls::client_config(Vec::new()).unwrap_or_else(|error| {
        tracing::warn!(%error, "no certificate store on this system: every HTTPS connection will fail");
        tls::trusting_no_certificate()
    });
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .user_agent(concat!("parlor/", env!("CARGO_PKG_VERSION")));
    let builder = match address_policy {
        AddressPolicy::Everywhere => builder,
        // A proxy would resolve names itself and so bypass the check of the resolver.
        AddressPolicy::Public => builder.no_proxy().dns_resolver(Arc::new(PublicOnly)),
    };
    builder.build().expect("a client with a complete TLS configuration can be built")
}

/// Whether a request of a [`client`] failed because the host name resolved to a private address.
pub fn is_address_rejected(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<AddressRejected>() {
            return true;
        }
        cause = error.source();
    }
    false
}

struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(require_public(addresses)?.into_iter()) as Addrs)
        })
    }
}

/// Rejects the whole list if any address is private: a legitimate public name does not resolve to both.
fn require_public(addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, AddressRejected> {
    match addresses.iter().all(|address| is_public(address.ip())) {
        true => Ok(addresses),
        false => Err(AddressRejected::Private),
    }
}

/// Whether the address is globally reachable on the internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match a {
        0 | 10 | 127 => true,
        // Carrier-grade NAT.
        100 => (64..128).contains(&b),
        // Link-local, including the metadata services of cloud providers.
        169 => b == 254,
        172 => (16..32).contains(&b),
        192 => matches!((b, c), (0, 0) | (0, 2) | (88, 99) | (168, _)),
        198 => matches!((b, c), (18 | 19, _) | (51, 100)),
        203 => (b, c) == (0, 113),
        // Multicast, reserved, broadcast.
        _ => a >= 224,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    let inner = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // NAT64 and 6to4, which embed an IPv4 address.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => inner(high, low),
        [0x2002, high, low, ..] => inner(high, low),
        // IETF protocol assignments, including Teredo, and the documentation range.
        [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
        [0x3fff, second, ..] => second >= 0x1000,
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_internet_addresses_are_public() {
        let private = [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "192.0.0.192",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "3fff::1",
            "100::1",
        ];
        for text in private {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ];
        for text in public {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

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
            ("https://example.com/?key=1", AddressRejected::Extra),
            ("https://example.com/#a", AddressRejected::Extra),
        ] {
            for address_policy in [AddressPolicy::Public, AddressPolicy::Everywhere] {
                assert_eq!(address(text, address_policy), Err(why), "{text}");
            }
        }
        assert!(address(" https://api.example.com/v1 ", AddressPolicy::Public).is_ok());
    }

    #[test]
    fn a_name_with_one_private_address_is_rejected_entirely() {
        let public: SocketAddr = "8.8.8.8:0".parse().unwrap();
        let private: SocketAddr = "[::ffff:10.0.0.1]:0".parse().unwrap();
        assert_eq!(require_public(vec![public]), Ok(vec![public]));
        assert_eq!(require_public(vec![public, private]), Err(AddressRejected::Private));
    }

    #[tokio::test]
    async fn a_resolved_address_is_checked_at_connect_time() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // `localhost` stands for a name whose DNS record changed after `address` had checked the URL.
        let request = client(AddressPolicy::Public).get(format!("http://localhost:{port}/")).send();
        let error = tokio::select! {
            error = request => error.unwrap_err(),
            _ = listener.accept() => panic!("connected to this machine"),
        };
        assert!(is_address_rejected(&error), "{error:?}");
    }
}
