//! Rows of connections.

pub(super) const OAUTH_CLIENT: [&str; 2] = [
    r#"{"id":"mcp_01K6FN0001000000000000000C","name":"Cödex","redirects":["https://app.example/cb","http://localhost/callback"],
        "auth":"client_secret_basic","secret":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAKo","used":true,"created_at":1790847000000}"#,
    r#"{"id":"mcp_01K6FN0001000000000000000D","name":"b","redirects":[],"auth":"none","created_at":0}"#,
];
pub(super) const CLIENT_TALLY: [&str; 2] = [
    r#"{"id":"0000000000000000000000000000000a","unused":10000}"#,
    r#"{"id":"0000000000000000000000000000000b","unused":0}"#,
];
pub(super) const CONSENT: [&str; 2] = [
    r#"{"id":"0000000000000000000000000000000a","digest":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAKo",
        "session":"0000000000000000000000000000000a","wish":{"client":"https://app.example/client.json","name":"App",
        "redirect":"https://app.example/cb?x=1","challenge":"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM","state":"a \"b\""},
        "expires_at":1790847600000}"#,
    r#"{"id":"0000000000000000000000000000000b","digest":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAALs",
        "session":"0000000000000000000000000000000b","wish":{"client":"mcp_01K6FN0001000000000000000D","name":"b",
        "redirect":"http://localhost/cb","challenge":"x"},"expires_at":0}"#,
];
pub(super) const AUTH_CODE: [&str; 2] = [
    r#"{"id":"0000000000000000000000000000000a","digest":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAKo",
        "wish":{"client":"mcp_01K6FN0001000000000000000C","name":"App","redirect":"https://app.example/cb",
        "challenge":"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM","state":"s"},"workspace":"wsp_01K6FN0001000000000000000A",
        "agent":"agt_01K6FN0001000000000000000A","epoch":4294967295,"person":"prp_01K6FN0001000000000000000P",
        "state":{"used":"con_01K6FN0001000000000000000C"},"created_at":1790847000000}"#,
    r#"{"id":"0000000000000000000000000000000b","digest":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAALs",
        "wish":{"client":"c","name":"b","redirect":"http://localhost/cb","challenge":"x"},
        "workspace":"wsp_01K6FN0001000000000000000B","agent":"agt_01K6FN0001000000000000000B","epoch":0,
        "person":"prp_01K6FN0001000000000000000Q","state":"open","created_at":0}"#,
];
pub(super) const CONNECTION: [&str; 2] = [
    r#"{"id":"con_01K6FN0001000000000000000C","workspace":"wsp_01K6FN0001000000000000000A",
        "client":"https://app.example/client.json","client_name":"App","redirect_host":"app.example",
        "agent":"agt_01K6FN0001000000000000000A","person":"prp_01K6FN0001000000000000000P",
        "access":"0000000000000000000000000000000a","refresh":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAKo",
        "created_at":1790847000000,"refreshed_at":1790847000001,"ended":{"at":1790847000002,"by":"code_reuse"},"swept":true}"#,
    r#"{"id":"con_01K6FN0001000000000000000D","workspace":"wsp_01K6FN0001000000000000000B","client":"c","client_name":"b",
        "redirect_host":"localhost","agent":"agt_01K6FN0001000000000000000B","person":"prp_01K6FN0001000000000000000Q",
        "access":"0000000000000000000000000000000b","refresh":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAALs",
        "created_at":0,"refreshed_at":0}"#,
];
pub(super) const REFRESH_TOKEN: [&str; 2] = [
    r#"{"id":"0000000000000000000000000000000a","digest":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAKo","connection":"con_01K6FN0001000000000000000C"}"#,
    r#"{"id":"0000000000000000000000000000000b","digest":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAALs","connection":"con_01K6FN0001000000000000000D"}"#,
];
