//! The TLS configuration of every outgoing connection: the crypto provider and the trusted certificates.
//!
//! The provider is passed explicitly, so no client depends on a process-wide default.

use rustls_platform_verifier::Verifier;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

/// Trusts no certificate, so every TLS handshake fails with a certificate error.
pub fn trusting_no_certificate() -> ClientConfig {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("ring supports the default versions");
    builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

/// Trusts the certificates of this system and `extra_roots`.
pub fn client_config(extra_roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Verifier::new_with_extra_roots(extra_roots, provider.clone())?);
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}
