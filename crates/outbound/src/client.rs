//! HTTP clients that apply an address policy to every connection.

use crate::address::{AddressPolicy, AddressRejected, check};
use crate::public::is_public;
use crate::tls;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, ClientBuilder};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Redirects that a client follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// The client returns the answer with the redirect.
    Return,
    /// Up to three redirects, each of which passes the checks of a new address. A redirect from `https` to `http` is
    /// rejected.
    Follow,
}

impl Redirects {
    const MAX_FOLLOWED: usize = 3;
}

/// Builds an HTTP client that enforces `address_policy` at DNS resolution too and follows no redirect.
pub fn client(address_policy: AddressPolicy) -> Client {
    client_with(address_policy, Redirects::Return)
}

/// Builds an HTTP client that enforces `address_policy` at DNS resolution and for each redirect.
pub fn client_with(address_policy: AddressPolicy, redirects: Redirects) -> Client {
    builder(address_policy, redirects)
        .build()
        .expect("a client with a complete TLS configuration can be built")
}

fn builder(address_policy: AddressPolicy, redirects: Redirects) -> ClientBuilder {
    let redirects = match redirects {
        Redirects::Return => Policy::none(),
        Redirects::Follow => Policy::custom(move |attempt| follow(attempt, address_policy)),
    };
    let mut tls = tls::client_config(Vec::new()).unwrap_or_else(|error| {
        tracing::warn!(%error, "no certificate store on this system: every HTTPS connection will fail");
        tls::trusting_no_certificate()
    });
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirects)
        .referer(false)
        .user_agent(concat!("parlor/", env!("CARGO_PKG_VERSION")));
    match address_policy {
        AddressPolicy::Everywhere => builder,
        // A proxy would resolve names itself and so bypass the check of the resolver.
        AddressPolicy::Public => builder.no_proxy().dns_resolver(Arc::new(PublicOnly)),
    }
}

fn follow(attempt: Attempt, address_policy: AddressPolicy) -> reqwest::redirect::Action {
    if attempt.previous().len() > Redirects::MAX_FOLLOWED {
        return attempt.error("more than three redirects");
    }
    let is_downgrade = attempt.url().scheme() == "http"
        && attempt.previous().last().is_some_and(|url| url.scheme() == "https");
    match check(attempt.url(), address_policy) {
        Err(rejected) => attempt.error(rejected),
        Ok(()) if is_downgrade => attempt.error("a redirect from https to http"),
        Ok(()) => attempt.follow(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

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

    /// A server that redirects `/n` to `/n-1`, and `/away` to the given address. Returns its port.
    async fn redirecting_server(away: &'static str) -> u16 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let (mut request, mut read) = (vec![0; 4096], 0);
                while !request[..read].ends_with(b"\r\n\r\n") {
                    read += socket.read(&mut request[read..]).await.unwrap();
                }
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let path = request.split(' ').nth(1).unwrap();
                let location = match path.trim_start_matches('/').parse::<u32>() {
                    Ok(0) => None,
                    Ok(left) => Some(format!("/{}", left - 1)),
                    Err(_) => Some(away.replace("PORT", &port.to_string())),
                };
                let answer = match location {
                    Some(location) => format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\n"),
                    None => "HTTP/1.1 204 No Content\r\n".to_owned(),
                };
                let answer = format!("{answer}content-length: 0\r\nconnection: close\r\n\r\n");
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        port
    }

    #[tokio::test]
    async fn up_to_three_redirects_are_followed() {
        let port = redirecting_server("").await;
        let get = async |redirects, path| {
            let client = client_with(AddressPolicy::Everywhere, redirects);
            client.get(format!("http://127.0.0.1:{port}{path}")).send().await
        };
        assert_eq!(get(Redirects::Follow, "/3").await.unwrap().status(), 204);
        assert!(get(Redirects::Follow, "/4").await.unwrap_err().is_redirect());
        assert_eq!(get(Redirects::Return, "/1").await.unwrap().status(), 302);
    }

    #[tokio::test]
    async fn each_redirect_passes_the_checks_of_a_new_address() {
        for away in ["http://127.0.0.1:PORT/0", "http://localhost:PORT/0", "http://me:secret@public.example/"]
        {
            let port = redirecting_server(away).await;
            // The first name resolves to this machine as if it were a public address.
            let client = builder(AddressPolicy::Public, Redirects::Follow)
                .resolve("public.example", SocketAddr::from(([127, 0, 0, 1], port)))
                .build()
                .unwrap();
            let url = format!("http://public.example:{port}");
            assert_eq!(client.get(format!("{url}/1")).send().await.unwrap().status(), 204);
            let error = client.get(format!("{url}/away")).send().await.unwrap_err();
            assert!(is_address_rejected(&error), "{away}: {error:?}");
        }
    }
}
