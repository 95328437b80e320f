//! Documents, and what tools have found: where they stand in the other shape.

use super::*;

/// What a tool brought in stays in its result, whatever it came in: nothing of it becomes the user's own words. What a result of the
/// chat shape cannot hold goes behind it.
#[test]
fn what_a_tool_brought_in_stays_in_its_result() {
    let body = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"a"},
        {"type":"search_result","title":"Found","source":"https://x.example","content":[{"type":"text","text":"ignore all"},{"type":"text","text":"of it"}]},
        {"type":"document","title":"Report","context":"of May","source":{"type":"text","media_type":"text/plain","data":"all well"}},
        {"type":"document","source":{"type":"base64","media_type":"text/plain","data":"bXkgdGV4dA=="}},
        {"type":"document","source":{"type":"content","content":"whole"}},
        {"type":"document","source":{"type":"content","content":[{"type":"text","text":"piece"},{"type":"image","source":{"type":"url","url":"https://x.example/i"}}]}},
        {"type":"document","title":"a.pdf","context":"signed","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"}}]},
        {"type":"text","text":"my own"}]}]}"#;
    let sent = sent(MESSAGES, body, target(CHAT, "m"));
    let messages = sent.get("messages").unwrap().as_list().unwrap();
    let text =
        r"a\nFound\nhttps://x.example\nignore all\nof it\nReport\nof May\nall well\nmy text\nwhole\npiece\nsigned";
    assert_eq!(messages[2], json(&format!(r#"{{"role":"tool","tool_call_id":"c1","content":"{text}"}}"#)));
    let rest = r#"[{"type":"image_url","image_url":{"url":"https://x.example/i"}},
        {"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,QUJD"}},{"type":"text","text":"my own"}]"#;
    assert_eq!((messages[3].get("content"), messages.len()), (Some(&json(rest)), 4));
    let failed = body.replace(r#""tool_use_id":"c1","#, r#""tool_use_id":"c1","is_error":true,"#);
    let sent = self::sent(MESSAGES, &failed, target(CHAT, "m"));
    let result = sent.get("messages").unwrap().as_list().unwrap()[2].get("content").unwrap().as_str().unwrap();
    assert!(result.starts_with("Error: a\nFound"), "{result}");
    let unknown = body.replace(
        r#""type":"text","media_type":"text/plain","data":"all well""#,
        r#""type":"url","url":"https://x.example""#,
    );
    assert_eq!(lost(MESSAGES, &unknown, CHAT), ["messages.2.content.0.content.2.source"]);
}

/// A text told in bytes is one in the other shape, and no PDF, whatever its kind is called and however the bytes are written.
#[test]
fn a_text_in_bytes_is_a_text_in_the_other_shape() {
    for kind in ["text/plain", "TEXT/CSV; charset=utf-8", "application/json", "image/svg+xml"] {
        for data in ["bXkgdGV4dA==", "bXkgdGV4dA", "bXkg\r\ndGV4dA=="] {
            let data = data.replace('\r', "\\r").replace('\n', "\\n");
            let body = format!(
                r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{{"type":"document","title":"T","source":{{"type":"base64","media_type":"{kind}","data":"{data}"}}}}]}}]}}"#
            );
            let there = sent(MESSAGES, &body, target(CHAT, "m"));
            let parts = there.get("messages").unwrap().as_list().unwrap()[0].get("content").unwrap().clone();
            assert_eq!(
                parts,
                json(r#"[{"type":"text","text":"T"},{"type":"text","text":"my text"}]"#),
                "{kind} {data}"
            );
            let body = format!(
                r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"file","file":{{"filename":"a","file_data":"Data:{kind};Base64,{data}"}}}}]}}]}}"#
            );
            let back = sent(CHAT, &body, target(MESSAGES, "m"));
            let parts = back.get("messages").unwrap().as_list().unwrap()[0].get("content").unwrap().clone();
            let expected = r#"[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"my text"},"title":"a"}]"#;
            assert_eq!(parts, json(expected), "{kind} {data}");
        }
    }
    let other = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"text/plain","data":"/w=="}}]}]}"#;
    assert_eq!(lost(MESSAGES, other, CHAT), ["messages.0.content.0.source"], "what cannot be read is no PDF");
}
