//! HTTPS by the hub itself: on its one port, with certificates that change, and with peers that speak something else.

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
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let der = made.cert.der().clone();
        Self { certificate: made.cert.pem(), key: made.signing_key.serialize_pem(), der }
    }
}

struct House {
    data: TempDir,
    hub: Hub,
    known: Identity,
}

impl House {
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
        self.hub.url().strip_prefix("https://").expect("it says that it speaks TLS")
    }

    /// Puts new files in place, one after the other.
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

    /// Sends a request and reads the answer to its end.
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
    let mut house = House::open().await;
    assert!(house.ask("GET", "/api/health", "").await.starts_with("HTTP/1.1 200"));
    let (head, mut client) = house.sign_in().await;
    assert!(head.contains("; Secure"), "the cookie goes over TLS only: {head}");
    // Answers of all sizes arrive whole, however the records fall.
    for size in [0, 1, 16_384, 60_000] {
        let ping = json!({ "type": "client:ping", "ts": size, "filler": "x".repeat(size) });
        client.send(&ping).await.unwrap();
        assert_eq!(client.wait_for_type("server:pong").await.unwrap()["ts"], size);
    }
    house.hub.stop(Duration::from_secs(10)).await.unwrap();
    let told = client.wait_for(TEST_TIMEOUT, |frame| frame["code"] == "SERVER_SHUTDOWN").await;
    told.expect("said good-bye");
    assert_eq!(client.closed(TEST_TIMEOUT).await.unwrap(), 1001);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_used_without_a_restart_and_a_broken_one_is_not() {
    let mut house = House::open().await;
    let (_, mut client) = house.sign_in().await;
    let next = Identity::new();
    house.renew(&next.certificate, &next.key);
    let began = Instant::now();
    while house.connect(&next).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(20), "the new certificate is not used");
    }
    assert!(house.connect(&house.known).await.is_err(), "the old one is gone");
    client.send(&json!({ "type": "client:ping", "ts": 1 })).await.unwrap();
    client.wait_for_type("server:pong").await.expect("connections outlive their certificate");

    let other = Identity::new();
    for (certificate, key) in [("rubbish", "rubbish"), (other.certificate.as_str(), next.key.as_str())] {
        let told = house.hub.log().matches("the old one stays").count();
        house.renew(certificate, key);
        house.hub.hang_up().unwrap();
        let began = Instant::now();
        while house.hub.log().matches("the old one stays").count() == told {
            assert!(began.elapsed() < TEST_TIMEOUT, "nothing is said: {}", house.hub.log());
            house.connect(&next).await.expect("the old one stays");
        }
        house.connect(&next).await.expect("the old one stays");
    }
    assert!(!house.hub.log().contains("PRIVATE KEY"));
    house.hub.stop(Duration::from_secs(10)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_do_not_finish_a_handshake_are_let_go_while_others_are_served() {
    let house = House::open().await;
    let open_files = || {
        let id = house.hub.process_id().unwrap();
        std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().count()
    };
    let before = open_files();
    let mut waiting = JoinSet::new();
    let beginnings: [&[u8]; 5] =
        [b"", b"\x16\x03\x01\x02\x00\x01", b"\x16\xff\xff\xff\xff", b"\x80\x00", b"SSH-2.0-x\r\n"];
    for beginning in beginnings.iter().cycle().take(100) {
        let mut stream = house.plain().await;
        stream.write_all(beginning).await.unwrap();
        waiting.spawn(async move {
            let mut said = Vec::new();
            tokio::time::timeout(TEST_TIMEOUT, stream.read_to_end(&mut said)).await.expect("let go").ok();
        });
    }
    assert!(house.ask("GET", "/api/health", "").await.starts_with("HTTP/1.1 200"));
    while let Some(gone) = waiting.join_next().await {
        gone.unwrap();
    }
    let began = Instant::now();
    while open_files() > before {
        assert!(began.elapsed() < TEST_TIMEOUT, "{} files are open, {before} were", open_files());
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_speaks_plain_http_is_told_so() {
    let house = House::open().await;
    let mut stream = house.plain().await;
    stream.write_all(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut said = String::new();
    tokio::time::timeout(TEST_TIMEOUT, stream.read_to_string(&mut said)).await.unwrap().unwrap();
    assert!(said.starts_with("HTTP/1.1 400") && said.ends_with("This port speaks HTTPS only\n"), "{said}");
}

#[test]
fn files_that_cannot_be_used_are_told_at_the_start_in_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = files(directory.path());
    let data = directory.path().join("data");
    let start = |cert: &Path, key: &Path| {
        let arguments = ["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
        let tls = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
        let said = refused(&[arguments, tls].concat(), &[]);
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    };
    assert!(start(&certificate, &key).contains("chain.pem"));
    let (one, other) = (Identity::new(), Identity::new());
    std::fs::write(&certificate, &one.certificate).unwrap();
    assert!(start(&certificate, &key).contains("key.pem"));
    std::fs::write(&key, &other.key).unwrap();
    assert!(start(&certificate, &key).contains("cannot be used together"));
    std::fs::write(&certificate, "no certificate\n").unwrap();
    assert!(start(&certificate, &key).contains("there is no certificate in"));
    let said = refused(&["--tls-cert", "chain.pem", "config", "check"], &[]);
    assert!(said.contains("tls_key: must be set together with tls_cert"), "{said}");
}
