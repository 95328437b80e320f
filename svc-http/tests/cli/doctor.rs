//! `svc doctor`: what it finds, and in which words.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::store::Clock;
use svc_core::value::text::{Email, Label};
use svc_core::value::{Span, Timestamp};
use svc_http::clock;
use svc_store::keys::{dalek, receipt_signer};
use svc_store::{Backend as _, Gate, Settings, SqliteStore};

use crate::server::Server;
use crate::{Ran, run, svc};

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The state and the message of every check, by name.
fn checks(folder: &Path, arguments: &str) -> (i32, Vec<(String, String, String)>) {
    let Ran { code, out, err } = run(folder, &format!("doctor --json {arguments}"));
    assert_eq!(err, "");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["ok"], Value::Bool(code == 0));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lines = report["checks"].as_array().unwrap();
    (
        code,
        lines
            .iter()
            .map(|it| {
                (text(&it["check"]), text(&it["state"]), format!("{}|{}", text(&it["message"]), text(&it["fix"])))
            })
            .collect(),
    )
}

fn of<'a>(lines: &'a [(String, String, String)], name: &str) -> (&'a str, &'a str) {
    let (_, state, message) = lines.iter().find(|it| it.0 == name).unwrap();
    (state, message)
}

/// On a fresh machine the doctor says that there is no data directory yet and how to make it, and fails.
#[test]
fn a_fresh_machine_is_told_what_to_run() {
    let folder = tempfile::tempdir().unwrap();
    let Ran { code, out, err } = run(folder.path(), "doctor");
    assert_eq!((code, err.as_str()), (1, ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines.first().copied(),
        Some("ok    settings: read from the environment and flags; there is no settings file")
    );
    assert!(lines.contains(&"fail  data directory: svc-data does not exist. Run `svc init`, or `svc dev` to try things out; either makes it."), "{out}");
    assert_eq!(lines.last().copied(), Some("something is broken"));
    assert!(!folder.path().join("svc-data").exists(), "the doctor makes nothing");
}

/// Files that others can read are named with the command that closes them.
#[test]
fn open_modes_are_found_and_the_command_to_close_them_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("d");
    assert_eq!(run(folder.path(), "init --data d").code, 0);
    fs::write(data.join("svc.toml"), "masterKey = \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"\n").unwrap();
    chmod(&data, 0o755);
    chmod(&data.join("master.key"), 0o644);
    chmod(&data.join("svc.toml"), 0o640);
    let (code, lines) = checks(folder.path(), "--data d");
    assert_eq!(code, 1);
    assert_eq!(
        of(&lines, "file modes"),
        (
            "fail",
            "others can read what they should not|Run `chmod 700 d && chmod 600 d/master.key && chmod 600 d/svc.toml`."
        )
    );
    chmod(&data.join("master.key"), 0o600);
    chmod(&data.join("svc.toml"), 0o600);
    let (_, lines) = checks(folder.path(), "--data d");
    let listed =
        "others can list the data directory or read its server's address, and read no file in it that holds secrets";
    assert_eq!(of(&lines, "file modes"), ("look", &*format!("{listed}|Run `chmod 700 d`.")));
    fs::write(data.join("base-url"), "https://gate.example.com\n").unwrap();
    chmod(&data, 0o700);
    for (mode, state) in [(0o600, "ok"), (0o644, "look"), (0o666, "fail")] {
        chmod(&data.join("base-url"), mode);
        let (_, lines) = checks(folder.path(), "--data d");
        let (found, told) = of(&lines, "file modes");
        assert!(
            found == state && (state == "ok" || told.ends_with("|Run `chmod 600 d/base-url`.")),
            "{mode:o}: {told}"
        );
    }
    chmod(&data.join("base-url"), 0o600);
    chmod(&data, 0o777);
    assert_eq!(of(&checks(folder.path(), "--data d").1, "file modes").0, "fail", "others could replace the files");
    chmod(&data, 0o700);
    assert_eq!(of(&checks(folder.path(), "--data d").1, "file modes").0, "ok");
    let left = |it: std::io::Result<fs::DirEntry>| it.unwrap().file_name().to_string_lossy().starts_with(".svc-doctor");
    assert!(!fs::read_dir(&data).unwrap().any(left), "nothing is left behind");
}

/// A settings file is closed to others where it holds anything that the table of settings marks as secret, and may be open
/// otherwise, whatever its comments say.
#[test]
fn every_secret_of_a_settings_file_has_to_be_kept() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init --data d").code, 0);
    let file = folder.path().join("my.toml");
    let look = |text: &str| {
        fs::write(&file, format!("data = \"d\"\n{text}\n")).unwrap();
        chmod(&file, 0o644);
        let (_, lines) = checks(folder.path(), "--config my.toml");
        let (state, told) = of(&lines, "file modes");
        assert_eq!(state == "fail", told.ends_with("Run `chmod 600 my.toml`."), "{told}");
        state.to_owned()
    };
    assert_eq!(look("[billing]\nsecret = \"whsec_0123456789abcdef0123456789abcdef\""), "fail");
    assert_eq!(look("billing.secret = \"whsec_0123456789abcdef0123456789abcdef\""), "fail");
    assert_eq!(look("masterKey = \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\""), "fail");
    assert_eq!(look("# masterKey is in the environment\nlog.level = \"info\""), "ok");
    assert_eq!(look("store.url = \"sqlite:d/svc.db\""), "ok");
}

/// What the doctor advises can be typed as it stands: a path is one word of a shell, and a command means the data that was
/// looked at.
#[test]
fn what_is_advised_can_be_typed() {
    let folder = tempfile::tempdir().unwrap();
    let (_, lines) = checks(folder.path(), "--data my.data");
    let wanted = "my.data does not exist|Run `svc init --data my.data`, or `svc dev --data my.data` to try things out; either makes it.";
    assert_eq!(of(&lines, "data directory"), ("fail", wanted));
    let wanted =
        "there is no svc data in `my.data`|Name the right data directory, or start one with `svc init --data my.data`.";
    assert_eq!(of(&lines, "schema"), ("fail", wanted));
    fs::write(folder.path().join("my.toml"), "data = \"it's mine\"\n").unwrap();
    let (_, lines) = checks(folder.path(), "--config my.toml");
    let wanted = r"start one with `svc init --config my.toml --data 'it'\''s mine'`.";
    assert!(of(&lines, "schema").1.ends_with(wanted), "{lines:?}");

    assert_eq!(run(folder.path(), "init --config my.toml").code, 0);
    chmod(&folder.path().join("it's mine"), 0o755);
    let (_, lines) = checks(folder.path(), "--config my.toml");
    let (_, advice) = of(&lines, "file modes").1.split_once("|Run `").unwrap();
    let mut shell = std::process::Command::new("sh");
    let done = shell.current_dir(folder.path()).args(["-c", advice.strip_suffix("`.").unwrap()]).status().unwrap();
    assert!(done.success(), "{advice}");
    assert_eq!(of(&checks(folder.path(), "--config my.toml").1, "file modes").0, "ok");
}

/// Whatever is broken is told with what to do: of a directory of others, of a database that nothing was written to, and of a
/// master key that is none or another's.
#[test]
fn whatever_is_broken_has_its_advice() {
    let folder = tempfile::tempdir().unwrap();
    let told = |arguments: &str| {
        let (_, lines) = checks(folder.path(), arguments);
        let silent = |it: &&(String, String, String)| it.1 != "ok" && it.2.ends_with('|');
        assert_eq!(lines.iter().find(silent), None, "{arguments}");
        move |name: &str| format!("{}: {}", of(&lines, name).0, of(&lines, name).1)
    };
    fs::create_dir(folder.path().join("photos")).unwrap();
    fs::write(folder.path().join("photos/cat.png"), "").unwrap();
    let holds = "fail: `photos` holds `cat.png` and no svc data|Name an empty or a new directory.";
    assert_eq!(told("--data photos")("schema"), holds);
    fs::create_dir(folder.path().join("new")).unwrap();
    fs::write(folder.path().join("new/svc.db"), "").unwrap();
    assert_eq!(told("--data new")("schema"), "look: nothing was written to the database yet|The next start does so.");

    assert_eq!(run(folder.path(), "init --data d").code, 0);
    let advice = "Put the master key of this database back in `d/master.key`; for a backup that is the one that was in force when it was made.";
    for (key, wrong) in [
        ("junk", "the master key is not 32 bytes in base64url or hexadecimal"),
        ("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "the master key does not open what the database has sealed"),
    ] {
        fs::write(folder.path().join("d/master.key"), key).unwrap();
        let keys = told("--data d")("keys");
        assert!(keys.starts_with(&format!("fail: {wrong}")) && keys.ends_with(&format!("|{advice}")), "{keys}");
    }
    fs::remove_file(folder.path().join("d/master.key")).unwrap();
    let keys = told("--data d")("keys");
    assert!(keys.ends_with("sealed under it|Put it back, or set SVC_MASTER_KEY."), "{keys}");
}

/// A directory without a database of ours is somebody else's: nobody is told to close it, or what lies in it.
#[test]
fn modes_of_other_directories_are_let_be() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    chmod(&other, 0o755);
    let told = "there is no svc data here, so no file modes to check|See `schema`.";
    let modes = |arguments: &str| {
        let (code, lines) = checks(folder.path(), arguments);
        assert_eq!(code, 1, "{arguments}");
        assert_eq!(of(&lines, "file modes"), ("look", told), "{arguments}");
    };
    modes("--data other");
    modes("--data /etc/passwd");
    for name in ["svc.db", "master.key"] {
        fs::write(other.join(name), "no database and no key").unwrap();
        chmod(&other.join(name), 0o644);
    }
    modes("--data other");
    assert_eq!(run(folder.path(), "init").code, 0);
    fs::rename(other.join("svc.db"), folder.path().join("foreign")).unwrap();
    fs::remove_file(other.join("master.key")).unwrap();
    fs::write(folder.path().join("my.toml"), "data = \"other\"\nstore.url = \"sqlite:svc-data/svc.db\"\n").unwrap();
    fs::rename(folder.path().join("svc-data/master.key"), other.join("master.key")).unwrap();
    assert_eq!(of(&checks(folder.path(), "--config my.toml").1, "file modes").0, "ok");
    chmod(&other.join("master.key"), 0o644);
    let wanted = "others can read what they should not|Run `chmod 600 other/master.key`.";
    assert_eq!(of(&checks(folder.path(), "--config my.toml").1, "file modes"), ("fail", wanted));
}

/// A database elsewhere: the first start makes the place of the key beside it, and the doctor looks for room where the database
/// lies.
#[test]
fn a_database_elsewhere_is_looked_at_where_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("my.toml"),
        "listen = \"127.0.0.1:0\"\ndata = \"keys\"\nstore.url = \"sqlite:db/svc.db\"\n",
    )
    .unwrap();
    let (code, lines) = checks(folder.path(), "--config my.toml");
    assert_eq!((code, of(&lines, "data directory").0), (1, "fail"));
    let Ran { code, err, .. } = run(folder.path(), "init --config my.toml");
    assert_eq!(code, 0, "{err}");
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("keys"), mode("keys/master.key"), mode("db"), mode("db/svc.db")), (0o700, 0o600, 0o700, 0o600));
    let (code, lines) = checks(folder.path(), "--config my.toml --data keys");
    assert_eq!((code, of(&lines, "file modes").0), (0, "ok"), "{lines:?}");
    let room = of(&lines, "free disk").1;
    assert!(room.contains(" MiB free at db|"), "{room}");

    fs::write(folder.path().join("no"), "").unwrap();
    fs::write(folder.path().join("my.toml"), "data = \"no/keys\"\nstore.url = \"sqlite:new/svc.db\"\n").unwrap();
    let Ran { code, err, .. } = run(folder.path(), "init --config my.toml");
    assert_eq!(code, 1);
    assert!(err.starts_with("svc: `no/keys` cannot be made for the master key: "), "{err}");
    assert!(!folder.path().join("new").exists(), "no database is there without its key");
}

/// What a start would refuse is found: an address of metrics that is taken, a file of root certificates that is none. Where a
/// server of ours serves metrics, all is well.
#[test]
fn what_a_start_would_refuse_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let stranger = std::thread::spawn(move || drop(other.accept()));
    let settings = format!("data = \".\"\nlisten = \"127.0.0.1:0\"\nmetrics.listen = \"{address}\"\n");
    fs::write(folder.path().join("my.toml"), format!("{settings}outbound.caFile = \"nope.pem\"\n")).unwrap();
    let (_, lines) = checks(folder.path(), "--config my.toml");
    // Where nobody has called, the stranger still waits.
    let _ = TcpStream::connect(address);
    stranger.join().unwrap();
    let taken = format!(
        "another program listens on {address}|Stop it, or choose another address by `metrics.listen`; port 0 takes any free one."
    );
    assert_eq!(of(&lines, "metrics address"), ("fail", taken.as_str()));
    let (state, told) = of(&lines, "root certificates");
    assert_eq!(state, "fail");
    assert!(
        told.starts_with("`nope.pem`, which is to hold root certificates, cannot be read")
            && told.contains("`outbound.caFile`"),
        "{told}"
    );

    // The port was free a moment ago: the server takes it.
    let mut command = svc(folder.path());
    command.args(["dev", "--json", "--listen", "127.0.0.1:0"]).env("SVC_METRICS_LISTEN", address.to_string());
    let mut server = Server::spawn(&mut command);
    server.line();
    fs::write(folder.path().join("my.toml"), settings).unwrap();
    let (_, lines) = checks(folder.path(), "--config my.toml");
    let wanted = format!("a svc server serves metrics at {address}|");
    assert_eq!(of(&lines, "metrics address"), ("ok", wanted.as_str()));
    assert!(!lines.iter().any(|it| it.0 == "root certificates"), "none are set");
}

/// A clock that is behind what was last written is found.
#[test]
fn a_clock_behind_the_data_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = fs::File::create(folder.path().join("svc.toml")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_000)).unwrap();
    let (code, lines) = checks(folder.path(), "--data .");
    let (state, message) = of(&lines, "clock");
    assert_eq!((code, state), (1, "fail"));
    assert!(
        message.contains("but the data directory was written at 2096-10-02T07:06:40.000Z|Set the clock"),
        "{message}"
    );
}

/// A clock behind the newest record is found, and a command that decides names it.
#[test]
fn a_clock_behind_the_records_is_found() {
    struct Ahead;
    impl Clock for Ahead {
        fn now(&self) -> Timestamp {
            clock::now().plus(Span::hours(60))
        }
    }
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init --data d").code, 0);
    let place = folder.path().join("d");
    let store = SqliteStore::existing(&place).unwrap();
    let signer = receipt_signer(&mut store.writer().unwrap(), &place, None, clock::now(), "https://x.example", &dalek);
    let gate = Gate::over(store, Ahead, signer.unwrap(), Settings::default()).unwrap();
    let (email, name) = (Email::parse("a@example.com").unwrap(), Label::parse("Later").unwrap());
    let settings = svc_core::state::people::Settings::default();
    gate.execute(CreateWorkspace { name, settings, owner: email }).unwrap();
    drop(gate);
    let (code, lines) = checks(folder.path(), "--data d");
    let (state, message) = of(&lines, "clock");
    assert_eq!((code, state), (1, "fail"));
    let both = ["but the newest record of the database is of ", "Set the clock", "Where it is right, it was ahead"];
    assert!(both.iter().all(|it| message.contains(it)), "{message}");
    for command in ["key create --scope admin --data d", "dev --data d --listen 127.0.0.1:0"] {
        let Ran { code, err, .. } = run(folder.path(), command);
        let both = ["which is behind the newest record of the database", "Where it is right, it was ahead"];
        assert!(code == 1 && both.iter().all(|it| err.contains(it)), "{command}: {err}");
    }
}

/// An address that another program listens on is found; one that is not this machine's as well.
#[test]
fn a_taken_address_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let stranger = std::thread::spawn(move || drop(other.accept()));
    fs::write(folder.path().join("my.toml"), format!("listen = \"{address}\"\ndata = \".\"\n")).unwrap();
    let (code, lines) = checks(folder.path(), "--config my.toml");
    stranger.join().unwrap();
    let wanted = format!("another program listens on {address}|Stop it, or set `listen` to another address.");
    assert_eq!((code, of(&lines, "listen address")), (1, ("fail", wanted.as_str())));
    fs::write(folder.path().join("my.toml"), "listen = \"192.0.2.1:80\"\ndata = \".\"\n").unwrap();
    assert_eq!(of(&checks(folder.path(), "--config my.toml").1, "listen address").0, "fail");
}

/// A server of this data that answers at its address is as it should be; one of other data is in the way.
#[test]
fn a_server_of_other_data_is_no_own() {
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut server = Server::start(own.path(), "--json");
    let home: Value = serde_json::from_str(&server.line()).unwrap();
    let base = home["baseUrl"].as_str().unwrap().to_owned();
    let address = base.strip_prefix("http://").unwrap();
    let look = |folder: &Path| {
        let settings = format!("listen = \"{address}\"\ndata = \"svc-data\"\n");
        fs::write(folder.join("my.toml"), settings).unwrap();
        let (_, state, message) =
            checks(folder, "--config my.toml").1.into_iter().find(|it| it.0 == "listen address").unwrap();
        (state, message)
    };
    let wanted = |state: &str, message: String| (state.to_owned(), message);
    assert_eq!(look(own.path()), wanted("ok", format!("a svc server answers at {address}|")));
    let foreign = format!(
        "a svc server of other data answers at {address}|Stop it, or set `listen` to another address; or name its data directory."
    );
    assert_eq!(look(other.path()), wanted("fail", foreign.clone()), "there is no data yet");
    fs::remove_file(other.path().join("my.toml")).unwrap();
    assert_eq!(run(other.path(), "init").code, 0);
    assert_eq!(look(other.path()), wanted("fail", foreign));
    server.stop();
}

/// A server that others reach, but whose base address is loopback, is worth a look.
#[test]
fn a_loopback_base_of_a_public_server_is_worth_a_look() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("my.toml"), "listen = \"0.0.0.0:0\"\ndata = \".\"\n").unwrap();
    assert_eq!(of(&checks(folder.path(), "--config my.toml").1, "base address").0, "look");
    fs::write(folder.path().join("my.toml"), "listen = \"0.0.0.0:0\"\ndata = \".\"\nbaseUrl = \"https://a.example\"\n")
        .unwrap();
    assert_eq!(of(&checks(folder.path(), "--config my.toml").1, "base address"), ("ok", "https://a.example|"));
}

/// Settings that cannot be read are the doctor's finding, not its end.
#[test]
fn faults_of_the_settings_are_findings() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("my.toml"), "lissten = 1\n").unwrap();
    let (code, lines) = checks(folder.path(), "--config my.toml");
    assert_eq!(
        (code, of(&lines, "settings")),
        (1, ("fail", "`lissten` in my.toml is no setting|Did you mean `listen`? Correct the name or remove the line."))
    );
}

/// Settings in `path` that have mail taken on a port of this machine, from this sender.
fn mail_settings(path: &Path, login: &str, port: u16, from: &str) {
    let mail = format!("mail.url = \"smtp://{login}127.0.0.1:{port}\"\nmail.from = \"{from}\"\n");
    fs::write(path.join("svc.toml"), format!("data = \".\"\nlisten = \"127.0.0.1:0\"\n{mail}")).unwrap();
}

/// Says yes to one client until it leaves.
fn yes_to_all(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(b"220 mail.example.com ESMTP\r\n").unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while let Some(Ok(line)) = lines.next() {
        stream.write_all(b"250 yes\r\n").unwrap();
        if line == "QUIT" {
            return;
        }
    }
}

/// A mail server that answers is well, also where the sender's domain is of another script; one that takes no such sender, or does not
/// answer, is named, with what to do and without the password.
#[test]
fn a_mail_server_that_does_not_answer_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || (0..2).for_each(|_| yes_to_all(&listener)));
    mail_settings(path, "", port, "svc@g\u{e4}te.example.com");
    let (_, lines) = checks(path, "--config svc.toml");
    assert_eq!(of(&lines, "mail"), ("ok", "127.0.0.1 answers|"));
    mail_settings(path, "", port, "p\u{f6}st@gate.example.com");
    let (code, lines) = checks(path, "--config svc.toml");
    let wanted = "127.0.0.1 takes no mail: it takes no letters beyond ASCII before the `@` of `mail.from`|\
                  Name an address in `mail.from` that has none, or a server that offers SMTPUTF8.";
    assert_eq!((code, of(&lines, "mail")), (1, ("fail", wanted)));
    server.join().unwrap();
    mail_settings(path, "svc:hush@", port, "svc@gate.example.com");
    let (code, lines) = checks(path, "--config svc.toml");
    let wanted = "127.0.0.1 takes no mail: no connection could be made|\
                  Correct the host and the port in `mail.url`, or this machine's way to it.";
    assert_eq!((code, of(&lines, "mail")), (1, ("fail", wanted)));
    assert!(!format!("{lines:?}").contains("hush"));
}

/// Behind https there is a proxy: where none is trusted, it is said that all clients count as one.
#[test]
fn a_proxy_that_nobody_trusts_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    let told = |settings: &str| {
        fs::write(folder.path().join("my.toml"), settings).unwrap();
        let (_, lines) = checks(folder.path(), "--config my.toml");
        lines.iter().any(|it| it.0 == "trusted proxies")
    };
    assert!(told("data = \"svc-data\"\nbaseUrl = \"https://a.example\"\n"));
    assert!(!told("data = \"svc-data\"\nbaseUrl = \"https://a.example\"\ntrustedProxies = [\"127.0.0.1\"]\n"));
    assert!(!told("data = \"svc-data\"\n"));
}
