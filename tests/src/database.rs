//! A private PostgreSQL for tests: made in a directory of its own, reached by a socket in it, gone with the test.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Whom it runs as where the tests run as root, which PostgreSQL refuses: the user that owns nothing.
const NOBODY: u32 = 65_534;
/// How long a start may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where Debian keeps the programs that belong to one release each.
const DEBIAN: &str = "/usr/lib/postgresql";

/// How its files are made.
const OPTIONS: [&str; 5] = ["--no-sync", "--auth=trust", "--username=svc", "--encoding=UTF8", "--locale=C"];

/// A running server. It ends with this value.
#[derive(Debug)]
pub struct Database {
    directory: TempDir,
    programs: PathBuf,
    /// Its port: of the socket's name, and on loopback where [`Database::with`] was told to listen there.
    pub port: u16,
    server: Option<Child>,
    settings: Vec<String>,
}

impl Database {
    /// A server as it comes, with an empty database `svc` of the role `svc`.
    ///
    /// # Panics
    /// Where there is no PostgreSQL on this machine, or it does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// The same with TLS on loopback, for `localhost`, by the certificate of `tests/data/tls`.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn secured() -> Self {
        let mut database = Self::with(&["listen_addresses=127.0.0.1"]);
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace").join("tests/data/tls");
        for name in ["server.pem", "server.key"] {
            let to = database.directory.path().join(name);
            fs::copy(from.join(name), &to).expect("the certificate is copied");
            let owner = fs::metadata(database.directory.path()).expect("the directory");
            chown(&to, Some(owner.uid()), Some(owner.gid())).expect("it is given away");
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).expect("nobody else reads it");
            let setting = if name == "server.pem" { "ssl_cert_file" } else { "ssl_key_file" };
            database.settings.push(format!("{setting}={}", to.display()));
        }
        database.settings.push("ssl=on".to_owned());
        database.halt();
        database.resume();
        database
    }

    /// The same with settings of its own, each as `name=value`; with `listen_addresses=127.0.0.1` among them it can be reached by TCP.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with(settings: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let owner = fs::metadata(directory.path()).expect("the directory").uid();
        if owner == 0 {
            chown(directory.path(), Some(NOBODY), Some(NOBODY)).expect("the directory is given away");
        }
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))
            .expect("others may look for the socket");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port").port();
        let settings = settings.iter().map(|it| (*it).to_owned()).collect();
        let mut database = Self { directory, programs: programs(), port, server: None, settings };
        let kept = database.kept();
        if !is_copied(&kept, &database.data()) {
            database.make();
            // Another test may be first, and does the same.
            let beside = kept.parent().expect("the target directory");
            let own = tempfile::tempdir_in(beside).expect("a directory beside");
            let copy = own.path().join("data");
            if is_copied(&database.data(), &copy) {
                drop(fs::rename(&copy, &kept));
            }
            // What is left of it is in nobody's way.
            drop(own.close());
        }
        database.resume();
        database
    }

    /// Makes its files, with the empty database, and leaves it at rest.
    fn make(&mut self) {
        let data = self.data();
        told("initdb", &self.program("initdb").args(OPTIONS).arg("--pgdata").arg(&data).output().expect("initdb runs"));
        self.resume();
        self.sql_in("postgres", "CREATE DATABASE svc");
        self.stop("fast");
    }

    /// Where the files of a new server are kept for the tests that follow: to make them anew takes longer than most tests. Each release,
    /// each user that they belong to, and each way to make them, has its own.
    fn kept(&self) -> PathBuf {
        let told = self.program("postgres").arg("--version").output().expect("postgres runs");
        let plain = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
        let (release, options) = (plain(&String::from_utf8_lossy(&told.stdout)), plain(&OPTIONS.concat()));
        let owner = fs::metadata(self.directory.path()).expect("the directory").uid();
        let test = std::env::current_exe().expect("the test's own path");
        test.parent().and_then(Path::parent).expect("the target directory").join(format!("{release}-{owner}-{options}"))
    }

    /// Starts it again after [`halt`](Self::halt), and waits until it answers.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn resume(&mut self) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log()).expect("a log");
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.directory.path());
        command.args(["-p", &self.port.to_string(), "-c", "listen_addresses=", "-c", "max_connections=200"]);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.server = Some(command.spawn().expect("postgres runs"));
        let until = Instant::now() + PATIENCE;
        while !self.psql("postgres", "SELECT 1").status.success() {
            assert!(Instant::now() < until, "it did not start: {}", self.said());
        }
    }

    /// Ends it at once, as a loss of power would, but for what its disk keeps.
    ///
    /// # Panics
    /// Where it cannot be ended.
    pub fn halt(&mut self) {
        self.stop("immediate");
    }

    fn stop(&mut self, mode: &str) {
        let Some(mut server) = self.server.take() else { return };
        let asked = self.program("pg_ctl").args(["stop", "-m", mode, "-D"]).arg(self.data()).output();
        told("pg_ctl", &asked.expect("pg_ctl runs"));
        server.wait().expect("it is waited for");
    }

    /// The address of its database `svc`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address_of("svc")
    }

    /// The address of one of its databases.
    #[must_use]
    pub fn address_of(&self, name: &str) -> String {
        let socket = self.directory.path().display().to_string().replace('/', "%2F");
        format!("postgres://svc@{socket}:{}/{name}", self.port)
    }

    /// The address of one more database, which is empty.
    ///
    /// # Panics
    /// Where it cannot be made.
    #[must_use]
    pub fn another(&self, name: &str) -> String {
        self.sql_in("postgres", &format!("CREATE DATABASE {name}"));
        self.address_of(name)
    }

    /// What a statement answers, as an operator would ask it in `svc`.
    ///
    /// # Panics
    /// Where the statement fails.
    pub fn sql(&self, statement: &str) -> String {
        self.sql_in("svc", statement)
    }

    /// The same in another database.
    ///
    /// # Panics
    /// Where the statement fails.
    pub fn sql_in(&self, database: &str, statement: &str) -> String {
        let answer = self.psql(database, statement);
        told("psql", &answer);
        String::from_utf8_lossy(&answer.stdout).trim_end().to_owned()
    }

    /// Where its data is.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// What it has written to its log.
    #[must_use]
    pub fn said(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    /// A shell of it, which runs what is written to it and writes what that answers.
    ///
    /// # Panics
    /// Where it does not start.
    #[must_use]
    pub fn shell(&self) -> Child {
        let mut command = self.program("psql");
        command.args([
            "-X",
            "-q",
            "-At",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "svc",
            "-p",
            &self.port.to_string(),
            "-d",
            "svc",
        ]);
        command.arg("-h").arg(self.directory.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().expect("psql runs")
    }

    fn psql(&self, database: &str, statement: &str) -> Output {
        let mut command = self.program("psql");
        command.args(["-X", "-v", "ON_ERROR_STOP=1", "-U", "svc", "-At", "-p", &self.port.to_string(), "-d", database]);
        command.arg("-h").arg(self.directory.path()).args(["-c", statement]);
        command.output().expect("psql runs")
    }

    /// One of its programs, as the user that owns its directory.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        if fs::metadata(self.directory.path()).expect("the directory").uid() == NOBODY {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.current_dir(self.directory.path()).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
        command
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = self.program("pg_ctl").args(["stop", "-m", "immediate", "-D"]).arg(self.data()).output();
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// The directory of its programs: of those on the path, else of Debian's newest release.
///
/// # Panics
/// Where there is none: these tests are never skipped.
fn programs() -> PathBuf {
    let has = |folder: &Path| ["initdb", "pg_ctl", "postgres", "psql"].iter().all(|it| folder.join(it).is_file());
    let named = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&named).find(|it| has(it));
    let release = |folder: &Path| folder.file_name().and_then(|it| it.to_str()?.parse::<u32>().ok()).unwrap_or(0);
    let debian = fs::read_dir(DEBIAN).into_iter().flatten().flatten().map(|it| it.path());
    let newest = debian.filter(|it| has(&it.join("bin"))).max_by_key(|it| release(it)).map(|it| it.join("bin"));
    on_path.or(newest).expect("these tests need PostgreSQL: install Debian's package `postgresql`")
}

/// Copies a server's files with their owners, where there are any.
fn is_copied(from: &Path, to: &Path) -> bool {
    from.is_dir() && Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs").success()
}

fn told(what: &str, output: &Output) {
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
}
