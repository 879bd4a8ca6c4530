//! Whom a request comes from when a proxy brought it.

use http::HeaderMap;
use std::net::IpAddr;
use std::str::FromStr;

/// Where proxies write down whom they speak for, each behind the one before.
const CHAIN: &str = "x-forwarded-for";

/// An address, or all that begin like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    pub fn contains(&self, address: IpAddr) -> bool {
        let shared = |own: u128, other: u128, width: u32| {
            let rest = width - self.bits;
            // A shift by the whole width is none at all.
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

/// The address behind those that are trusted to say for whom they speak. What comes before it in the chain was written
/// by whoever has that address, and is worth nothing.
pub fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let lines = headers.get_all(CHAIN).into_iter().filter_map(|line| line.to_str().ok());
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
        let within = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(within("10.0.0.0/8", "10.1.2.3") && !within("10.0.0.0/8", "11.1.2.3"));
        assert!(within("127.0.0.1", "::ffff:127.0.0.1") && !within("127.0.0.1", "127.0.0.2"));
        assert!(within("fd00::/8", "fd12::1") && !within("fd00::/8", "10.0.0.1"));
        assert!(within("0.0.0.0/0", "192.0.2.1") && !within("0.0.0.0/0", "::1"));
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/x", "localhost", "/8"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_trusted_proxies_are_believed_and_only_about_who_spoke_to_them() {
        let trusted: Vec<Network> = ["127.0.0.1", "10.0.0.0/8"].map(|text| text.parse().unwrap()).into();
        let check = |peer: &str, chain: &[&str], expected: &str| {
            let mut headers = HeaderMap::new();
            for line in chain {
                headers.append(CHAIN, line.parse().unwrap());
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
