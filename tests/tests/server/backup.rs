//! `svc backup` while the server is under load: the copy is one moment of the database, whole, with everything in it that was
//! answered before it began; and a server started on it goes on from there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use svc_core::testing::audit::{audit, audit_approvals};
use svc_core::testing::world::BASE_URL;
use svc_tests::client::Client;
use svc_tests::program::{Program, command};
use svc_tests::requests::{WIDE, payment_to, text};
use svc_tests::site::{Agent, Site, rows_of};

/// Asks and settles until it is told to stop; the actions that were answered.
async fn work(mut client: Client, agent: Agent, stop: Arc<AtomicBool>) -> Vec<Value> {
    let mut answered = Vec::new();
    for n in 1_i64.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let body = payment_to(n, &format!("shop{}.example.org", n % 40));
        let decision = client.authorize(&agent.key, &body).await.ok();
        if n % 3 == 0 {
            client.settle(&agent.key, text(&decision["id"]), &json!({ "status": "completed" })).await.ok();
        }
        answered.push(decision);
    }
    answered
}

async fn backup(data: &Path, file: &Path) -> (bool, String, String) {
    let done = command(data).arg("backup").arg(file).arg("--json").output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.success(), text(done.stdout), text(done.stderr))
}

/// Three backups under load; each is clean, holds what was answered before it, and the last is restored and served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_is_one_moment_and_can_be_restored() {
    let (data, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let site = Site::with(|plan| plan.directory = Some(data.path().to_owned())).await;
    let agents = [site.agent(&[WIDE]), site.agent(&[WIDE])];
    site.stop().await;
    let program = Program::serve(data.path(), BASE_URL).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut workers = Vec::new();
    for agent in agents.iter().chain(&agents) {
        let client = Client::connect(program.address).await;
        workers.push(tokio::spawn(work(client, agent.clone(), Arc::clone(&stop))));
    }
    let mut client = Client::connect(program.address).await;
    let (mut before, mut restored) = (Vec::new(), None);
    for n in 0..3 {
        for m in 0..20 {
            let asked = client.authorize(&agents[0].key, &payment_to(7, &format!("s{n}-{m}.example.com"))).await.ok();
            before.push(asked);
        }
        let file = files.path().join(format!("backup-{n}.db"));
        let (done, out, err) = backup(data.path(), &file).await;
        assert!(done, "{err}");
        let told: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(told["bytes"].as_u64(), Some(fs::metadata(&file).unwrap().len()));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(err.contains("master.key"), "{err}");
        assert_eq!(fs::read_dir(files.path()).unwrap().count(), n + 1, "nothing else is left");
        let place = tempfile::tempdir().unwrap();
        fs::copy(&file, place.path().join("svc.db")).unwrap();
        fs::copy(data.path().join("master.key"), place.path().join("master.key")).unwrap();
        let rows = rows_of(place.path());
        let mut report = audit(&rows);
        report.faults.extend(audit_approvals(&rows));
        report.assert_clean("the audit of a backup");
        assert!(report.actions >= before.len());
        restored = Some((place, report.actions));
    }
    let (again, out, err) = backup(data.path(), &files.path().join("backup-0.db")).await;
    assert!(!again && out.is_empty() && err.contains("a backup overwrites nothing"), "{err}");
    stop.store(true, Ordering::SeqCst);
    let mut answered = 0;
    for worker in workers {
        answered += worker.await.unwrap().len();
    }
    program.stop().await;
    let (place, actions) = restored.unwrap();
    assert!(actions < before.len() + answered + 1, "no more than was asked");
    let program = Program::serve(place.path(), BASE_URL).await;
    let mut client = Client::connect(program.address).await;
    for told in &before {
        let now = client.read_action(&agents[0].key, text(&told["id"])).await.ok();
        assert_eq!(now["digestSalt"], told["digestSalt"]);
    }
    let next = client.authorize(&agents[1].key, &payment_to(7, "after.example.com")).await.ok();
    assert_eq!(next["status"], "allowed", "its keys are in force and its master key opens it");
    program.stop().await;
    audit(&rows_of(place.path())).assert_clean("the audit of what was restored");
}
