//! Bodies by which people sign in, and by which they and their agents are let in.

use serde_json::{Value, json};
use svc_core::refusal::Refusal;
use svc_core::rules::gate::decide::Choice;
use svc_core::rules::people::by::{Person, Seat};
use svc_core::state::people::{Application, ApplicationState};
use svc_core::value::digest::SessionDigest;
use svc_core::value::id::{AccountId, ApplicationId, PrincipalId, WorkspaceId};
use svc_core::value::json::Json;
use svc_core::value::{Id as _, Span};
use svc_http::wire::application::{self, Known};
use svc_http::wire::named::named;
use svc_http::wire::sign_in::{self, Factor};
use svc_http::wire::{agent, approval, budget, key, member, token};

use super::bodies::{self, Body, leads, told};
use super::mandates::{NOW, held};

const ID: &str = "prp_01K6FN0001000000000000000A";

/// Bodies of signing in, and about people and agents.
pub const PEOPLE: &[Body] = &[
    Body {
        read: |it| told(sign_in::credentials(it)),
        seeds: &[
            r#"{"email":"ann@example.com","password":"a planted-secret"}"#,
            r#"{"email":7,"password":["planted-secret"]}"#,
        ],
    },
    Body { read: |it| told(sign_in::link(it)), seeds: &[r#"{"token":"planted-secret"}"#] },
    Body { read: |it| told(sign_in::own_proof(it)), seeds: &["", r#"{"pending":"planted-secret"}"#] },
    Body {
        read: |it| told(sign_in::second_factor(it)),
        seeds: &[
            r#"{"pending":"planted-secret","code":"123456"}"#,
            r#"{"pending":"x","code":"planted-secret","recoveryCode":"planted-secret"}"#,
        ],
    },
    Body {
        read: |it| told(sign_in::factor_beside(it)),
        seeds: &[r#"{"recoveryCode":"planted-secret","pending":null}"#, r#"{"code":{"a":"planted-secret"}}"#],
    },
    Body { read: |it| told(sign_in::code_beside(it)), seeds: &[r#"{"code":"planted-secret","pending":"x"}"#] },
    Body {
        read: |it| told(sign_in::new_password(it)),
        seeds: &[
            r#"{"current":"planted-secret","password":"a new planted-secret"}"#,
            r#"{"current":"planted-secret","password":"            "}"#,
        ],
    },
    Body {
        read: |it| told(approval::read(it, Choice::Approve, asker())),
        seeds: &[
            r#"{"note":"go on","actionDigest":"sha256:0000000000000000000000000000000000000000000000000000000000000000","principalId":"prp_01K6FN0001000000000000000A","code":"planted-secret"}"#,
            r#"{"note":7,"actionDigest":"sha256:","recoveryCode":"planted-secret"}"#,
        ],
    },
    Body {
        read: |it| told(approval::read(it, Choice::Deny, asker())),
        seeds: &["", r#"{"note":"no","code":["planted-secret"]}"#],
    },
    Body {
        read: |it| told(agent::read(it, NOW)),
        seeds: &[
            r#"{"name":"Buyer","principalEmail":"ann@example.com","tier":"trusted","sponsor":"prp_01K6FN0001000000000000000A","killOwner":"prp_01K6FN0001000000000000000B","mandates":[{"template":"office"},{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perAction":5000}}]}"#,
            r#"{"name":"","tier":"high","mandates":[{"name":"x"},{"template":1},7]}"#,
        ],
    },
    Body {
        read: |it| told(agent::read_of_token(it)),
        seeds: &[
            r#"{"name":"Buyer","principalEmail":"ann@example.com","mandates":[{"template":"office"}]}"#,
            r#"{"name":"Buyer","principalEmail":"ann@example.com","mandates":[{"template":{}},[],{"name":"x"}]}"#,
        ],
    },
    Body {
        read: |it| told(agent::read_change(it)),
        seeds: &[
            "",
            r#"{"name":"Buyer","tier":"restricted","sponsor":null,"killOwner":"prp_01K6FN0001000000000000000A"}"#,
        ],
    },
    Body {
        read: |it| told(member::read(it)),
        seeds: &[
            r#"{"email":"ann@example.com","name":"Ann","role":"admin","teamIds":["team_01K6FN0001000000000000000A"]}"#,
        ],
    },
    Body { read: |it| told(member::read_change(it)), seeds: &["{}", r#"{"role":"owner","teamIds":[]}"#] },
    Body {
        read: |it| told(member::read_team(it, true)),
        seeds: &[
            r#"{"name":"Desk","owner":"prp_01K6FN0001000000000000000A","memberIds":["prp_01K6FN0001000000000000000A"]}"#,
        ],
    },
    Body { read: |it| told(member::read_team(it, false)), seeds: &["", r#"{"owner":null,"memberIds":[1,"x"]}"#] },
    Body {
        read: |it| told(key::read(it)),
        seeds: &[
            "",
            r#"{"scope":"admin","principalId":"prp_01K6FN0001000000000000000A","teamId":"team_01K6FN0001000000000000000A","label":"laptop","taskClassId":"drafting","policyProfileId":"pol_01K6FN0001000000000000000A","taskClassOpen":true,"expiresInDays":90}"#,
            r#"{"scope":"agent","expiresInDays":0}"#,
        ],
    },
    Body { read: |it| told(key::read_of_agent(it)), seeds: &[r#"{"label":"laptop","expiresInDays":3650}"#] },
    Body {
        read: |it| told(token::read(it)),
        seeds: &[
            r#"{"name":"CI","scopes":["agents:write","agents:read"],"expiresInDays":30,"ipAllow":["192.0.2.0/24","2001:db8::/32"]}"#,
            r#"{"name":"CI","scopes":[],"ipAllow":["192.0.2.1/24","::ffff:10.0.0.0/104","10.0.0.0/+8"]}"#,
        ],
    },
    Body {
        read: applied,
        seeds: &[
            r#"{"kind":"agent","reason":"I buy","change":{"name":"Buyer","principalEmail":"ann@example.com","mandates":[{"template":"office"},{"name":"Tools","actions":["tool.call"],"tools":{"allow":["web*"]}}]}}"#,
            r#"{"kind":"mandate","target":"agt_01K6FN0001000000000000000A","reason":"r","change":{"name":"Office","actions":["payment","crm.*"],"limits":{"currency":"EUR","perAction":5000,"perPeriod":{"amount":12000,"period":"hour"},"onLimit":"ask"},"confirmBroaden":true}}"#,
            r#"{"kind":"mandate","target":"mnd_01K6FN0001000000000000000A","reason":"r","change":{"limits":{"perAction":null,"count":{"max":3,"period":"day"}},"merchants":{"allow":["*.example.com"]},"fields":null,"duplicates":"record","state":"paused"}}"#,
            r#"{"kind":"tier","target":"agt_01K6FN0001000000000000000A","reason":"r","change":{"tier":"trusted"}}"#,
            r#"{"kind":"role","reason":"I lead","change":{"role":"admin","teamIds":["team_01K6FN0001000000000000000A"]}}"#,
            r#"{"kind":"budget_raise","target":"bdg_01K6FN0001000000000000000A","reason":"r","change":{"amountMicros":5000000,"note":"n"}}"#,
        ],
    },
    Body { read: |it| told(application::read_note(it)), seeds: &[r#"{"note":"no"}"#] },
    Body { read: |it| told(application::read_yes(it)), seeds: &[r#"{"note":"yes","confirmBroaden":true}"#] },
];

/// Bodies of signing in, agents, members, teams, keys, tokens and applications are as in [`bodies::hold`]; the ids that are found in one
/// stand where they are said to; and what is typed as a second factor is a code of six digits or another word.
///
/// # Panics
/// Where that is not so.
pub fn people(data: &[u8]) {
    bodies::hold(PEOPLE, data);
    let Some(json) = data.get(1..).and_then(|it| Json::parse(it).ok()) else { return };
    let scope = budget::scope_of(&json).map(|_| "scope".to_owned());
    let ids = [agent::IDS, key::IDS, member::IDS, member::TEAM_IDS, budget::IDS, token::IDS].concat();
    let applied = application::named(data.get(1..).unwrap_or_default(), someone());
    for path in named(&json, &ids).into_iter().chain(applied).map(|(path, _)| path).chain(scope) {
        let top = path.split('.').next().unwrap_or_default();
        assert!(json.get(top).is_some() && leads(&json, &path), "{path}");
    }
    if let Some(text) = json.get("code").and_then(Json::as_str)
        && let Factor::Code(code) = Factor::typed(text)
    {
        assert!(code.expose().len() == 6 && code.expose().bytes().all(|it| it.is_ascii_digit()));
    }
}

/// Bodies of every route.
#[must_use]
pub fn people_seeds() -> Vec<Vec<u8>> {
    bodies::seeds(PEOPLE)
}

fn someone() -> Person {
    let (account, session) = (AccountId::from_bits(1), SessionDigest::of(&[b"planted".as_slice()]));
    Person { workspace: WorkspaceId::from_bits(1), principal: asker(), account, seat: Seat::Session(session) }
}

fn asker() -> PrincipalId {
    PrincipalId::parse(ID).expect("an id")
}

/// An application is told as the body that makes it again.
fn applied(body: &[u8]) -> Result<String, Refusal> {
    let known = Known { asker: asker(), now: NOW, mandate: &|_| Some(held()) };
    let asked = application::read(body, &known)?;
    let row = Application {
        id: ApplicationId::from_bits(1),
        workspace: WorkspaceId::from_bits(1),
        by: asker(),
        change: asked.change.clone(),
        reason: asked.reason.clone(),
        created_at: NOW,
        expires_at: NOW.plus(Span::hours(1)),
        state: ApplicationState::Waiting,
        second: None,
    };
    let mut shown = application::write(&row, NOW, "https://gate.example.com");
    let mut again = json!({});
    for name in ["kind", "target", "change", "reason"] {
        let member = shown.get_mut(name).map_or(Value::Null, Value::take);
        again.as_object_mut().expect("an object").insert(name.to_owned(), member);
    }
    let again = application::read(again.to_string().as_bytes(), &known).expect("what is told is read");
    assert_eq!(again.change, asked.change);
    assert_eq!(again.reason, asked.reason);
    told(Ok(asked))
}
