//! Rows of MCP servers.

pub(super) const SERVERS: [&str; 2] = [
    r#"{"workspace":"wsp_01K6FN0001000000000000000A","servers":[{"id":"mcs_01K6FN0001000000000000000A","name":"crm",
        "url":"https://crm.example/mcp?profile=x","credential":{"type":"header","name":"x-token","hint":"wxyz",
        "since":1790847000000},"tools":{"allow":["read_*"],"deny":["*_all"]},"enabled":true,
        "created_by":{"person":"prp_01K6FN0001000000000000000P"},"created_at":1790847000000},
        {"id":"mcs_01K6FN0001000000000000000B","name":"b","url":"u","credential":{"type":"bearer","hint":"","since":0},
        "tools":{},"enabled":false,"created_at":0},
        {"id":"mcs_01K6FN0001000000000000000C","name":"c","url":"u","credential":{"type":"none"},
        "tools":{},"enabled":false,"created_at":0}]}"#,
    r#"{"workspace":"wsp_01K6FN0001000000000000000B"}"#,
];
pub(super) const SECRET: [&str; 2] = [
    r#"{"server":"mcs_01K6FN0001000000000000000A","workspace":"wsp_01K6FN0001000000000000000A","sealed":"sealed-text"}"#,
    r#"{"server":"mcs_01K6FN0001000000000000000B","workspace":"wsp_01K6FN0001000000000000000A","sealed":""}"#,
];
pub(super) const TOOLS: [&str; 2] = [
    r#"{"server":"mcs_01K6FN0001000000000000000A","workspace":"wsp_01K6FN0001000000000000000A","reached":true,
        "tools":{"read_one":{"accepted":"{\"name\":\"read_one\"}","seen":"{\"description\":\"now\",\"name\":\"read_one\"}"},
        "gone":{"accepted":"{\"name\":\"gone\"}"}}}"#,
    r#"{"server":"mcs_01K6FN0001000000000000000B","workspace":"wsp_01K6FN0001000000000000000A","reached":false}"#,
];
