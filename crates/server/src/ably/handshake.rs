//! Handshake of a realtime connection: the parameters of its URL.

use super::session::{AblyConnection, ConnectionRequest};
use crate::App;
use crate::connection::session_loop;
use crate::connection::upgrade::{asks_for_upgrade, upgrade_from_any_origin};
use crate::http::Peer;
use crate::http::problem::Problem;
use crate::web_app;
use axum::extract::{Query, Request, State};
use axum::response::Response;
use http::Uri;
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::frames::{Format, VERSIONS};
use std::net::IpAddr;
use std::sync::Arc;

/// Parameters of the URL. The type has no `Debug`, because it contains secrets.
pub struct Handshake {
    pub key: Option<Box<str>>,
    pub token: Option<Box<str>>,
    pub client_id: Option<Box<str>>,
    /// Connection key of `resume` or `recover`.
    pub resume: Option<Box<str>>,
    pub format: Format,
    /// Whether the client receives its own messages.
    pub echo: bool,
    /// Whether the client needs HEARTBEAT frames, because it cannot see the pings of the WebSocket.
    pub heartbeats: bool,
    pub address: IpAddr,
    /// Error of a parameter that the hub does not support.
    pub error: Option<ErrorInfo>,
}

impl Handshake {
    fn parse(uri: &Uri, address: IpAddr) -> Self {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri).map(|Query(pairs)| pairs);
        let malformed = pairs.is_err();
        let pairs = pairs.unwrap_or_default();
        let find = |name: &str| {
            let pair = pairs.iter().find(|(key, value)| key == name && !value.is_empty());
            pair.map(|(_, value)| value.as_str())
        };
        let owned = |name: &str| find(name).map(Box::<str>::from);
        let format = Format::parse(find("format"));
        let is_supported = match find("v") {
            None => true,
            Some(text) => text.parse::<u32>().is_ok_and(|version| VERSIONS.contains(&version)),
        };
        let invalid = |message: &'static str| ErrorInfo::new(codes::INVALID_PARAMETER, message);
        let error = if malformed {
            Some(invalid("The query of the URL is malformed"))
        } else if !is_supported {
            Some(invalid("The hub supports the protocol versions 2 to 6"))
        } else if format.is_none() {
            Some(invalid("format must be json or msgpack"))
        } else {
            None
        };
        Self {
            key: owned("key"),
            token: owned("access_token").or_else(|| owned("accessToken")),
            client_id: owned("clientId"),
            resume: owned("resume").or_else(|| owned("recover")),
            format: format.unwrap_or(Format::Json),
            echo: find("echo") != Some("false"),
            // Client libraries before version 2 do not send the parameter and expect HEARTBEAT frames.
            heartbeats: find("heartbeats") != Some("false"),
            address,
            error,
        }
    }
}

/// Serves `/`: a WebSocket is a realtime connection, any other request gets the web app. Pages of any origin may
/// connect, because the credential is a key or a token, never a cookie.
pub async fn mount(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    if !asks_for_upgrade(request.headers()) {
        return Ok(web_app::home(request.headers().clone()).await);
    }
    let address = request.extensions().get::<Peer>().copied().unwrap_or_default().0.ip();
    let handshake = Handshake::parse(request.uri(), address);
    let (shared, connection) = (app.clone(), AblyConnection::new(&app, &handshake));
    upgrade_from_any_origin(&app, request, move |upgraded| {
        let first = ConnectionRequest::Connect(Box::new(handshake));
        session_loop::run(shared, upgraded, connection, Some(first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn parse(uri: &str) -> Handshake {
        Handshake::parse(&uri.parse().unwrap(), Ipv4Addr::LOCALHOST.into())
    }

    #[test]
    fn a_recorded_url_is_understood() {
        let handshake = parse(
            "/?key=localapp.key0%3Asecret0&clientId=alice&format=json&heartbeats=false&v=6&agent=ably-js%2F2.28.0%20nodejs",
        );
        assert_eq!(handshake.key.as_deref(), Some("localapp.key0:secret0"));
        assert_eq!(handshake.client_id.as_deref(), Some("alice"));
        assert!(handshake.format == Format::Json && handshake.echo && !handshake.heartbeats);
        assert!(handshake.error.is_none() && handshake.resume.is_none());
    }

    #[test]
    fn tokens_and_keys_of_connections_have_two_names_each() {
        for name in ["access_token", "accessToken"] {
            assert_eq!(parse(&format!("/?{name}=a.b")).token.as_deref(), Some("a.b"));
        }
        for name in ["resume", "recover"] {
            assert_eq!(parse(&format!("/?{name}=a!b")).resume.as_deref(), Some("a!b"));
        }
    }

    #[test]
    fn unsupported_parameters_are_an_error() {
        for bad in ["/?v=1", "/?v=7", "/?v=x", "/?format=xml"] {
            assert_eq!(parse(bad).error.map(|error| error.code), Some(codes::INVALID_PARAMETER), "{bad}");
        }
        for good in ["/", "/?v=2&format=msgpack", "/?v=6"] {
            assert!(parse(good).error.is_none(), "{good}");
        }
    }
}
