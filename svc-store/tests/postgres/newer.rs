//! A gate whose database a newer release has brought to its own schema.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use svc_core::store::Clock as _;
use svc_core::value::secret::Secret;
use svc_store::keys::{dalek, receipt_signer};
use svc_store::seal::MasterKey;
use svc_store::{Backend as _, Gate, Settings, SystemClock};

use crate::database::Database;
use crate::open;

/// It is not ready, also where nothing is asked of it: whoever balances between servers sends it nobody any more.
#[test]
fn a_gate_of_the_release_before_fails_without_being_asked() {
    let server = Database::start();
    let (store, clock) = (open(&server.address()), SystemClock::new());
    let master = Some(MasterKey::new(Secret::new([7; 32])));
    let mut writer = store.writer().unwrap();
    let signer =
        receipt_signer(&mut writer, Path::new(""), master, clock.now(), "https://gate.example.com", &dalek).unwrap();
    let mut settings = Settings::default();
    settings.timers = false;
    let gate = Gate::over(store, clock, signer, settings).unwrap();
    assert!(!gate.is_failing());
    server.sql("UPDATE svc.meta SET value=value+1");
    let until = Instant::now() + Duration::from_secs(30);
    while !gate.is_failing() {
        assert!(Instant::now() < until, "it goes on as if it could decide");
        thread::yield_now();
    }
    gate.close();
}
