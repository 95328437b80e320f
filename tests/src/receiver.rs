//! Who is called back: a receiver that hears calls, checks their signatures, and answers what a test tells it to.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use svc_core::rules::edge::integrations::{CreateIntegration, NewSecret};
use svc_core::rules::people::by::By;
use svc_core::state::edge::{ConfigChange, Integration, IntegrationKind, IntegrationSlot, signature};
use svc_core::value::Timestamp;
use svc_http::outbound::{Asker, Resolve, Resolving};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::client::PATIENCE;
use crate::site::Site;

/// The callback secret of a site that has one.
pub const SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE";

/// Calls that nobody has asked for yet.
const HEARD_MAX: usize = 1_024;

/// Gives a site the integration that callbacks are signed with.
///
/// # Panics
/// Where it has one.
pub fn connect(site: &Site) -> Arc<Integration> {
    connect_kind(site, IntegrationKind::Callbacks, ConfigChange::default())
}

/// Gives a site an integration of a kind, with the same secret.
///
/// # Panics
/// Where it has one.
pub fn connect_kind(site: &Site, kind: IntegrationKind, config: ConfigChange) -> Arc<Integration> {
    let slot = IntegrationSlot { workspace: site.workspace(), kind };
    let sealed = site.gate.seal(&Integration::purpose(slot), SECRET.as_bytes()).expect("a vault").into();
    let secret = NewSecret { sealed, hint: SECRET[SECRET.len() - 4..].into() };
    let made = CreateIntegration { by: By::Program, workspace: slot.workspace, kind: slot.kind, secret, config };
    site.gate.execute(made).expect("an integration")
}

/// What a receiver answers.
#[derive(Clone, Debug)]
pub enum Reply {
    /// This status.
    Status(u16),
    /// 302 to this address.
    Redirect(String),
    /// 200 with this JSON, to be kept as `cache-control` says.
    Document(&'static str, String),
    /// Nothing: the connection stays open.
    Silence,
    /// Something that is no HTTP.
    Noise,
}

/// A call that was heard.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its request line.
    pub line: String,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Call {
    /// The value of a header that is there once.
    ///
    /// # Panics
    /// Where it is not there.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let mut found = self.headers.iter().filter(|(it, _)| it == name);
        let value = found.next().map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("no {name}: {self:?}"));
        assert!(found.next().is_none(), "{name} came twice");
        value
    }

    /// The body.
    ///
    /// # Panics
    /// Where it is no JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// When it was signed, in seconds.
    ///
    /// # Panics
    /// Where it is not signed.
    #[must_use]
    pub fn signed_at(&self) -> i64 {
        let first = self.header("svc-signature").split(',').next().and_then(|it| it.strip_prefix("t="));
        first.and_then(|it| it.parse().ok()).expect("a time")
    }

    /// Whether it is signed with exactly these secrets, in this order.
    #[must_use]
    pub fn is_signed_with(&self, secrets: &[&str]) -> bool {
        let at = Timestamp::from_millis(self.signed_at() * 1_000);
        self.header("svc-signature") == signature(at, &self.body, secrets.iter().map(|it| it.as_bytes()))
    }
}

/// A receiver on a free port of loopback.
#[derive(Debug)]
pub struct Receiver {
    /// Where it listens.
    pub address: SocketAddr,
    calls: mpsc::Receiver<Call>,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    task: JoinHandle<()>,
}

impl Receiver {
    /// One that speaks plain HTTP.
    pub async fn start() -> Self {
        Self::with(None).await
    }

    /// One that speaks TLS with the certificate of the tests: `hooks.example.com`, `localhost`, `127.0.0.1`.
    ///
    /// # Panics
    /// Where the certificate is not there.
    pub async fn start_tls() -> Self {
        Self::with(Some(acceptor())).await
    }

    async fn with(tls: Option<TlsAcceptor>) -> Self {
        let (tell, calls) = mpsc::channel(HEARD_MAX);
        let replies: Arc<Mutex<VecDeque<Reply>>> = Arc::default();
        let script = Arc::clone(&replies);
        let (address, task) = listen(tls, move |stream| {
            let (tell, script) = (tell.clone(), Arc::clone(&script));
            async move { hear(stream, &tell, &script).await }
        })
        .await;
        Self { address, calls, replies, task }
    }

    /// What the next calls are answered, one each; then 204.
    ///
    /// # Panics
    /// Never, in a test that has not failed yet.
    pub fn answer(&self, replies: impl IntoIterator<Item = Reply>) {
        self.replies.lock().expect("nobody panicked").extend(replies);
    }

    /// The next call.
    ///
    /// # Panics
    /// Where none comes.
    pub async fn next(&mut self) -> Call {
        timeout(PATIENCE, self.calls.recv()).await.expect("a call in time").expect("a receiver")
    }

    /// Whether nobody has called since.
    pub fn is_quiet(&mut self) -> bool {
        self.calls.try_recv().is_err()
    }

    /// Its address by plain HTTP.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Hears one request, tells of it, and answers. `None` where the connection ended early.
async fn hear(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    tell: &mpsc::Sender<Call>,
    script: &Mutex<VecDeque<Reply>>,
) -> Option<()> {
    let mut heard = Vec::new();
    let end = loop {
        if let Some(end) = heard.windows(4).position(|it| it == b"\r\n\r\n") {
            break end + 4;
        }
        read(&mut stream, &mut heard).await?;
    };
    let head = String::from_utf8_lossy(&heard[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let line = lines.next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").map(|(_, length)| length.parse().ok());
    let length: usize = length.unwrap_or(Some(0))?;
    while heard.len() < end + length {
        read(&mut stream, &mut heard).await?;
    }
    let reply = script.lock().ok()?.pop_front().unwrap_or(Reply::Status(204));
    tell.send(Call { line, headers, body: heard[end..].to_vec() }).await.ok()?;
    let answer = match reply {
        Reply::Status(status) => format!("HTTP/1.1 {status} It\r\ncontent-length: 0\r\n\r\n"),
        Reply::Redirect(to) => format!("HTTP/1.1 302 There\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"),
        Reply::Document(cache, body) => {
            let length = body.len();
            let head = format!("content-type: application/json\r\ncache-control: {cache}\r\ncontent-length: {length}");
            format!("HTTP/1.1 200 It\r\n{head}\r\n\r\n{body}")
        }
        Reply::Noise => "220 mail.example.com ESMTP\r\n\r\n".to_owned(),
        Reply::Silence => {
            // Until the caller has had enough.
            let _ = stream.read_u8().await;
            return None;
        }
    };
    stream.write_all(answer.as_bytes()).await.ok()?;
    stream.shutdown().await.ok()
}

async fn read(stream: &mut (impl AsyncRead + Unpin), heard: &mut Vec<u8>) -> Option<()> {
    let mut chunk = [0; 4_096];
    let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
    heard.extend_from_slice(&chunk[..read]);
    Some(())
}

/// A connection, whatever protects it.
pub trait Line: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Line for T {}

/// Takes connections on a free port of loopback until the task is ended, and has each of them answered beside the others. One whose
/// client does not trust the certificate is dropped.
///
/// # Panics
/// Where no port is free.
pub async fn listen<A>(
    tls: Option<TlsAcceptor>,
    answer: impl Fn(Box<dyn Line>) -> A + Clone + Send + Sync + 'static,
) -> (SocketAddr, JoinHandle<()>)
where
    A: Future<Output = Option<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (tls, answer) = (tls.clone(), answer.clone());
            tokio::spawn(async move {
                match tls {
                    None => answer(Box::new(stream)).await,
                    Some(tls) => answer(Box::new(tls.accept(stream).await.ok()?)).await,
                }
            });
        }
    });
    (address, task)
}

/// What speaks TLS with the certificate of the tests.
///
/// # Panics
/// Where the certificate is not there.
#[must_use]
pub fn acceptor() -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(tls("server.pem")).expect("a file").collect::<Result<Vec<_>, _>>();
    let key = PrivateKeyDer::from_pem_file(tls("server.key")).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain.expect("certificates"), key)
        .expect("a certificate");
    TlsAcceptor::from(Arc::new(config))
}

/// A file of the tests' certificates.
#[must_use]
pub fn tls(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/data/tls")).join(name)
}

/// A resolver that says what a test tells it to, and remembers how often it was asked.
#[derive(Debug, Default)]
pub struct Names {
    known: Mutex<BTreeMap<String, VecDeque<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    /// One that knows nothing yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// What `host` resolves to: each answer once, the last one for good.
    ///
    /// # Panics
    /// Where one is no address.
    pub fn set(&self, host: &str, answers: &[&[&str]]) {
        let read = |answer: &&[&str]| answer.iter().map(|it| it.parse().expect("an address")).collect();
        self.known.lock().expect("nobody panicked").insert(host.to_owned(), answers.iter().map(read).collect());
    }

    /// How often it was asked for `host`.
    ///
    /// # Panics
    /// Never, in a test that has not failed yet.
    pub fn asked(&self, host: &str) -> usize {
        self.asked.lock().expect("nobody panicked").iter().filter(|it| *it == host).count()
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a str, _: Asker) -> Resolving<'a> {
        self.asked.lock().expect("nobody panicked").push(host.to_owned());
        let mut known = self.known.lock().expect("nobody panicked");
        let answer = known.get_mut(host).and_then(|it| if it.len() > 1 { it.pop_front() } else { it.front().cloned() });
        Box::pin(async move { answer.ok_or_else(|| std::io::ErrorKind::NotFound.into()) })
    }
}
