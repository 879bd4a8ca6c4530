//! Requests and responses of Ably's REST API: their encodings, errors, pages, and access by pages of other origins.
//!
//! Clients compare `Content-Type` with `application/json` as a whole, so a response has no `charset`. Browsers cannot
//! read the header `Link` and ask for an envelope around the response instead.

use super::credentials::{self, AblyCaller};
use crate::App;
use crate::http::Peer;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Query, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, LINK,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::frames::Format;
use parlor_wire::ably::rest::{Envelope, ErrorBody};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

const JSON: &str = "application/json";
const MSGPACK: &str = "application/x-msgpack";
const ERROR_CODE: HeaderName = HeaderName::from_static("x-ably-errorcode");
const ERROR_MESSAGE: HeaderName = HeaderName::from_static("x-ably-errormessage");
/// Timeout for the complete body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Head of a request: parameters, headers, and the encoding of the response.
pub struct AblyRequest {
    /// Decoded parameters of the query.
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub address: IpAddr,
    /// Encoding of the response.
    format: Format,
    /// Whether the response is wrapped in an object with its status and headers.
    envelope: bool,
}

impl FromRequestParts<Arc<App>> for AblyRequest {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Self::Rejection> {
        let Ok(Peer(address)) = Peer::from_request_parts(parts, app).await;
        let query = Query::try_from_uri(&parts.uri).map(|Query(pairs)| pairs).unwrap_or_default();
        Ok(Self::new(query, parts.headers.clone(), address.ip()))
    }
}

impl AblyRequest {
    fn new(query: Vec<(String, String)>, headers: HeaderMap, address: IpAddr) -> Self {
        let given = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| &**value);
        let envelope = given("envelope");
        let accepts = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        // The client library asks for the status of a channel with an envelope in its own encoding.
        let named = envelope.or(given("format"));
        let msgpack = named.map_or_else(|| accepts.contains(MSGPACK), |format| format == "msgpack");
        let format = if msgpack { Format::Msgpack } else { Format::Json };
        let envelope = envelope.is_some();
        Self { query, headers, address, format, envelope }
    }

    /// Verifies the credential of the request.
    pub async fn caller(&self, app: &App) -> Result<AblyCaller, ErrorInfo> {
        credentials::of_request(app, &self.headers, &self.query, self.address).await
    }

    /// Returns the first parameter with this name.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.pairs().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.query.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns the encoding of the body, by its `Content-Type`.
    pub fn body_format(&self) -> Result<Format, ErrorInfo> {
        let given = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or(JSON);
        match given.split(';').next().unwrap_or_default().trim() {
            MSGPACK => Ok(Format::Msgpack),
            JSON | "" => Ok(Format::Json),
            _ => Err(ErrorInfo::new(codes::BAD_REQUEST, "Content-Type is not supported")),
        }
    }

    /// Reads and decodes a body of at most `limit` bytes.
    pub async fn decode<T: DeserializeOwned>(&self, body: Body, limit: usize) -> Result<T, ErrorInfo> {
        self.body_format()?.decode(&read(body, limit).await?)
    }

    /// Encodes the response to a successful request.
    pub fn success(&self, status: StatusCode, body: &impl Serialize) -> Response {
        self.encode(status, body, &[])
    }

    /// Encodes one page of results; `link` is the value of the header `Link`.
    pub fn page(&self, body: &impl Serialize, link: &str) -> Response {
        self.encode(StatusCode::OK, body, &[(LINK, link.to_owned())])
    }

    pub fn error(&self, error: ErrorInfo) -> Response {
        let status = StatusCode::from_u16(error.status_code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let message = error.message.chars().filter(|c| c.is_ascii() && !c.is_control()).collect();
        let mut headers = vec![(ERROR_CODE, error.code.to_string()), (ERROR_MESSAGE, message)];
        if error.code == codes::TOO_LARGE {
            // The hub may not have read the rest of the body, so the client must not send another request on this
            // connection.
            headers.push((CONNECTION, "close".to_owned()));
        }
        self.encode(status, &ErrorBody { error }, &headers)
    }

    /// Returns the response, or encodes the error.
    pub fn finish(&self, result: Result<Response, ErrorInfo>) -> Response {
        result.unwrap_or_else(|error| self.error(error))
    }

    fn encode(
        &self,
        status: StatusCode,
        body: &impl Serialize,
        headers: &[(HeaderName, String)],
    ) -> Response {
        let (status, bytes) = if self.envelope {
            let headers = headers.iter().map(|(name, value)| (name.as_str(), value.clone()));
            let headers: BTreeMap<_, _> = headers.collect();
            let wrapped = Envelope { status_code: status.as_u16(), headers, response: body };
            (StatusCode::OK, self.format.encode(&wrapped))
        } else {
            (status, self.format.encode(body))
        };
        let content_type = match self.format {
            Format::Json => JSON,
            Format::Msgpack => MSGPACK,
        };
        let mut response = (status, bytes).into_response();
        let target = response.headers_mut();
        target.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        target.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for (name, value) in headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                target.insert(name.clone(), value);
            }
        }
        response
    }
}

/// Reads a body of at most `limit` bytes.
pub async fn read(body: Body, limit: usize) -> Result<Bytes, ErrorInfo> {
    let collected = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, limit).collect()).await;
    let unread = || ErrorInfo::new(codes::BAD_REQUEST, "The body could not be read");
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => Err(ErrorInfo::new(
            codes::TOO_LARGE,
            format!("The body exceeds the maximum size of {limit} bytes"),
        )),
        Ok(Err(_)) | Err(_) => Err(unread()),
    }
}

/// Layer of all routes: lets pages of any origin use them, and answers the preflight requests of browsers. The routes
/// accept no cookie, so a foreign page has only the rights of the credential that it sends.
pub async fn allow_any_origin(request: Request, next: Next) -> Response {
    let is_preflight = request.method() == Method::OPTIONS;
    let mut response =
        if is_preflight { StatusCode::NO_CONTENT.into_response() } else { next.run(request).await };
    let headers = response.headers_mut();
    let mut insert = |name, value| headers.insert(name, HeaderValue::from_static(value));
    insert(ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    if is_preflight {
        insert(ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE");
        let accepted = "Authorization, Content-Type, Accept, Ably-Agent, X-Ably-Version, X-Ably-ClientId, \
                        X-Ably-Lib, X-Ably-Envelope";
        insert(ACCESS_CONTROL_ALLOW_HEADERS, accepted);
        insert(ACCESS_CONTROL_MAX_AGE, "86400");
    } else {
        insert(ACCESS_CONTROL_EXPOSE_HEADERS, "Link, X-Ably-Errorcode, X-Ably-Errormessage");
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn request(query: &[(&str, &str)], accept: &'static str) -> AblyRequest {
        let query = query.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let headers = [(ACCEPT, HeaderValue::from_static(accept))].into_iter().collect();
        AblyRequest::new(query, headers, Ipv4Addr::LOCALHOST.into())
    }

    async fn parts(response: Response) -> (u16, HeaderMap, Bytes) {
        let (parts, body) = response.into_parts();
        (parts.status.as_u16(), parts.headers, body.collect().await.unwrap().to_bytes())
    }

    #[tokio::test]
    async fn an_error_has_the_form_that_clients_parse() {
        let error = || ErrorInfo::new(codes::TOKEN_EXPIRED, "Tökén has\nexpired");
        let (status, headers, body) = parts(request(&[], "application/json").error(error())).await;
        assert_eq!(status, 401);
        assert_eq!(headers[CONTENT_TYPE], "application/json");
        assert_eq!(headers[ERROR_CODE], "40142");
        assert_eq!(headers[ERROR_MESSAGE], "Tkn hasexpired");
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&body["error"]["code"], &body["error"]["statusCode"]), (&40142.into(), &401.into()));
        let (_, headers, body) = parts(request(&[], MSGPACK).error(error())).await;
        assert_eq!(headers[CONTENT_TYPE], MSGPACK);
        assert_eq!(Format::Msgpack.decode::<ErrorBody>(&body).unwrap().error.code, 40142);
    }

    #[tokio::test]
    async fn browsers_get_status_and_headers_in_the_body() {
        let request = request(&[("envelope", "json"), ("format", "msgpack")], MSGPACK);
        let (status, _, body) = parts(request.page(&["a"], "<./messages?>; rel=\"first\"")).await;
        let expected =
            r#"{"statusCode":200,"headers":{"link":"<./messages?>; rel=\"first\""},"response":["a"]}"#;
        assert_eq!((status, &*body), (200, expected.as_bytes()));
        let (status, headers, body) = parts(request.error(ErrorInfo::new(codes::NOT_FOUND, "x"))).await;
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (status, &body["statusCode"], &headers[CONTENT_TYPE]),
            (200, &404.into(), &JSON.parse().unwrap())
        );
        assert_eq!(body["response"]["error"]["code"], 40400);
    }
}
