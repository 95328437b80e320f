//! Errors within a stream, in whatever form a provider tells them.

use super::*;
use crate::value::secret::Secret;

const KEY: &str = "sk-secretsecretsecret";

/// What a client hears of a stream by a provider whose keys are these.
fn heard_of(dialect: Dialect, client: Dialect, text: &str, keys: &[&str]) -> (String, Ending) {
    let options = StreamOptions { answers: 1, ..StreamOptions::default() };
    let keys: Vec<_> = keys.iter().map(|it| Secret::new((*it).to_owned())).collect();
    let mut stream = Stream::new(dialect, client, options).hiding(keys.into());
    let mut out = Vec::new();
    stream.push(text.as_bytes(), &mut out).unwrap();
    let ending = stream.end(&mut out);
    (String::from_utf8(out).unwrap(), ending)
}

/// An error that comes after a first token is told once, in the client's own shape and without the key, whatever its form: it does
/// not go on as it came, nor does another follow it.
#[test]
fn an_error_of_any_form_is_told_once_and_without_the_key() {
    let chat = chat_chunk(r#"{"role":"assistant","content":"a"}"#, "null");
    let all = messages_all();
    let messages = all.split_at(all.find("event: content_block_stop").unwrap()).0;
    let says = format!("Incorrect API key provided: {KEY}");
    let named = |data: &str| format!("event: error\ndata: {data}\n\n");
    let bare = |data: &str| format!("data: {data}\n\n");
    let message = format!(r#"{{"message":"{says}"}}"#);
    let typed = format!(r#"{{"type":"error","message":"{says}"}}"#);
    let word = format!(r#"{{"object":"error","message":"{says}","type":"BadRequestError","code":400}}"#);
    for (dialect, event, kind) in [
        (CHAT, bare(&format!(r#"{{"object":"error","message":"{says}","code":401}}"#)), "upstream_failure"),
        (CHAT, bare(&word), "BadRequestError"),
        (CHAT, bare(&format!(r#"{{"detail":"{says}"}}"#)), "upstream_failure"),
        (CHAT, bare(&format!(r#"{{"detail":[{{"loc":["body"],"msg":"{says}"}}]}}"#)), "upstream_failure"),
        (CHAT, bare(&format!(r#"{{"choices":[],"usage":null,"message":"{says}"}}"#)), "upstream_failure"),
        (CHAT, named(&message), "upstream_failure"),
        (CHAT, named(&format!(r#"{{"choices":[{{"index":0}}],"message":"{says}"}}"#)), "upstream_failure"),
        (MESSAGES, named(&typed), "upstream_failure"),
        (MESSAGES, bare(&typed), "upstream_failure"),
        (MESSAGES, named(&message), "upstream_failure"),
        (MESSAGES, bare(&message), "upstream_failure"),
        (MESSAGES, named(&format!(r#"{{"type":"ping","message":"{says}"}}"#)), "ping"),
    ] {
        let begun = if dialect == CHAT { &*chat } else { messages };
        for client in [CHAT, MESSAGES] {
            let (out, ending) = heard_of(dialect, client, &[begun, &event, DONE].concat(), &[KEY]);
            let Ending::Failed(error) = ending else { panic!("{event} {ending:?} {out}") };
            assert_eq!(&*error.message, "Incorrect API key provided: [left out]", "{event}");
            assert!(hear(client, &out).failed && !out.contains(KEY), "{event} {out}");
            // `hear` panics at whatever follows it.
            assert!(out.ends_with(&told(client, kind)), "{event} {out}");
        }
    }
    // One that says nothing is one all the same.
    let (out, ending) = heard_of(CHAT, CHAT, &[&chat, "data: {\"object\":\"error\"}\n\n"].concat(), &[]);
    assert!(matches!(ending, Ending::Failed(it) if &*it.message == "it did not say why"), "{out}");
}

fn told(client: Dialect, kind: &str) -> String {
    let message = "Incorrect API key provided: [left out]";
    match client {
        CHAT => format!(
            "data: {{\"error\":{{\"message\":\"{message}\",\"type\":\"{kind}\",\"param\":null,\"code\":\"{kind}\"}}}}\n\n"
        ),
        MESSAGES => format!(
            "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\",\"message\":\"{message}\"}}}}\n\n"
        ),
    }
}

/// What a provider says beside its answer is no error: it goes on as it came.
#[test]
fn what_is_said_beside_an_answer_is_no_error() {
    let chunk = chat_chunk(r#"{"content":"a"}"#, "null").replacen("{\"id\"", "{\"message\":\"fine\",\"id\"", 1);
    let filter = "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n";
    let used = CHAT_USAGE.replacen("{\"id\"", "{\"detail\":\"all of it\",\"id\"", 1);
    let text = [&chunk, filter, &chat_chunk("{}", "\"stop\""), &used, DONE].concat();
    assert_eq!(heard_of(CHAT, CHAT, &text, &[KEY]), (text, Ending::Clean));
    let text = messages_all().replace("{\"type\":\"ping\"", "{\"type\":\"ping\",\"detail\":\"waiting\"");
    assert_eq!(heard_of(MESSAGES, MESSAGES, &text, &[KEY]), (text, Ending::Clean));
}

/// A key is in nothing that goes on as it came, wherever it stands; what is kept secret and is no key stays.
#[test]
fn no_key_goes_on_as_it_came() {
    let odd = format!("id: {KEY}\ndata: {{\"choices\":[],\"warning\":\"{KEY} of example.org expires\"}}\n\n");
    let text = [&format!(": {KEY}\n\n"), &*odd, &chat_text()].concat();
    let (out, ending) = heard_of(CHAT, CHAT, &text, &[KEY, "example.org"]);
    assert_eq!((out, ending), (text.replace(KEY, "[left out]"), Ending::Clean));
}
