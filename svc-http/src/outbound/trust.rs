//! Whom calls to the outside trust: the system's root certificates, and those of a file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{fs, io};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// Root certificates that are trusted beside the system's.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    further: Vec<CertificateDer<'static>>,
    made: OnceLock<Arc<ClientConfig>>,
}

/// A file of root certificates that is none.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It is not there, or this user may not read it.
    #[error("`{}`, which is to hold root certificates, cannot be read: {cause}", path.display())]
    Unread {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Nothing in it is a root certificate that can be trusted.
    #[error("`{}` holds no root certificates in PEM that can be read", path.display())]
    NoRoots {
        /// The file.
        path: PathBuf,
    },
}

impl Trust {
    /// The system's roots and those of `file` (PEM), where one is named.
    ///
    /// # Errors
    /// [`TrustError`] where the file cannot be read or holds none.
    pub fn with(file: Option<&Path>) -> Result<Self, TrustError> {
        let Some(path) = file else { return Ok(Self::default()) };
        let none = || TrustError::NoRoots { path: path.to_owned() };
        let text = fs::read(path).map_err(|cause| TrustError::Unread { path: path.to_owned(), cause })?;
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let further = read.map_err(|_| none())?;
        let mut roots = RootCertStore::empty();
        if further.is_empty() || further.iter().any(|it| roots.add(it.clone()).is_err()) {
            return Err(none());
        }
        Ok(Self { further, made: OnceLock::new() })
    }

    /// The same and the roots of `file`, where one is named.
    ///
    /// # Errors
    /// As [`with`](Self::with).
    #[cfg(feature = "otel")]
    pub(crate) fn and(self, file: Option<&Path>) -> Result<Self, TrustError> {
        let Self { mut further, .. } = self;
        further.extend(Self::with(file)?.further);
        Ok(Self { further, made: OnceLock::new() })
    }

    /// How connections are secured; the system is asked once, at the first of them.
    #[must_use]
    pub fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(self.made.get_or_init(|| Arc::new(self.build())))
    }

    fn build(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let native = rustls_native_certs::load_native_certs();
        for error in &native.errors {
            tracing::warn!(%error, "some of the system's root certificates cannot be read");
        }
        roots.add_parsable_certificates(native.certs);
        if roots.is_empty() {
            // A container without certificates trusts those that browsers trust.
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        roots.add_parsable_certificates(self.further.iter().cloned());
        let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap_or_else(|never| unreachable!("the provider has both versions of TLS: {never}"))
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config
    }
}
