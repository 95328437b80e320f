//! Each example runs to its end and says what its documentation promises.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic")]

use std::process::Command;

/// Runs a program and fails where it does, or where one of these lines is not in what it printed, in this order.
fn prints(program: &str, lines: &[&str]) {
    let done = Command::new(program).output().expect("the example starts");
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{program}: {}\n{printed}\n{}", done.status, String::from_utf8_lossy(&done.stderr));
    let mut rest = printed.lines();
    for line in lines {
        assert!(rest.any(|it| it.contains(line)), "{program} did not print `{line}` in its place:\n{printed}");
    }
}

/// An agent in this process pays what it may, asks, is denied, and pays nothing twice.
#[test]
fn in_process() {
    prints(
        env!("CARGO_BIN_EXE_in_process"),
        &[
            "allow  Renew the design tool: paid 4900 cents, completed",
            "ask    Move to the yearly plan: a person decides at https://gate.example.com/w/wsp_",
            "deny   Buy a conference stand: EUR 4000.00 is above EUR 500.00 for one action",
            "allow  Renew the mail service: paid 1200 cents, completed",
            "past   Renew the design tool: nothing is left to do, it is completed",
        ],
    );
}

/// A person's yes is given and taken within the program, and the agent goes on.
#[test]
fn person_in_process() {
    prints(
        env!("CARGO_BIN_EXE_person_in_process"),
        &[
            "asked: EUR 310.00 is above EUR 200.00, from which a person is asked",
            "signed in as owner",
            "approved in process, completed",
        ],
    );
}

/// Two days go by on a clock that is moved by hand.
#[test]
fn fake_clock() {
    prints(
        env!("CARGO_BIN_EXE_fake_clock"),
        &[
            "2026-10-01T09:30:00.000Z payment 1  allow, with a receipt",
            "2026-10-01T09:34:30.000Z payment 10 allow, with a receipt",
            "2026-10-01T09:35:00.000Z payment 11 ask: 10 of 10 ",
            "2026-10-01T09:45:30.000Z ten minutes on allow",
            "a large one ask: EUR 300.00 is above EUR 200.00",
            "2026-10-02T09:45:30.000Z a day on deny: nobody decided in time",
            "2026-10-02T09:45:30.000Z never settled past: allowed",
            "2026-10-02T10:45:30.000Z an hour on past: lapsed",
            "the books are right",
        ],
    );
}

/// One program serves HTTP and decides in process, over one store.
#[test]
fn server() {
    prints(
        env!("CARGO_BIN_EXE_server"),
        &[
            "listens on a free port: true",
            "over HTTP: HTTP/1.1 200 OK",
            "over HTTP: payment is allow",
            "in process: allowed, the same receipt: true",
            "stopped",
        ],
    );
}

/// A store that somebody wrote passes the suite and keeps a gate's rows through a crash.
#[test]
fn custom_store() {
    prints(
        env!("CARGO_BIN_EXE_custom_store"),
        &[
            "the suite that every store passes: passed",
            "before the crash: allowed",
            "after the crash: allowed, the same receipt: true",
        ],
    );
}
