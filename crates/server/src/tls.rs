//! TLS: loads the certificate and its key, reloads them when the files change, and accepts TLS connections.
//!
//! Guarantees: unusable new files leave the current certificate in use. A peer that does not complete the
//! handshake in time, or does not use TLS, is disconnected.

use crate::connection::stream::Stream;
use parking_lot::RwLock;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{self, ServerConfig};
use x509_cert::der::Decode;

/// Timeout for the complete TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Content type of a TLS handshake record: the first byte of every TLS connection.
const HANDSHAKE_RECORD: u8 = 22;
/// Response to a client that uses plain HTTP on the TLS port.
const HTTPS_ONLY_RESPONSE: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 28\r\n\
    Connection: close\r\n\r\nThis port speaks HTTPS only\n";

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {}: {reason}", file.display())]
    Unreadable { file: PathBuf, reason: pem::Error },
    #[error("there is no certificate in {}", .0.display())]
    NoCertificate(PathBuf),
    #[error("the certificate in {} and the key in {} cannot be used together: {reason}", certificate.display(), key.display())]
    Unusable { certificate: PathBuf, key: PathBuf, reason: rustls::Error },
}

pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Current>,
}

struct Current {
    acceptor: TlsAcceptor,
    leaf: CertificateDer<'static>,
    /// Modification times and sizes of the files at the last attempt to load them, successful or not.
    stamp: Stamp,
}

type Stamp = [Option<(SystemTime, u64)>; 2];

impl Tls {
    pub fn load(certificate: &Path, key: &Path) -> Result<Arc<Self>, TlsError> {
        let current = read(certificate, key)?;
        Ok(Arc::new(Self { certificate: certificate.into(), key: key.into(), current: RwLock::new(current) }))
    }

    /// Loads the files again if they have changed; keeps the current certificate if they cannot be used.
    pub fn reload_if_changed(&self) {
        let stamp = stamp(&self.certificate, &self.key);
        if self.current.read().stamp == stamp {
            return;
        }
        match read(&self.certificate, &self.key) {
            Ok(new) => {
                *self.current.write() = new;
                tracing::info!("loaded the new certificate");
            }
            Err(error) => {
                // Logged once per change of the files: certificate and key are rarely written at the same
                // time.
                self.current.write().stamp = stamp;
                tracing::warn!(%error, "failed to load the new certificate; the old one stays in use");
            }
        }
    }

    /// Expiry time of the certificate.
    pub fn expires_at(&self) -> Option<SystemTime> {
        let leaf = x509_cert::Certificate::from_der(&self.current.read().leaf).ok()?;
        Some(SystemTime::UNIX_EPOCH + leaf.tbs_certificate().validity().not_after.to_unix_duration())
    }

    /// Whether the certificate is valid for this host name.
    pub fn covers_host(&self, host: &str) -> bool {
        let current = self.current.read();
        let (Ok(leaf), Ok(name)) = (ParsedCertificate::try_from(&current.leaf), ServerName::try_from(host))
        else {
            return false;
        };
        verify_server_name(&leaf, &name).is_ok()
    }

    /// Performs the TLS handshake; `None` if it fails, times out, or the peer does not use TLS.
    pub(crate) async fn accept_tls(&self, tcp: TcpStream) -> Option<Stream> {
        let acceptor = self.current.read().acceptor.clone();
        let handshake = async {
            let mut first = [0];
            if tcp.peek(&mut first).await.ok()? == 1 && first[0] != HANDSHAKE_RECORD {
                reject_plain_http(tcp).await;
                return None;
            }
            acceptor.accept(tcp).await.ok()
        };
        let tls = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await.ok()??;
        Some(Stream::Tls(Box::new(tls)))
    }
}

/// Answers a plain HTTP request with an error that names HTTPS.
async fn reject_plain_http(mut tcp: TcpStream) {
    if tcp.write_all(HTTPS_ONLY_RESPONSE).await.is_ok() && tcp.shutdown().await.is_ok() {
        // Read the request before closing: closing earlier would reset the connection and lose the response.
        let mut rest = tokio::io::AsyncReadExt::take(tcp, 64 * 1024);
        let _ = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
    }
}

fn read(certificate: &Path, key: &Path) -> Result<Current, TlsError> {
    let stamp = stamp(certificate, key);
    let unreadable = |file: &Path| {
        let file = file.to_owned();
        move |reason| TlsError::Unreadable { file, reason }
    };
    let chain = CertificateDer::pem_file_iter(certificate).map_err(unreadable(certificate))?;
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(unreadable(certificate))?;
    let leaf = chain.first().cloned().ok_or_else(|| TlsError::NoCertificate(certificate.into()))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(unreadable(key))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret));
    let mut config = config.map_err(|reason| TlsError::Unusable {
        certificate: certificate.into(),
        key: key.into(),
        reason,
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Current { acceptor: TlsAcceptor::from(Arc::new(config)), leaf, stamp })
}

fn stamp(certificate: &Path, key: &Path) -> Stamp {
    [certificate, key].map(|file| {
        let about = file.metadata().ok()?;
        Some((about.modified().ok()?, about.len()))
    })
}
