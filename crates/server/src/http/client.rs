//! Who asks. Clients share the queue fairly ([`crate::scheduler`]), and this is what they are told apart by: their API
//! key where keys are needed, their address otherwise.
//!
//! A proxy on this machine says for whom it asks in `X-Forwarded-For`; its last entry is the one that the proxy has
//! added itself. Only hashes are kept, with a seed that each process draws.

use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::LazyLock;

use axum::http::HeaderMap;

/// A client, as far as the queue knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Client(u64);

/// The address at the other end of a connection; every request on it carries it.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

impl Client {
    /// The client with this API key.
    pub fn of_key(key: &str) -> Self {
        Self::hashed(key)
    }

    /// The client at an address, or behind the proxy there.
    pub fn of_address(peer: Option<Peer>, headers: &HeaderMap) -> Self {
        let Some(Peer(address)) = peer else {
            return Self::default();
        };
        let forwarded = || {
            let value = headers.get_all("x-forwarded-for").iter().next_back()?;
            let last = value.to_str().ok()?.rsplit(',').next()?.trim();
            last.parse().ok()
        };
        let proxied = address.is_loopback().then(forwarded).flatten();
        Self::hashed(network(proxied.unwrap_or(address)))
    }

    fn hashed(what: impl Hash) -> Self {
        static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(SEED.hash_one(what))
    }
}

/// A household has one address of version 4, and 2^64 of version 6 that begin alike.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => v4.into(),
            None => std::net::Ipv6Addr::from(u128::from(v6) >> 64 << 64).into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, forwarded: &[&str]) -> Client {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().expect("a header"));
        }
        Client::of_address(Some(Peer(peer.parse().expect("an address"))), &headers)
    }

    #[test]
    fn a_client_is_its_address_and_behind_a_proxy_on_this_machine_what_that_says() {
        let one = client("192.0.2.1", &[]);
        assert_eq!(one, client("::ffff:192.0.2.1", &[]));
        assert_ne!(one, client("192.0.2.2", &[]));
        assert_eq!(client("2001:db8::1", &[]), client("2001:db8::2:1", &[]));
        assert_ne!(client("2001:db8::1", &[]), client("2001:db8:0:1::1", &[]));
        // The last one is the proxy's own, whatever the client wrote before it.
        assert_eq!(one, client("127.0.0.1", &["203.0.113.9, 192.0.2.1"]));
        assert_eq!(one, client("::1", &["203.0.113.9", "192.0.2.1"]));
        assert_eq!(client("127.0.0.1", &["nonsense"]), client("127.0.0.1", &[]));
        // Others are not believed.
        assert_eq!(one, client("192.0.2.1", &["203.0.113.9"]));
    }
}
