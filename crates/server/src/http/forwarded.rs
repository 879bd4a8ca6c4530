//! Client address behind trusted proxies, from the `X-Forwarded-For` header.

use http::HeaderMap;
use std::net::IpAddr;
use std::str::FromStr;

/// Header to which each proxy appends the address that it received the request from.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// An IP address, or a network in CIDR notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    pub fn contains(&self, address: IpAddr) -> bool {
        let shared = |own: u128, other: u128, width: u32| {
            let rest = width - self.bits;
            // `checked_shr` returns `None` for a shift by the full width of a u128.
            own.checked_shr(rest).unwrap_or(0) == other.checked_shr(rest).unwrap_or(0)
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                shared(u32::from(own).into(), u32::from(other).into(), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => shared(own.into(), other.into(), 128),
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(drop)?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(width), |bits| bits.parse().map_err(drop))?;
        if bits <= width { Ok(Self { address, bits }) } else { Err(()) }
    }
}

/// Client address of a request: the last address in the chain that is not a trusted proxy. The entries before
/// it are ignored, because that client may have forged them.
pub fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let lines = headers.get_all(FORWARDED_FOR).into_iter().filter_map(|line| line.to_str().ok());
    let hops: Vec<&str> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
    let mut address = peer;
    for hop in hops.into_iter().rev() {
        let is_trusted = trusted.iter().any(|network| network.contains(address));
        match hop.parse() {
            Ok(before) if is_trusted => address = before,
            _ => break,
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_or_its_first_bits() {
        let contains = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("10.0.0.0/8", "10.1.2.3") && !contains("10.0.0.0/8", "11.1.2.3"));
        assert!(contains("127.0.0.1", "::ffff:127.0.0.1") && !contains("127.0.0.1", "127.0.0.2"));
        assert!(contains("fd00::/8", "fd12::1") && !contains("fd00::/8", "10.0.0.1"));
        assert!(contains("0.0.0.0/0", "192.0.2.1") && !contains("0.0.0.0/0", "::1"));
        for invalid in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/x", "localhost", "/8"] {
            assert!(invalid.parse::<Network>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn only_trusted_proxies_determine_the_client_address() {
        let trusted: Vec<Network> = ["127.0.0.1", "10.0.0.0/8"].map(|text| text.parse().unwrap()).into();
        let check = |peer: &str, chain: &[&str], expected: &str| {
            let mut headers = HeaderMap::new();
            for line in chain {
                headers.append(FORWARDED_FOR, line.parse().unwrap());
            }
            let found = client(peer.parse().unwrap(), &headers, &trusted);
            assert_eq!(found, expected.parse::<IpAddr>().unwrap(), "{peer} {chain:?}");
        };
        check("192.0.2.1", &["198.51.100.7"], "192.0.2.1");
        check("127.0.0.1", &[], "127.0.0.1");
        check("127.0.0.1", &["198.51.100.7"], "198.51.100.7");
        check("127.0.0.1", &["203.0.113.9, 198.51.100.7"], "198.51.100.7");
        check("127.0.0.1", &["203.0.113.9, 198.51.100.7, 10.1.1.1"], "198.51.100.7");
        check("127.0.0.1", &["203.0.113.9", "198.51.100.7 , 10.1.1.1"], "198.51.100.7");
        check("127.0.0.1", &["nonsense, 10.1.1.1"], "10.1.1.1");
        check("127.0.0.1", &["2001:db8::7"], "2001:db8::7");
    }
}
