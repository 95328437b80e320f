//! TLS on the way to the database, by the library that every other connection of the service uses.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use super::address::Roots;
use crate::error::StoreError;

/// Makes connections that check who answers.
#[derive(Clone, Debug)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// With the roots that an address names.
    ///
    /// # Errors
    /// [`StoreError::File`] where the file of them holds none.
    pub(super) fn new(roots: &Roots) -> Result<Self, StoreError> {
        let mut trusted = RootCertStore::empty();
        match roots {
            Roots::System => {
                let native = rustls_native_certs::load_native_certs();
                trusted.add_parsable_certificates(native.certs);
                if trusted.is_empty() {
                    // A container without certificates trusts those that browsers trust.
                    trusted.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
                }
            }
            Roots::File(path) => {
                let fault = |cause: Box<dyn std::error::Error + Send + Sync>| {
                    StoreError::file(path, "it holds no root certificates in PEM", io::Error::other(cause))
                };
                let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
                for certificate in read.map_err(|cause| fault(cause.into()))? {
                    trusted.add(certificate).map_err(|cause| fault(cause.into()))?;
                }
                if trusted.is_empty() {
                    return Err(fault("it is empty".into()));
                }
            }
        }
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap_or_else(|never| unreachable!("the provider has both versions of TLS: {never}"))
            .with_root_certificates(trusted)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Stream<S>;
    type TlsConnect = To;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<To, InvalidDnsNameError> {
        Ok(To { config: Arc::clone(&self.0), name: ServerName::try_from(host)?.to_owned() })
    }
}

/// One connection to be made.
pub(super) struct To {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for To {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { TlsConnector::from(self.config).connect(self.name, stream).await.map(Stream) })
    }
}

/// An encrypted connection.
pub(super) struct Stream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    /// None: the certificate is checked by its name and whoever signed it.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
