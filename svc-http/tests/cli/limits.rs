//! What a running program holds of clients and files, and how signals end it.

use std::fs;
use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::{Server, authorize, signal, text};
use crate::{PROGRAM, run, svc};

/// A deadline for whatever must not last.
const SOON: Duration = Duration::from_secs(20);

/// `svc dev` with these settings in its environment, and what it printed.
fn dev(folder: &Path, settings: &[(&str, &str)]) -> (Server, Value) {
    let mut command = svc(folder);
    command.args(["dev", "--listen", "127.0.0.1:0", "--json"]).envs(settings.iter().copied());
    let mut server = Server::spawn(&mut command);
    let home = serde_json::from_str(&server.line()).unwrap();
    (server, home)
}

fn connect(home: &Value) -> TcpStream {
    let stream = TcpStream::connect(text(home, "baseUrl").trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

/// The head of a request that asks the gate, with a body of this length.
fn head(home: &Value, length: usize) -> String {
    let key = text(home, "agentKey");
    format!(
        "POST /v1/actions/authorize HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-length: {length}\r\n\r\n"
    )
}

const BODY: &str = r#"{"type":"tool.call","summary":"Read a file","tool":{"name":"read"}}"#;

/// Sends a whole request and reads the answer to the end of the connection.
fn ask(home: &Value, body: &str) -> String {
    let mut stream = connect(home);
    let head = head(home, body.len()).replace("host: x", "host: x\r\nconnection: close");
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    rest(stream)
}

fn rest(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Rates and sizes are those of the settings.
#[test]
fn rates_and_sizes_follow_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let settings =
        [("SVC_LIMITS_GATE_PER_MINUTE", "3"), ("SVC_LIMITS_VERIFY_PER_MINUTE", "7"), ("SVC_LIMITS_BODY_BYTES", "1024")];
    let (_server, home) = dev(folder.path(), &settings);
    let first = ask(&home, BODY);
    assert!(first.starts_with("HTTP/1.1 200") && first.contains("ratelimit-limit: 3\r\n"), "{first}");
    let large = ask(&home, &" ".repeat(1_025));
    assert!(large.starts_with("HTTP/1.1 413"), "{large}");
    assert!(ask(&home, BODY).starts_with("HTTP/1.1 200"));
    let limited = ask(&home, BODY);
    assert!(limited.starts_with("HTTP/1.1 429") && limited.contains("\r\nretry-after: "), "{limited}");
    let mut stream = connect(&home);
    let verify =
        "POST /v1/verify HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 14\r\n\r\n{\"receipt\":\"\"}";
    stream.write_all(verify.as_bytes()).unwrap();
    let verdict = rest(stream);
    assert!(verdict.contains("ratelimit-limit: 7\r\n") && verdict.contains("malformed"), "{verdict}");
}

/// A client that sends no head, or no body, is let go after the time of the settings.
#[test]
fn slow_clients_are_let_go_after_the_time_of_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, home) = dev(folder.path(), &[("SVC_TIMEOUTS_HEADER_MS", "700"), ("SVC_TIMEOUTS_BODY_MS", "150")]);
    let silent = connect(&home);
    assert_eq!(rest(silent), "");
    let mut slow = connect(&home);
    slow.write_all(head(&home, BODY.len()).as_bytes()).unwrap();
    let answer = rest(slow);
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("did not arrive within 150 ms"), "{answer}");
}

/// Past the connections of the settings a client is told to come again, and a place that is freed is given again.
#[test]
fn connections_are_counted_as_the_settings_say() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, home) = dev(folder.path(), &[("SVC_LIMITS_CONNECTIONS", "1")]);
    // One at work: one that waits for its client would make room.
    let first = begun(&home);
    let refused = ask(&home, BODY);
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("not_ready"), "{refused}");
    drop(first);
    let until = Instant::now() + SOON;
    while !ask(&home, BODY).starts_with("HTTP/1.1 200") {
        assert!(Instant::now() < until, "the place is given again");
    }
}

/// SIGTERM lets a running request end and takes no new connection; what does not end in `timeouts.drainMs` is cut, and a
/// second signal ends everything at once.
#[test]
fn sigterm_drains() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, home) = dev(folder.path(), &[]);
    let mut running = begun(&home);
    signal(&server.child, "TERM");
    until_closed(&home);
    running.write_all(BODY.as_bytes()).unwrap();
    let answer = rest(running);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"decision\":"), "{answer}");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));

    let folder = tempfile::tempdir().unwrap();
    let (mut server, home) =
        dev(folder.path(), &[("SVC_TIMEOUTS_DRAIN_MS", "200"), ("SVC_TIMEOUTS_BODY_MS", "600000")]);
    let cut = begun(&home);
    signal(&server.child, "TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0), "cut after the time of the settings");
    drop(cut);

    let folder = tempfile::tempdir().unwrap();
    let (mut server, home) =
        dev(folder.path(), &[("SVC_TIMEOUTS_DRAIN_MS", "600000"), ("SVC_TIMEOUTS_BODY_MS", "600000")]);
    let cut = begun(&home);
    signal(&server.child, "TERM");
    until_closed(&home);
    signal(&server.child, "INT");
    assert_eq!(server.child.wait().unwrap().code(), Some(0), "the second signal ends it");
    drop(cut);
}

/// SIGHUP, which a terminal that is closed sends, lets the server end as SIGTERM does.
#[test]
fn a_closed_terminal_ends_the_server_in_good_order() {
    let folder = tempfile::tempdir().unwrap();
    #[cfg(target_os = "linux")]
    let mut command = svc_with(folder.path(), "--default-signal=HUP");
    #[cfg(not(target_os = "linux"))]
    let mut command = svc(folder.path());
    let mut server = Server::spawn(command.args(["dev", "--listen", "127.0.0.1:0", "--json"]));
    server.line();
    signal(&server.child, "HUP");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let mut log = String::new();
    server.log.read_to_string(&mut log).unwrap();
    assert!(log.contains("\"stopped\""), "{log}");
}

/// The program, begun with a signal as `env` says.
#[cfg(target_os = "linux")]
fn svc_with(folder: &Path, signal: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["-i", signal, PROGRAM]).current_dir(folder).stdin(Stdio::null());
    command
}

/// A server that was told to outlive its terminal does: what ignored SIGHUP before it began, as `nohup`, has it ignored still.
#[cfg(target_os = "linux")]
#[test]
fn a_hang_up_that_was_ignored_is_not_caught() {
    let folder = tempfile::tempdir().unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    // The mask of a process that ignores it, and of one that catches it: SIGHUP is the first bit.
    for (before, ignored, caught) in [("--ignore-signal=HUP", 1, 0), ("--default-signal=HUP", 0, 1)] {
        let mut command = svc_with(folder.path(), before);
        let mut server = Server::spawn(command.args(serve));
        let mut log = String::new();
        while !log.contains("\"listening\"") {
            assert!(server.log.read_line(&mut log).unwrap() > 0, "{log}");
        }
        let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
        let first = |name: &str| {
            let mask = status.lines().find_map(|it| it.strip_prefix(name)).unwrap();
            u64::from_str_radix(mask.trim(), 16).unwrap() & 1
        };
        assert_eq!((first("SigIgn:"), first("SigCgt:")), (ignored, caught), "{before}");
        assert_eq!(server.stop().0, Some(0));
    }
}

/// Where a file may grow no more, what cannot be written is refused, and the server lives.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_may_grow_no_more_ends_no_server() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    let blocks = fs::metadata(folder.path().join("svc-data/svc.db")).unwrap().len() / 512 + 256;
    let line = format!("ulimit -f {blocks}; exec {PROGRAM} dev --listen 127.0.0.1:0 --new-keys --json");
    let mut command = Command::new("sh");
    let mut server = Server::spawn(command.env_clear().current_dir(folder.path()).args(["-c", &line]));
    let home: Value = serde_json::from_str(&server.line()).unwrap();
    let (key, until) = (text(&home, "agentKey").to_owned(), Instant::now() + 3 * SOON);
    while authorize(&home, &key).0 < 500 {
        assert!(Instant::now() < until, "it grows on");
    }
    assert!(server.child.try_wait().unwrap().is_none());
    let (code, log) = server.stop();
    assert_eq!(code, Some(0), "{log}");
}

/// A signal ends a server in good order also while it waits for what it opens: the first process of a container is ended by none that it
/// does not catch.
#[test]
fn a_signal_ends_a_server_that_opens_its_store() {
    for command in ["serve", "dev"] {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(folder.path(), "init").code, 0);
        let key = folder.path().join("svc-data/master.key");
        fs::remove_file(&key).unwrap();
        assert!(Command::new("mkfifo").arg(&key).status().unwrap().success());
        let mut server = Server::spawn(svc(folder.path()).args([command, "--listen", "127.0.0.1:0"]));
        // It is opened once the server reads it, which then waits for a key that does not come.
        let pipe = fs::OpenOptions::new().write(true).open(&key).unwrap();
        ends_before_it_serves(&mut server, command);
        drop(pipe);
    }
}

/// The same while it waits for another process that makes what a first start makes.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_a_server_that_waits_for_its_turn() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    let turn = folder.path().join("svc-data/svc.init.lock");
    let other = fs::File::create(&turn).unwrap();
    other.lock().unwrap();
    let mut server = Server::spawn(svc(folder.path()).args(["dev", "--listen", "127.0.0.1:0"]));
    let (files, until) = (format!("/proc/{}/fd", server.child.id()), Instant::now() + SOON);
    // It has the file open once it waits.
    let waits =
        || fs::read_dir(&files).unwrap().flatten().any(|it| fs::read_link(it.path()).is_ok_and(|it| it == turn));
    while !waits() {
        assert!(Instant::now() < until, "it waits for nobody");
    }
    ends_before_it_serves(&mut server, "dev");
}

/// That a signal ends a server which opens what it is to serve, in good order.
fn ends_before_it_serves(server: &mut Server, command: &str) {
    signal(&server.child, "TERM");
    let until = Instant::now() + SOON;
    let ended = loop {
        match server.child.try_wait().unwrap() {
            Some(status) => break status,
            None => assert!(Instant::now() < until, "{command} waits on"),
        }
    };
    assert_eq!(ended.code(), Some(0), "{command}");
    let mut log = String::new();
    server.log.read_to_string(&mut log).unwrap();
    assert!(log.contains("stopped before there was anything to serve"), "{command}: {log}");
}

/// A second signal while nothing runs is told of no request that it has cut off.
#[test]
fn a_second_signal_cuts_off_nothing_where_nothing_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::spawn(svc(folder.path()).args(["serve", "--listen", "127.0.0.1:0"]));
    let mut log = String::new();
    // It has just begun, and takes a moment to close what it has opened.
    for (word, name) in [("listening", "TERM"), ("stopping", "INT")] {
        while !log.contains(word) {
            assert!(server.log.read_line(&mut log).unwrap() > 0, "{log}");
        }
        signal(&server.child, name);
    }
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    server.log.read_to_string(&mut log).unwrap();
    assert!(log.contains("\"stopped\"") && !log.contains("before running requests"), "{log}");
}

/// A request that the server has begun with: it has asked for the body.
fn begun(home: &Value) -> TcpStream {
    let mut stream = connect(home);
    let head = head(home, BODY.len()).replace("host: x", "host: x\r\nexpect: 100-continue");
    stream.write_all(head.as_bytes()).unwrap();
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

/// Waits until the server takes no connection any more.
fn until_closed(home: &Value) {
    let address = text(home, "baseUrl").trim_start_matches("http://");
    let until = Instant::now() + SOON;
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < until, "connections are taken still");
    }
}

/// `svc` by a shell that sets its limits of open files.
fn limited(folder: &Path, (soft, hard): (u32, u32), arguments: &str) -> Command {
    let program = svc(folder).get_program().to_owned();
    let mut command = Command::new("/bin/sh");
    command.env_clear().current_dir(folder).arg("-c");
    command.arg(format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" {arguments}")).arg(program);
    command
}

/// A server takes as many file handles as the system allows it, and where these are too few for its connections it says so, leaves the
/// rest of them to everything else and answers the connections beyond; the doctor tells of it beforehand.
#[test]
fn connections_leave_file_handles_to_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, home) = {
        let mut server = Server::spawn(&mut limited(folder.path(), (48, 200), "dev --listen 127.0.0.1:0 --json"));
        let home: Value = serde_json::from_str(&server.line()).unwrap();
        (server, home)
    };
    let ready = |stream: &mut TcpStream| {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        String::from_utf8_lossy(&first).into_owned()
    };
    let mut all: Vec<TcpStream> = Vec::new();
    for place in 0..72 {
        let mut stream = connect(&home);
        assert_eq!(ready(&mut stream), "HTTP/1.1 200", "{place}");
        all.push(stream);
    }
    // Those that wait for their client make room, once that was noticed.
    let beyond = ready(&mut connect(&home));
    assert!(["HTTP/1.1 200", "HTTP/1.1 503"].contains(&&*beyond), "{beyond}");
    all.pop();
    let doctor = |handles, settings: &[(&str, &str)]| {
        let output = limited(folder.path(), handles, "doctor").envs(settings.iter().copied()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let told = doctor((48, 200), &[]);
    assert!(
        told.contains("look  file handles: a process may have 200 files open here, which is room for 72"),
        "{told}"
    );
    let told = doctor((48, 200), &[("SVC_LIMITS_CONNECTIONS", "72")]);
    assert!(!told.contains("file handles"), "{told}");
}
