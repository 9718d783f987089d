//! TLS, with rustls. A server that was given a certificate and cannot use it does not start; clients from other
//! machines that do not ask for TLS are then refused.
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A certificate and its key, ready for use.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls(..)")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("the TLS certificate {0}: {1}")]
    Certificate(String, String),
    #[error("the TLS key {0}: {1}")]
    Key(String, String),
    #[error("the TLS key {0} can be read by others than its owner (mode {1:o}); run: chmod 600 {0}")]
    KeyMode(String, u32),
    #[error("the TLS certificate and its key do not go together: {0}")]
    Pair(#[from] rustls::Error),
}

impl Tls {
    /// Reads a certificate chain and its private key, both PEM. The key's file must be its owner's alone, or root's and
    /// readable by a group.
    pub fn load(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
        let shown = |path: &Path| path.display().to_string();
        let bad_chain = |why: String| TlsError::Certificate(shown(certificate), why);
        let chain = CertificateDer::pem_file_iter(certificate).map_err(|e| bad_chain(e.to_string()))?;
        let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(|e| bad_chain(e.to_string()))?;
        if chain.is_empty() {
            return Err(bad_chain("it holds no certificate".into()));
        }
        let bad_key = |why: String| TlsError::Key(shown(key), why);
        let found = std::fs::metadata(key).map_err(|e| bad_key(e.to_string()))?;
        let allowed = if std::os::unix::fs::MetadataExt::uid(&found) == 0 { 0o640 } else { 0o600 };
        let mode = found.permissions().mode() & 0o777;
        if mode & !(allowed | 0o100) != 0 {
            return Err(TlsError::KeyMode(shown(key), mode));
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(|e| bad_key(e.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }

    pub(crate) async fn accept(&self, socket: TcpStream) -> io::Result<Socket> {
        Ok(Socket::Tls(Box::new(self.0.accept(socket).await?)))
    }
}

/// A client's connection, encrypted or not.
pub(crate) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// Between the two, and after a handshake that failed.
    Gone,
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Socket::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Socket::Tls(socket) => Pin::new(socket).poll_read(cx, buf),
            Socket::Gone => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Socket::Plain(socket) => Pin::new(socket).poll_write(cx, buf),
            Socket::Tls(socket) => Pin::new(socket).poll_write(cx, buf),
            Socket::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Socket::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Socket::Tls(socket) => Pin::new(socket).poll_flush(cx),
            Socket::Gone => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Socket::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Socket::Tls(socket) => Pin::new(socket).poll_shutdown(cx),
            Socket::Gone => Poll::Ready(Ok(())),
        }
    }
}
