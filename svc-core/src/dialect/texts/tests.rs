//! Which texts of a request are looked at, and what it is once some were replaced.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::files::{Source, address as address_of};
use super::super::{Body, Target};
use crate::state::gateway::{Dialect, Host};

/// A model of a shape, at its maker.
fn to(dialect: Dialect) -> Target<'static> {
    Target {
        dialect,
        model: "m",
        max_output: 9,
        reasoning: true,
        provider: "p",
        is_strict: true,
        host: Host::Maker,
        is_elsewhere: false,
        is_its_own: true,
        bound: None,
    }
}

fn seen(dialect: Dialect, body: &str) -> Vec<String> {
    let mut body = Body::read(dialect, body.as_bytes()).unwrap();
    let mut seen = Vec::new();
    body.texts_mut(&mut |text| {
        seen.push(text.to_owned());
        None
    })
    .unwrap();
    seen
}

/// Whatever kind of part a text stands in, it is looked at; media, ids and the shape's own words are not.
#[test]
fn every_text_that_goes_out_is_looked_at() {
    let chat = seen(
        Dialect::Chat,
        r#"{"model":"m","user":"t-user","messages":[{"role":"system","content":"t-system"},
        {"role":"user","content":[{"type":"text","text":"t-part"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},
        {"type":"image_url","image_url":{"url":"t-https"}},{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}},
        {"type":"file","file":{"filename":"t-file","file_data":"data:application/pdf;base64,AAAA"}},{"type":"new","prompt":"t-new"}]},
        {"role":"assistant","content":null,"reasoning_content":"t-reason","tool_calls":[{"id":"c1","type":"function","function":{"name":"t-name",
        "arguments":"{\"t-key\":[\"t-arg\",{\"x\":411111111111111}],\"s\":1}"}},{"id":"c2","type":"function","function":{"name":"t-name2","arguments":"t-broken {"}}]},
        {"role":"tool","tool_call_id":"c1","content":"t-result"},{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"t-listed"}]}],
        "tools":[{"type":"function","function":{"name":"t-tool","description":"t-desc","parameters":{"type":"object","properties":{"id":{"description":"t-prop"}}}}}],
        "metadata":{"t-label":"t-value","id":"t-id"},"extra":{"t-extra":{"model":"t-model","n":4111111111111111}},"seed":4222222222222222}"#,
    );
    for text in [
        "t-user",
        "t-system",
        "t-part",
        "t-https",
        "t-file",
        "t-new",
        "t-reason",
        "t-name",
        "t-key",
        "t-arg",
        "411111111111111",
        "t-broken {",
        "t-result",
        "t-listed",
        "t-tool",
        "t-desc",
        "t-prop",
        "t-label",
        "t-value",
        "t-id",
        "t-extra",
        "t-model",
        "4111111111111111",
    ] {
        assert!(chat.iter().any(|it| it == text), "{text} is not looked at");
    }
    assert!(
        !chat
            .iter()
            .any(|it| it.contains("AAAA") || it == "c1" || it == "m" || it.starts_with('4') && it.contains('2')),
        "{chat:?}"
    );

    let messages = seen(
        Dialect::Messages,
        r#"{"model":"m","max_tokens":9,"system":[{"type":"text","text":"t-system","cache_control":{"type":"ephemeral"}}],"metadata":{"user_id":"t-user"},
        "messages":[{"role":"user","content":[{"type":"document","title":"t-title","source":{"type":"text","media_type":"text/plain","data":"t-doc"}},
        {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},
        {"role":"assistant","content":[{"type":"thinking","thinking":"t-think","signature":"AAAA"},{"type":"redacted_thinking","data":"AAAA"},
        {"type":"tool_use","id":"c1","name":"t-tool","input":{"id":"t-input","type":"t-type"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"t-result"}]}]}]}"#,
    );
    for text in ["t-system", "t-user", "t-title", "t-doc", "t-think", "t-tool", "t-input", "t-type", "t-result"] {
        assert!(messages.iter().any(|it| it == text), "{text} is not looked at");
    }
    assert!(!messages.iter().any(|it| it.contains("AAAA") || it == "c1"), "{messages:?}");
}

/// A name that a shape gives an id, bytes or a word is a name like any other wherever the shape does not put it: what stands
/// there is looked at in both shapes alike.
#[test]
fn what_stands_under_a_name_of_the_shape_is_looked_at_elsewhere() {
    for dialect in [Dialect::Chat, Dialect::Messages] {
        for (part, texts) in [
            (
                r#"{"type":"new","id":"t-1","format":"t-2","detail":"t-3","role":"t-4","model":"t-5","signature":"t-6"}"#,
                6,
            ),
            (
                r#"{"type":"text","text":"t-1","tool_use_id":"t-2","tool_call_id":"t-3","file_id":"t-4","data":"t-5"}"#,
                5,
            ),
            (r#"{"type":"image_url","image_url":{"url":"data:text/plain,t-1","detail":"t-2","id":"t-3"}}"#, 3),
            (r#"{"type":"image_url","image_url":"data:text/plain,t-1"}"#, 1),
            (r#"{"type":"file","file":{"file_data":"https://x.example/t-1","file_id":"AAAA"}}"#, 1),
            (r#"{"type":"text","text":"t-1","url":"data:text/plain;base64,t-2"}"#, 2),
            (r#"{"type":"text","text":"t-1","cache_control":{"type":"ephemeral","note":"t-2"}}"#, 2),
            (r#"{"type":"base64","format":"t-1","media_type":"t-2","data":"AAAA"}"#, 2),
        ] {
            let body = format!(r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{part}]}}]}}"#);
            let seen = seen(dialect, &body);
            for text in 1..=texts {
                let text = format!("t-{text}");
                assert!(seen.iter().any(|it| it.ends_with(&text)), "{dialect:?} {part}: {text} is not looked at");
            }
            assert!(!seen.iter().any(|it| it == "AAAA"), "{dialect:?} {part}");
        }
    }
}

/// What the shapes are made of is nothing that looking finds, so it is looked at and goes out as it was.
#[test]
fn words_of_the_shapes_are_no_findings() {
    let agent = r#"{"model":"claude-x","max_tokens":9,"service_tier":"standard_only","betas":["context-management-2025-06-27","interleaved-thinking-2025-05-14"],
        "context_management":{"edits":[{"type":"clear_tool_uses_20250919"},{"type":"clear_thinking_20251015"}]},"tools":[{"type":"web_search_20250305","name":"web_search"},
        {"type":"text_editor_20250728","name":"str_replace_based_edit_tool"},{"type":"code_execution_20250825","name":"code_execution"}],
        "messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"},"cache_control":{"type":"ephemeral","ttl":"1h"}}]},
        {"role":"assistant","content":[{"type":"tool_use","id":"toolu_01A09q90qw90lq917835lq9","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01A09q90qw90lq917835lq9","content":"ok"}]}]}"#;
    for text in seen(Dialect::Messages, agent) {
        assert!(crate::dlp::scan(&text).is_empty(), "{text}");
        assert!(!text.starts_with("toolu_"), "{text}");
    }
}

/// What a model has thought and its maker has signed is signed by nobody once a text in it was replaced: it is left out where it
/// would go to a provider of the messages shape, and with it the wish to think on in that turn.
#[test]
fn what_was_signed_is_not_once_it_was_changed() {
    let asked = |thinking: &str| {
        format!(
            r#"{{"model":"m","max_tokens":9,"thinking":{{"type":"enabled","budget_tokens":4}},"messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":[{thinking},{{"type":"tool_use","id":"c1","name":"f","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c1","content":"x"}}]}}]}}"#
        )
    };
    let target = to(Dialect::Messages);
    let changed = |dialect, text: &str| {
        let mut body = Body::read(dialect, text.as_bytes()).unwrap();
        body.texts_mut(&mut |it| it.contains("secret").then(|| it.replace("secret", "gone"))).unwrap();
        let sent = String::from_utf8(body.to_upstream(target).unwrap()).unwrap();
        (String::from_utf8(body.as_bytes().to_vec()).unwrap(), sent)
    };
    let goes = |thinking: &str| changed(Dialect::Messages, &asked(thinking));
    let plain = r#"{"type":"thinking","thinking":"hm","signature":"sig"}"#;
    assert_eq!(goes(plain), (asked(plain), asked(plain)));
    for signed in [
        r#"{"type":"thinking","thinking":"a secret","signature":"sig"}"#,
        r#"{"signature":"sig","thinking":"a secret","type":"thinking"}"#,
    ] {
        let (kept, sent) = goes(signed);
        let marked = signed.replace("secret", "gone").replace("\"sig\"", "\"svc_unsigned:other\"");
        assert_eq!(kept, asked(&marked));
        assert!(!sent.contains("gone") && !sent.contains("svc_unsigned"), "{sent}");
        assert!(sent.contains(r#""thinking":{"type":"disabled"}"#), "{sent}");
    }
    let (kept, _) = goes(r#"{"type":"thinking","thinking":"a secret","signature":""}"#);
    assert!(kept.contains("\"thinking\":\"a gone\",\"signature\":\"\""), "nobody had signed it: {kept}");
    let chat = r#"{"model":"m","messages":[{"role":"assistant","content":"x","reasoning_details":[{"type":"reasoning.text","text":"a secret","signature":"sig"}],
        "thinking_blocks":[{"type":"thinking","thinking":"a secret","signature":"sig"},{"type":"thinking","thinking":"b","signature":"sig"}]},{"role":"user","content":"x"}]}"#;
    let (kept, sent) = changed(Dialect::Chat, chat);
    assert!(kept.contains(r#""text":"a gone","signature":null}"#), "{kept}");
    assert!(sent.contains(r#"{"type":"thinking","thinking":"b","signature":"sig"}"#), "{sent}");
    assert!(!sent.contains("gone"), "{sent}");
    // Nor does a gateway of the chat shape, which would hand it on, get it: of its blocks the others go as they came.
    for (blocks, expected) in [
        (chat.to_owned(), r#""thinking_blocks":[{"type":"thinking","thinking":"b","signature":"sig"}]}"#),
        (chat.replace(r#"thinking":"b""#, r#"thinking":"secret""#), r#""signature":null}]},"#),
    ] {
        let mut body = Body::read(Dialect::Chat, blocks.as_bytes()).unwrap();
        body.texts_mut(&mut |it| it.contains("secret").then(|| it.replace("secret", "gone"))).unwrap();
        for is_elsewhere in [false, true] {
            let target = Target { dialect: Dialect::Chat, host: Host::Other, is_elsewhere, ..target };
            let sent = String::from_utf8(body.to_upstream(target).unwrap()).unwrap();
            assert!(!sent.contains("svc_unsigned"), "{sent}");
            let blocks = expected.contains("thinking_blocks");
            assert!(if is_elsewhere { sent.contains("thinking_blocks") == blocks } else { sent.contains(expected) });
        }
    }
}

/// What is answered stands in the text's place, also within arguments, and all else stays as it was.
#[test]
fn a_text_is_replaced_where_it_stands() {
    let text = r#"{ "model":"m", "x": 1.0e2, "messages":[{"role":"user","content":"my secret"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"secret\":\"secret\",\"secret2\":12345678, \"k\":1}"}}]}]}"#;
    let mut body = Body::read(Dialect::Chat, text.as_bytes()).unwrap();
    body.texts_mut(&mut |it| (it.contains("secret") || it == "12345678").then(|| "\"gone\"".to_owned())).unwrap();
    let expected = r#"{ "model":"m", "x": 1.0e2, "messages":[{"role":"user","content":"\"gone\""},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"\\\"gone\\\" 1\":\"\\\"gone\\\"\",\"\\\"gone\\\" 2\":\"\\\"gone\\\"\", \"k\":1}"}}]}]}"#;
    assert_eq!(std::str::from_utf8(body.as_bytes()).unwrap(), expected);
}

/// What stands in a name's place is no name that the object has: nobody keeps a request from being redacted by having it.
#[test]
fn a_replaced_name_is_no_other_name() {
    let decoys: String = (0..9).map(|n| format!(r#","gone {n}":"d","g\u006fne 1{n}":"d""#)).collect();
    let object = format!(r#"{{"secret":"a secret"{decoys},"secret ":{{"secret":1}}}}"#);
    let arguments = super::quoted(&object);
    let body = format!(
        r#"{{"model":"m","max_tokens":9,"metadata":{object},"x":{object},"messages":[{{"role":"user","content":"secret"}},{{"role":"assistant","tool_calls":[{{"id":"a","type":"function","function":{{"name":"f","arguments":{arguments}}}}}]}}]{decoys},"secret":1}}"#
    );
    let mut read = Body::read(Dialect::Chat, body.as_bytes()).unwrap();
    read.texts_mut(&mut |it| it.contains("secret").then(|| it.replace("secret", "gone"))).unwrap();
    let out = std::str::from_utf8(read.as_bytes()).unwrap();
    assert!(!out.contains("secret"), "{out}");
    assert!(Body::read(Dialect::Chat, out.as_bytes()).is_ok(), "{out}");
}

/// What is left of a body whose secrets are replaced, wherever it has them.
fn without_secrets(dialect: Dialect, body: &str) -> String {
    let mut read = Body::read(dialect, body.as_bytes()).unwrap();
    read.texts_mut(&mut |it| it.contains("secret").then(|| it.replace("secret", "[gone]"))).unwrap();
    let out = std::str::from_utf8(read.as_bytes()).unwrap().to_owned();
    assert!(Body::read(dialect, out.as_bytes()).is_ok(), "{out}");
    out
}

fn user_says(part: &str) -> String {
    format!(r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{part}]}}]}}"#)
}

/// A file that is a text is looked at as one, and what is answered is its bytes, told as they were told; a file of another kind is
/// bytes alone.
#[test]
fn a_file_of_text_is_looked_at() {
    for (file, expected) in [
        (r#""filename":"a.txt","file_data":"bXkgc2VjcmV0""#, "\"bXkgW2dvbmVd\""),
        (r#""filename":"a.json","file_data":"bXkgc2VjcmV0""#, "\"bXkgW2dvbmVd\""),
        (r#""file_data":"bXkgc2VjcmV0""#, "\"bXkgW2dvbmVd\""),
        (r#""file_data":"data:text/csv;base64,bXkgc2VjcmV0","filename":"a""#, "\"data:text/csv;base64,bXkgW2dvbmVd\""),
        (r#""filename":"a.pdf","file_data":"bXkgc2VjcmV0""#, ""),
        (r#""file_data":"data:application/pdf;base64,bXkgc2VjcmV0""#, ""),
        (r#""file_data":"data:application/octet-stream;base64,AAAAc2VjcmV0""#, ""),
    ] {
        let body = user_says(&format!(r#"{{"type":"file","file":{{{file}}}}}"#));
        let out = without_secrets(Dialect::Chat, &body);
        assert!(out.contains(expected), "{file}: {out}");
        assert_eq!(out == body, expected.is_empty(), "{file}: {out}");
    }
}

/// However its bytes are written, a text is looked at: wrapped, without padding, in either alphabet, under a kind in any letters, in
/// another encoding, as a document of the messages shape or a picture that is a text.
#[test]
fn a_text_is_looked_at_however_its_bytes_are_written() {
    let wrapped = r"data:text/plain;base64,QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB\r\nIHNlY3Jl\r\ndA==";
    for address in [
        wrapped,
        "data:text/plain;base64,YSBzZWNyZXQ",
        "data:text/plain;base64,Pz8_IHNlY3JldA",
        "DATA:TEXT/Plain;charset=latin1;BASE64,6SBzZWNyZXQ=",
        "data:text/plain;base64,//5hACAAcwBlAGMAcgBlAHQA",
        "data:application/json;base64,YSBzZWNyZXQ=",
        "data:application/ld+json;base64,YSBzZWNyZXQ=",
        "data:;base64,YSBzZWNyZXQ=",
        "data:application/x-unheard-of;base64,YSBzZWNyZXQ=",
        "data:image/svg+xml;base64,YSBzZWNyZXQ=",
    ] {
        for part in [
            format!(r#"{{"type":"file","file":{{"filename":"a","file_data":"{address}"}}}}"#),
            format!(r#"{{"type":"image_url","image_url":{{"url":"{address}"}}}}"#),
            format!(r#"{{"type":"image_url","image_url":"{address}"}}"#),
            format!(r#"{{"type":"input_file","filename":"a","file_data":"{address}"}}"#),
            format!(r#"{{"type":"new","where":"{address}"}}"#),
        ] {
            let out = without_secrets(Dialect::Chat, &user_says(&part));
            let address = out.split('"').find(|it| it.to_ascii_lowercase().starts_with("data:")).unwrap();
            let Some(Source::Bytes(kind, data)) = address_of(address) else { panic!("{out}") };
            let text = String::from_utf8(STANDARD.decode(data).unwrap()).unwrap();
            assert!(text.ends_with(" [gone]"), "{part}: {text}");
            assert!(address.starts_with("data:") && part.contains(kind), "{part}: {out}");
        }
        let (head, data) = address.split_once(',').unwrap();
        let kind = head.get("data:".len()..).unwrap().rsplit_once(';').unwrap().0;
        for dialect in [Dialect::Chat, Dialect::Messages] {
            let source = format!(r#""source":{{"type":"base64","media_type":"{kind}","data":"{data}"}}"#);
            let out = without_secrets(dialect, &user_says(&format!(r#"{{"type":"document",{source}}}"#)));
            let data = out.split("\"data\":\"").nth(1).unwrap().split('"').next().unwrap();
            let text = String::from_utf8(STANDARD.decode(data).unwrap()).unwrap();
            assert!(text.ends_with(" [gone]"), "{kind} {data}: {text}");
        }
    }
    let picture = user_says(r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,YSBzZWNyZXQ="}}"#);
    assert_eq!(without_secrets(Dialect::Chat, &picture), picture);
}

/// Where a shape has bytes, or what was sealed, a text that is neither is looked at, and so is what stands there under another kind;
/// what is left of a block that was signed is signed by nobody.
#[test]
fn what_is_no_bytes_is_looked_at_where_bytes_are() {
    let base64 = "QUJD".repeat(30);
    for part in [
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"TEXT"}}"#,
        r#"{"type":"input_audio","input_audio":{"format":"wav","data":"TEXT"}}"#,
        r#"{"type":"redacted_thinking","data":"TEXT"}"#,
        r#"{"type":"web_search_result","encrypted_content":"TEXT"}"#,
        r#"{"type":"thinking","thinking":"hm","signature":"TEXT"}"#,
        r#"{"type":"reasoning.encrypted","data":"TEXT"}"#,
        r#"{"type":"file","file":{"filename":"a.pdf","file_data":"TEXT"}}"#,
        r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,TEXT"}}"#,
        r#"{"type":"tool_use","id":"TEXT","name":"f","input":{}}"#,
    ] {
        for dialect in [Dialect::Chat, Dialect::Messages] {
            let with = |text: &str| user_says(&part.replace("TEXT", text));
            for text in ["my secret", "svc_unsigned my secret"] {
                let out = without_secrets(dialect, &with(text));
                assert!(!out.contains("secret"), "{part}: {out}");
            }
            let bytes = with(&base64);
            assert_eq!(seen(dialect, &bytes).iter().find(|it| it.contains(&base64)), None, "{part}");
            assert_eq!(without_secrets(dialect, &bytes), bytes);
        }
    }
    let out = without_secrets(
        Dialect::Messages,
        &user_says(r#"{"type":"thinking","thinking":"a secret","signature":"my secret"}"#),
    );
    assert!(out.contains(r#""thinking":"a [gone]","signature":"svc_unsigned:other"}"#), "{out}");
    for mark in ["svc_unsigned@one", "svc_unsigned_call@secret.secret.secret"] {
        let kept = user_says(&format!(r#"{{"type":"redacted_thinking","data":"{mark}"}}"#));
        assert_eq!(without_secrets(Dialect::Messages, &kept), kept);
    }
    let elsewhere =
        user_says(r#"{"type":"text","text":"x","encrypted_content":"a_secret","encrypted_index":"a_secret"}"#);
    assert!(!without_secrets(Dialect::Messages, &elsewhere).contains("secret"));
    let number =
        user_says(r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"4111111111111111"}}"#);
    assert!(seen(Dialect::Messages, &number).iter().any(|it| it == "4111111111111111"));
}

/// Names of members and numbers are looked at wherever a message or a tool has them, but for what the shapes have numbers for.
#[test]
fn names_and_numbers_are_looked_at_everywhere() {
    let body = r#"{"model":"m","max_tokens":9,"seed":4222222222222222,"logit_bias":{"a secret":1},"stream_options":{"my secret":true},
        "messages":[{"role":"user","content":[{"type":"text","text":"x","a secret":"y","n":4111111111111111}],"secret":1,"n":4111111111111111},
        {"role":"user","content":[{"type":"file","file":{"file_id":"f","secret":1}},{"type":"document","source":{"secret":{"secret":1}}}]}],
        "tools":[{"type":"function","name":"f","secret":1,"function":{"name":"f","secret":1}}]}"#;
    for (dialect, kind) in [(Dialect::Chat, "function"), (Dialect::Messages, "custom")] {
        let body = &body.replace(r#"{"type":"function","#, &format!(r#"{{"type":"{kind}","#));
        let seen = seen(dialect, body);
        assert_eq!(seen.iter().filter(|it| *it == "4111111111111111").count(), 2, "{dialect:?}");
        assert!(!seen.iter().any(|it| it.starts_with("4222")), "{dialect:?}");
        let out = without_secrets(dialect, body);
        assert!(!out.contains("secret") && out.contains("\"seed\":4222222222222222"), "{out}");
    }
}

/// The texts of one content come together, wherever it stands and whatever is between them; each is put in its own place.
#[test]
fn the_texts_of_one_content_come_together() {
    let text = r#"{"model":"m","max_tokens":9,"system":[{"type":"text","text":"s1"},{"type":"text","text":"s2"}],
        "messages":[{"role":"user","content":[{"type":"text","text":"u1"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},
        {"type":"text","text":"\u0075\"2"}]},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"a":[{"type":"text","text":"i1"},{"type":"text","text":"i2"}]}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"r1"},{"type":"text","text":"r2"}]},{"type":"text","text":"alone"}]}]}"#;
    let mut body = Body::read(Dialect::Messages, text.as_bytes()).unwrap();
    let mut together = Vec::new();
    body.parts_mut(&mut |texts| {
        if texts.len() > 1 {
            together.push(texts.join(" "));
        }
        texts.iter().map(|it| (it.len() < 4 && it.ends_with('2')).then(|| format!("{it}!"))).collect()
    })
    .unwrap();
    assert_eq!(together, ["s1 s2", "u1 u\"2", "r1 r2"]);
    let after = seen(Dialect::Messages, std::str::from_utf8(body.as_bytes()).unwrap());
    for text in ["s1", "s2!", "u1", "u\"2!", "i1", "i2!", "r1", "r2!", "alone"] {
        assert!(after.iter().any(|it| it == text), "{text}: {after:?}");
    }
}

/// What goes to a provider of a shape of messages whose texts were looked through.
fn goes(dialect: Dialect, other: Dialect, messages: &str) -> String {
    let text = format!(r#"{{"model":"m","max_tokens":9,"messages":[{messages}]}}"#);
    let mut body = Body::read(dialect, text.as_bytes()).unwrap();
    body.parts_mut(&mut crate::dlp::redact_parts).unwrap();
    String::from_utf8(body.to_upstream(to(other)).unwrap()).unwrap()
}

/// Texts that become one on their way to a provider of the other shape, or are read as one, are looked at together: those of messages of
/// one side with nothing of the other between them, all system texts, and what a document is beside. What stays apart is not.
#[test]
fn texts_that_become_one_are_looked_at_together() {
    let (chat, messages) = (Dialect::Chat, Dialect::Messages);
    let said = |role: &str| format!(r#"{{"role":"{role}","content":"4242 4242"}}"#);
    let part = r#"{"type":"text","text":"4242 4242"}"#;
    let parts = |parts: &str| format!(r#"{{"role":"user","content":[{parts}]}}"#);
    let document = r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"4242 4242"}}"#;
    let held = format!(r#"{{"type":"document","source":{{"type":"content","content":[{part}]}}}}"#);
    let found = format!(r#"{{"type":"search_result","source":"","title":"","content":[{part}]}}"#);
    let call =
        r#"{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let result = r#"{"role":"tool","tool_call_id":"c","content":"4242 4242"}"#;
    let results = |parts: &str| format!(r#"{{"type":"tool_result","tool_use_id":"c","content":[{parts}]}}"#);
    let called = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}"#;
    let (user, answer, system) = (said("user"), said("assistant"), said("system"));
    for (dialect, text) in [
        (chat, format!("{user},{user}")),
        (chat, format!(r#"{user},{{"role":"developer","content":"x"}},{}"#, parts(part))),
        (chat, format!("{system},{},{}", said("developer"), user.replace("4242", "x"))),
        (chat, r#"{"role":"assistant","content":"4242 4242","refusal":"4242 4242"}"#.to_owned()),
        (chat, format!("{},{answer},{answer}", user.replace("4242", "x"))),
        (chat, format!("{call},{user},{},{user}", result.replace("4242", "x"))),
        (messages, format!("{user},{}", parts(part))),
        (messages, format!("{},{answer},{answer}", user.replace("4242", "x"))),
        (messages, parts(&format!("{part},{document}"))),
        (messages, parts(&format!("{part},{held}"))),
        (messages, format!("{user},{}", parts(&found))),
        (
            messages,
            format!("{called},{}", parts(&results(&format!("{part},{document},{}", found.replace("4242", "x"))))),
        ),
    ] {
        let other = if dialect == chat { messages } else { chat };
        for target in [dialect, other] {
            let sent = goes(dialect, target, &text);
            assert!(!sent.contains("4242"), "{text}: {sent}");
            assert_eq!(sent.matches("[redacted:payment_card]").count(), 2, "{text}: {sent}");
        }
    }
    for (dialect, text) in [
        (chat, format!("{user},{answer},{user}")),
        (chat, format!("{system},{user}")),
        (chat, format!("{call},{result},{user}")),
        (messages, format!("{called},{}", parts(&format!("{},{part}", results(part))))),
        (
            messages,
            format!(
                "{},{}",
                user.replace("4242 4242", "as told to jane"),
                parts(r#"{"type":"text","text":"@example.com"}"#)
            ),
        ),
    ] {
        let sent = goes(dialect, dialect, &text);
        assert!(!sent.contains("redacted"), "{text}: {sent}");
    }
}

/// What says nothing is left out on its way: it keeps no texts apart, nor does where a system text stands.
#[test]
fn what_says_nothing_keeps_nothing_apart() {
    let said = |role: &str, content: &str| format!(r#"{{"role":"{role}","content":{content}}}"#);
    let half = r#""4242 4242""#;
    let (user, answer, system) = (said("user", half), said("assistant", half), said("system", half));
    let part = |text: &str| format!(r#"{{"type":"text","text":{text}}}"#);
    let (blank, whole) = (part(r#"" \n""#), part(half));
    let (chat, messages) = (Dialect::Chat, Dialect::Messages);
    let other = said("user", r#""x""#);
    for (dialect, text) in [
        (chat, format!("{user},{},{user}", said("assistant", r#""""#))),
        (chat, format!("{user},{},{user}", said("assistant", r#"null,"tool_calls":[]"#))),
        (chat, format!("{user},{},{user}", said("assistant", &format!("[{blank}]")))),
        (chat, said("user", &format!("[{whole},{blank},{whole}]"))),
        (messages, format!("{other},{answer},{},{answer}", said("user", "[]"))),
        (
            messages,
            format!(r#"{user},{},{user}"#, said("assistant", r#"[{"type":"thinking","thinking":"t","signature":""}]"#)),
        ),
        (messages, format!(r#"{system},{other}],"system":[{whole}],"stop_sequences":["z""#)),
        (messages, format!(r#"{system},{other}],"system":{half},"stop_sequences":["z""#)),
    ] {
        for target in [chat, messages] {
            let sent = goes(dialect, target, &text);
            assert!(!sent.contains("4242"), "{text}: {sent}");
            assert_eq!(sent.matches("[redacted:payment_card]").count(), 2, "{text}: {sent}");
        }
    }
    // A call, a picture or a text of the other side does keep them apart.
    for between in [part(r#""x""#), r#"{"type":"tool_use","id":"c","name":"f","input":{}}"#.to_owned()] {
        let text = format!("{user},{},{user}", said("assistant", &format!("[{between}]")));
        assert!(!goes(messages, messages, &text).contains("redacted"), "{text}");
    }
}
