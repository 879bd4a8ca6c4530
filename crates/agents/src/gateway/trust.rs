//! Whom a gateway takes for its hub: whoever this system trusts, and whom its owner names besides.

use super::sign_in::ConnectError;
use crate::tls;
use std::error::Error;
use std::io;
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{self, ClientConfig};

#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// `further` are certificates in PEM: of a hub, or of who signed its certificate.
    pub fn new(further: Option<&str>) -> Result<Self, Box<str>> {
        let read = CertificateDer::pem_slice_iter(further.unwrap_or_default().as_bytes());
        let roots = read.collect::<Result<Vec<_>, _>>().map_err(|error| format!("it is no PEM: {error}"))?;
        if further.is_some() && roots.is_empty() {
            return Err("there is no certificate in it".into());
        }
        let config = tls::client_config(roots).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(config)))
    }

    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.0
    }
}

/// What became of a connection. It is in vain to try again where it was made to somebody who is not trusted.
pub fn failed(what: &str, error: &(dyn Error + 'static)) -> ConnectError {
    let cause = innermost(error);
    match is_untrusted(error) {
        true => ConnectError::Wrong(format!(
            "{what}: {cause}. A certificate that this system does not know is made known with --ca-file"
        )),
        false => ConnectError::NotNow(format!("{what}: {cause}")),
    }
}

/// It says best what was wrong.
fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    deeper(error).map_or(error, innermost)
}

fn is_untrusted(error: &(dyn Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)))
        || deeper(error).is_some_and(is_untrusted)
}

/// What an error of the system was made of is not what it calls its source.
fn deeper<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    within.map(|within| within as &(dyn Error + 'static)).or_else(|| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_trusted_is_told_apart_from_who_is_not_there() {
        let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let wrapped = io::Error::other(io::Error::other(unknown));
        let ConnectError::Wrong(why) = failed("no hub", &wrapped) else {
            panic!("it may not be tried again")
        };
        assert!(why.starts_with("no hub: invalid peer certificate: UnknownIssuer. "), "{why}");
        let away = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(failed("no hub", &away), ConnectError::NotNow("no hub: connection refused".into()));
    }

    #[test]
    fn what_is_no_certificate_is_said_to_be_none() {
        assert!(Trust::new(Some("hello")).is_err_and(|why| why.contains("no certificate")));
        let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        assert!(Trust::new(Some(broken)).is_err());
    }
}
