//! One e-mail address is one person, however the name of its host is written.

use serde_json::{Value, json};
use svc_core::rules::people::links::MakeLink;
use svc_core::value::digest::Digest;
use svc_core::value::text::Email;
use svc_tests::office::Office;
use svc_tests::people::ask;

const LETTERS: &str = "zoe@caf\u{e9}.example";
const LABELS: &str = "zoe@xn--caf-dma.example";

/// A browser writes a host in A-labels, whoever invites somebody in letters: they sign in by either, are one person however often they
/// are invited, and the one principal of agents that are registered for either. What is shown is what was sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_one_person_in_either_writing() {
    for (kept, other) in [(LETTERS, LABELS), (LABELS, LETTERS), (LETTERS, "zoe@CAFE\u{301}.example.")] {
        let mut office = Office::open().await;
        let invited = office.post("members", json!({ "email": kept, "role": "admin" })).await.made();
        assert_eq!(invited["email"], json!(kept));
        // Who has not come yet is invited anew.
        let again = office.post("members", json!({ "email": other, "role": "admin" })).await.made();
        assert_eq!(again["principalId"], invited["principalId"], "{other}");
        let made = office.agent(&json!({ "principalEmail": other })).await;
        assert_eq!(made["principalId"], invited["principalId"], "{other}");

        let token = again["signInLink"].as_str().unwrap().split("token=").nth(1).unwrap();
        let client = &mut office.client;
        let got = ask(client, None, "POST", "/api/sign-in/link", Some(&json!({ "token": token }))).await;
        let cookie = got.header("set-cookie").unwrap().strip_prefix("__Host-sid=").unwrap();
        let sid = cookie.split(';').next().unwrap().to_owned();
        let password = "correct horse battery staple";
        let set = ask(client, Some(&sid), "POST", "/api/me/password", Some(&json!({ "password": password }))).await;
        assert!(set.status < 300, "{}", set.text());
        for writing in [kept, other] {
            let body = json!({ "email": writing, "password": password });
            let got = ask(client, None, "POST", "/api/sign-in", Some(&body)).await;
            assert_eq!(got.status, 200, "{writing}: {}", got.text());
        }
        // What `svc sign-in-link` makes.
        let link = MakeLink { email: Email::parse(other).unwrap(), token: Digest::of("another"), life: None };
        office.site.gate.execute(link).expect("somebody signs in so");
        let people = office.read("members").await;
        let named = |it: &&Value| it["principalId"] == invited["principalId"];
        let shown: Vec<_> = people["data"].as_array().unwrap().iter().filter(named).map(|it| &it["email"]).collect();
        assert_eq!(shown, [kept]);
        office.site.audit();
    }
}
