//! Rows of model traffic.

pub(super) const ROUTING: [&str; 2] = [
    r#"{"workspace":"wsp_01K6FN0001000000000000000A","mode":"enforce","objective":"sovereign","default_class":"support.reply",
        "tools":[{"tool":"webfetch","source":"web","sink":true}],"upstreams":[{"id":"ups_01K6FN0001000000000000000A","name":"one",
        "dialect":"chat","base_url":"https://models.example.com/v1","headers":{"x-region":"eu"},"jurisdiction":"eu","region":"eu-west-1",
        "timeouts":{"firstTokenMs":1,"idleMs":2,"totalMs":3},"enabled":true,"key_hint":"abcd","created_at":1790847000000}],
        "models":[{"name":"large-1","upstream":"ups_01K6FN0001000000000000000A","aliases":["large"],"jurisdiction":"eu",
        "context_window":200000,"max_output":8192,"capabilities":["tools","vision"],"retention":{"days":30},
        "quality":{"general":80,"by_class":{"support.reply":90}},"prices":{"tokens":{"input":3000000,"cachedInput":300000,
        "cacheWrite":3750000,"cacheWriteLong":6000000,"output":15000000,"reasoning":15000000},"perImage":1000,"perRequest":1,
        "tools":{"web_search":10000},"tiers":[{"aboveInputTokens":200000,"prices":{"input":6000000,"output":22500000}}]},
        "enabled":true,"created_at":1790847000000}],"classes":[{"id":"support.reply","name":"Replies","constraints":{"models":["one/large-1"],
        "providers":["one"],"jurisdictions":["eu"],"no_retention":true,"capabilities":["tools"],"min_quality":50,"max_cost":1000000,
        "max_latency_ms":2000,"human_oversight":true,"objective":"quality"},"created_at":1790847000000}],
        "profiles":[{"id":"pol_01K6FN0001000000000000000A","name":"strict","mode":"enforce","constraints":{},"created_at":0}]}"#,
    r#"{"workspace":"wsp_01K6FN0001000000000000000B"}"#,
];
