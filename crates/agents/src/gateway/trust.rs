//! The certificates that a gateway trusts for its hub: those of this system, and those given with
//! `--ca-file`.

use super::sign_in::ConnectError;
use parlor_outbound::tls;
use std::error::Error;
use std::io;
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{self, ClientConfig};

#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Trusts the certificates of this system and `extra_roots`, which are PEM certificates of a hub or its
    /// CA.
    pub fn new(extra_roots: Option<&str>) -> Result<Self, Box<str>> {
        let read = CertificateDer::pem_slice_iter(extra_roots.unwrap_or_default().as_bytes());
        let roots =
            read.collect::<Result<Vec<_>, _>>().map_err(|error| format!("it is not valid PEM: {error}"))?;
        if extra_roots.is_some() && roots.is_empty() {
            return Err("it contains no certificate".into());
        }
        let config = tls::client_config(roots).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(config)))
    }

    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.0
    }
}

/// Converts the error of a failed connection. An untrusted certificate is permanent, so it is not retried.
pub fn failed(context: &str, error: &(dyn Error + 'static)) -> ConnectError {
    let cause = innermost(error);
    match is_untrusted(error) {
        true => ConnectError::Wrong(format!(
            "{context}: {cause}. Use --ca-file to trust a certificate that this system does not know"
        )),
        false => ConnectError::NotNow(format!("{context}: {cause}")),
    }
}

/// The innermost source of an error, which describes the cause best.
fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    deeper(error).map_or(error, innermost)
}

fn is_untrusted(error: &(dyn Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)))
        || deeper(error).is_some_and(is_untrusted)
}

/// The next inner error. The error wrapped by an `io::Error` is not its `source`, so it is taken first.
fn deeper<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    wrapped.map(|wrapped| wrapped as &(dyn Error + 'static)).or_else(|| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_untrusted_hub_is_distinguished_from_an_unreachable_one() {
        let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let wrapped = io::Error::other(io::Error::other(unknown));
        let ConnectError::Wrong(why) = failed("no hub", &wrapped) else {
            panic!("an untrusted certificate must not be retried")
        };
        assert!(why.starts_with("no hub: invalid peer certificate: UnknownIssuer. "), "{why}");
        let unreachable = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(failed("no hub", &unreachable), ConnectError::NotNow("no hub: connection refused".into()));
    }

    #[test]
    fn a_text_without_a_certificate_is_rejected() {
        assert!(Trust::new(Some("hello")).is_err_and(|why| why.contains("no certificate")));
        let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        assert!(Trust::new(Some(broken)).is_err());
    }
}
