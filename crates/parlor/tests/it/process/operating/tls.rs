//! Tests of TLS in the hub itself: one port for all protocols, certificate renewal, and clients that do not
//! use TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parlor_testkit::agentim::Client;
use parlor_testkit::hub::{ADMIN, Hub, HubCommand, PASSWORD};
use parlor_testkit::socket::{Socket, TEST_TIMEOUT};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::process::command_line::refused;
use crate::scene::PARLOR;

/// A certificate for `localhost`, with its key.
struct Identity {
    certificate: String,
    key: String,
    der: CertificateDer<'static>,
}

impl Identity {
    fn new() -> Self {
        let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let der = generated.cert.der().clone();
        Self { certificate: generated.cert.pem(), key: generated.signing_key.serialize_pem(), der }
    }
}

struct TlsHub {
    data: TempDir,
    hub: Hub,
    known: Identity,
}

impl TlsHub {
    async fn open() -> Self {
        let data = tempfile::tempdir().unwrap();
        let known = Identity::new();
        let (certificate, key) = files(data.path());
        std::fs::write(&certificate, &known.certificate).unwrap();
        std::fs::write(&key, &known.key).unwrap();
        let command = HubCommand::process(PARLOR, &data.path().join("data"))
            .env("PARLOR_TLS_CERT", certificate.to_str().unwrap())
            .env("PARLOR_TLS_KEY", key.to_str().unwrap());
        let hub = command.start().await.unwrap();
        Self { data, hub, known }
    }

    fn address(&self) -> &str {
        self.hub.url().strip_prefix("https://").expect("the printed URL is https")
    }

    /// Overwrites certificate and key, one after the other.
    fn renew(&self, certificate: &str, key: &str) {
        let files = files(self.data.path());
        std::fs::write(files.0, certificate).unwrap();
        std::fs::write(files.1, key).unwrap();
    }

    async fn plain(&self) -> TcpStream {
        TcpStream::connect(self.address()).await.unwrap()
    }

    async fn connect(&self, trusted: &Identity) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.der.clone()).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, self.plain().await).await
    }

    /// Sends a request over TLS and returns the full response.
    async fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = self.connect(&self.known).await.unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn sign_in(&self) -> (String, Client) {
        let body = json!({ "username": ADMIN, "password": PASSWORD }).to_string();
        let answer = self.ask("POST", "/api/auth/login", &body).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let data: Value = serde_json::from_str(body).unwrap();
        let stream = self.connect(&self.known).await.unwrap();
        let socket = Socket::upgrade(stream, "localhost", "/ws/client", &[]).await.unwrap();
        let mut client = Client(socket);
        let token = &data["data"]["accessToken"];
        client.send(&json!({ "type": "client:auth", "token": token })).await.unwrap();
        assert_eq!(client.wait_for_type("server:auth_result").await.unwrap()["ok"], true);
        (head.to_owned(), client)
    }
}

fn files(directory: &Path) -> (PathBuf, PathBuf) {
    (directory.join("chain.pem"), directory.join("key.pem"))
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_and_websockets_are_served_over_tls_on_the_one_port() {
    let mut tls_hub = TlsHub::open().await;
    assert!(tls_hub.ask("GET", "/api/health", "").await.starts_with("HTTP/1.1 200"));
    let (head, mut client) = tls_hub.sign_in().await;
    assert!(head.contains("; Secure"), "the cookie goes over TLS only: {head}");
    // Frames of different sizes arrive intact, whatever the boundaries of the TLS records.
    for size in [0, 1, 16_384, 60_000] {
        let ping = json!({ "type": "client:ping", "ts": size, "filler": "x".repeat(size) });
        client.send(&ping).await.unwrap();
        assert_eq!(client.wait_for_type("server:pong").await.unwrap()["ts"], size);
    }
    tls_hub.hub.stop(Duration::from_secs(10)).await.unwrap();
    let frame = client.wait_for(TEST_TIMEOUT, |frame| frame["code"] == "SERVER_SHUTDOWN").await;
    frame.expect("the hub announces the shutdown");
    assert_eq!(client.closed(TEST_TIMEOUT).await.unwrap(), 1001);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_used_without_a_restart_and_a_broken_one_is_not() {
    let mut tls_hub = TlsHub::open().await;
    let (_, mut client) = tls_hub.sign_in().await;
    let next = Identity::new();
    tls_hub.renew(&next.certificate, &next.key);
    let began = Instant::now();
    while tls_hub.connect(&next).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(20), "the new certificate is not used");
    }
    assert!(tls_hub.connect(&tls_hub.known).await.is_err(), "the old certificate is not used any more");
    client.send(&json!({ "type": "client:ping", "ts": 1 })).await.unwrap();
    client.wait_for_type("server:pong").await.expect("open connections survive the renewal");

    let other = Identity::new();
    for (certificate, key) in [("rubbish", "rubbish"), (other.certificate.as_str(), next.key.as_str())] {
        let logged = tls_hub.hub.log().matches("the old one stays").count();
        tls_hub.renew(certificate, key);
        tls_hub.hub.hang_up().unwrap();
        let began = Instant::now();
        while tls_hub.hub.log().matches("the old one stays").count() == logged {
            assert!(began.elapsed() < TEST_TIMEOUT, "no warning is logged: {}", tls_hub.hub.log());
            tls_hub.connect(&next).await.expect("the old one stays");
        }
        tls_hub.connect(&next).await.expect("the old one stays");
    }
    assert!(!tls_hub.hub.log().contains("PRIVATE KEY"));
    tls_hub.hub.stop(Duration::from_secs(10)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_with_an_unfinished_handshake_are_disconnected_while_others_are_served() {
    let tls_hub = TlsHub::open().await;
    let open_files = || {
        let id = tls_hub.hub.process_id().unwrap();
        std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().count()
    };
    let before = open_files();
    let mut waiting = JoinSet::new();
    let beginnings: [&[u8]; 5] =
        [b"", b"\x16\x03\x01\x02\x00\x01", b"\x16\xff\xff\xff\xff", b"\x80\x00", b"SSH-2.0-x\r\n"];
    for beginning in beginnings.iter().cycle().take(100) {
        let mut stream = tls_hub.plain().await;
        stream.write_all(beginning).await.unwrap();
        waiting.spawn(async move {
            let mut received = Vec::new();
            let read = tokio::time::timeout(TEST_TIMEOUT, stream.read_to_end(&mut received)).await;
            read.expect("the hub disconnects").ok();
        });
    }
    assert!(tls_hub.ask("GET", "/api/health", "").await.starts_with("HTTP/1.1 200"));
    while let Some(closed) = waiting.join_next().await {
        closed.unwrap();
    }
    let began = Instant::now();
    while open_files() > before {
        assert!(began.elapsed() < TEST_TIMEOUT, "{} files are open, {before} were", open_files());
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_on_the_tls_port_is_answered_with_400() {
    let tls_hub = TlsHub::open().await;
    let mut stream = tls_hub.plain().await;
    stream.write_all(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut response = String::new();
    tokio::time::timeout(TEST_TIMEOUT, stream.read_to_string(&mut response)).await.unwrap().unwrap();
    let reason = "This port speaks HTTPS only\n";
    assert!(response.starts_with("HTTP/1.1 400") && response.ends_with(reason), "{response}");
}

#[test]
fn a_start_with_invalid_tls_files_fails_with_a_one_line_error() {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = files(directory.path());
    let data = directory.path().join("data");
    let start = |cert: &Path, key: &Path| {
        let arguments = ["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
        let tls = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
        let output = refused(&[arguments, tls].concat(), &[]);
        assert_eq!(output.lines().count(), 1, "{output}");
        output
    };
    assert!(start(&certificate, &key).contains("chain.pem"));
    let (first, second) = (Identity::new(), Identity::new());
    std::fs::write(&certificate, &first.certificate).unwrap();
    assert!(start(&certificate, &key).contains("key.pem"));
    std::fs::write(&key, &second.key).unwrap();
    assert!(start(&certificate, &key).contains("cannot be used together"));
    std::fs::write(&certificate, "no certificate\n").unwrap();
    assert!(start(&certificate, &key).contains("there is no certificate in"));
    let output = refused(&["--tls-cert", "chain.pem", "config", "check"], &[]);
    assert!(output.contains("tls_key: must be set together with tls_cert"), "{output}");
}
