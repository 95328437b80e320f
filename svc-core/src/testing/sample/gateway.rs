//! Rows of model traffic.

pub(super) const ROUTING: [&str; 2] = [
    r#"{"workspace":"wsp_01K6FN0001000000000000000A","mode":"enforce","objective":"sovereign","default_class":"support.reply",
        "tools":[{"tool":"webfetch","source":"web","sink":true}],"upstreams":[{"id":"ups_01K6FN0001000000000000000A","name":"one",
        "dialect":"chat","base_url":"https://models.example.com/v1","headers":{"x-region":"eu"},"header_hints":{"api-key":"wxyz"},"jurisdiction":"eu","region":"eu-west-1",
        "timeouts":{"firstTokenMs":1,"idleMs":2,"totalMs":3},"enabled":true,"key_hint":"abcd","created_at":1790847000000}],
        "models":[{"name":"large-1","upstream":"ups_01K6FN0001000000000000000A","aliases":["large"],"jurisdiction":"eu",
        "context_window":200000,"max_output":8192,"capabilities":["tools","vision"],"retention":{"days":30},
        "quality":{"general":80,"by_class":{"support.reply":90}},"prices":{"tokens":{"input":3000000,"cachedInput":300000,
        "cacheWrite":3750000,"cacheWriteLong":6000000,"output":15000000,"reasoning":15000000},"perImage":1000,"perRequest":1,
        "tools":{"web_search":10000},"inferenceGeos":{"us":110},"tiers":[{"aboveInputTokens":200000,"prices":{"input":6000000,"output":22500000}}]},
        "figures":{"image":1600,"page":3000,"audioSecond":32},"enabled":true,"created_at":1790847000000}],"classes":[{"id":"support.reply","name":"Replies","constraints":{"models":["one/large-1"],
        "providers":["one"],"jurisdictions":["eu"],"no_retention":true,"capabilities":["tools"],"min_quality":50,"max_cost":1000000,
        "max_latency_ms":2000,"human_oversight":true,"objective":"quality"},"created_at":1790847000000}],
        "profiles":[{"id":"pol_01K6FN0001000000000000000A","name":"strict","mode":"enforce","constraints":{},"created_at":0}]}"#,
    r#"{"workspace":"wsp_01K6FN0001000000000000000B"}"#,
];

pub(super) const UPSTREAM_KEY: [&str; 2] = [
    r#"{"upstream":"ups_01K6FN0001000000000000000A","workspace":"wsp_01K6FN0001000000000000000A","sealed":"sealed-text",
        "headers":{"api-key":"sealed-header"}}"#,
    r#"{"upstream":"ups_01K6FN0001000000000000000B","workspace":"wsp_01K6FN0001000000000000000A","sealed":""}"#,
];

pub(super) const BOUND_KEYS: [&str; 2] = [
    r#"{"workspace":"wsp_01K6FN0001000000000000000A","keys":[{"key":"key_01K6FN0001000000000000000A",
        "credential":"0000000000000000000000000000000a","class":"support.reply","profile":"pol_01K6FN0001000000000000000A",
        "team":"team_01K6FN0001000000000000000T","until":1790847000000}]}"#,
    r#"{"workspace":"wsp_01K6FN0001000000000000000B"}"#,
];

pub(super) const CALL: [&str; 2] = [
    r#"{"id":"cal_01K6FN0001000000000000000A","workspace":"wsp_01K6FN0001000000000000000A","payer":{"key":"key_01K6FN0001000000000000000A",
        "agent":"agt_01K6FN0001000000000000000A","principal":"prp_01K6FN0001000000000000000P","team":"team_01K6FN0001000000000000000A",
        "class":"support.reply"},"task":"tsk_one","session":"s-1","requested":"large","target":{"upstream":"ups_01K6FN0001000000000000000A",
        "provider":"one","model":"large-1","jurisdiction":"eu"},"mode":"enforce","objective":"cost","oversight":true,"stream":true,
        "attempts":[{"upstream":"ups_01K6FN0001000000000000000B","provider":"two","model":"m","status":500,"ms":12,"error":"it failed","cost":3,
        "usage":{"input":1,"cachedInput":2,"cacheWrite":3,"cacheWriteLong":4,"output":5,"reasoning":6,"estimated":true},"unpriced":true}],"reserved":1000,
        "budgets":[{"id":"bdg_01K6FN0001000000000000000A","period":1790847000000,"past_stop":true}],"usage":{"input":1,"cachedInput":2,"cacheWrite":3,
        "cacheWriteLong":4,"output":5,"reasoning":6,"estimated":true},"cost":7,"unpriced":true,"cheapest":5,"token_prices":{"input":3000000,"output":15000000},"data_loss":{"email":2},
        "started_at":1790847000000,"state":{"ended":{"end":"hung_up","first_token_ms":1,"duration_ms":2,"overhead_ms":3,
        "last":{"status":200,"ms":2}}}}"#,
    r#"{"id":"cal_01K6FN0001000000000000000B","workspace":"wsp_01K6FN0001000000000000000A","payer":{"key":"key_01K6FN0001000000000000000A",
        "principal":"prp_01K6FN0001000000000000000P"},"task":"tsk_two","session":"s-2","requested":"m","target":null,"mode":"shadow",
        "objective":"balanced","reserved":0,"cost":0,"started_at":0,"state":{"running":{"lapses_at":1790847000000,"estimate":{},"prices":null,
        "fees":{"images":1,"audio_seconds":2,"spoken":true,"drawn":true,"requests":3,"tools":{"web_search":4},"service_tier":"flex","inference_geo":"us"}}}}"#,
];

pub(super) const TASK: [&str; 2] = [
    r#"{"key":"ffffffffffffffffffffffffffffffff","workspace":"wsp_01K6FN0001000000000000000A","id":"tsk_one","class":"support.reply",
        "principal":"prp_01K6FN0001000000000000000P","agent":"agt_01K6FN0001000000000000000A","opened_by":"key_01K6FN0001000000000000000A",
        "team":"team_01K6FN0001000000000000000A","upstream":"ups_01K6FN0001000000000000000A","calls":2,"spent":7,"model":"one/large-1","outcome":{"status":"partial","at":1790847000000,"by_integration":true,"pull":{"request":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAKo","at":1790847000000}},
        "credit":{"model":"one/large-1","upstream":"ups_01K6FN0001000000000000000A","spent":5,"day":20727,"reported_on":20728},
        "created_at":1790847000000}"#,
    r#"{"key":"00000000000000000000000000000000","workspace":"wsp_01K6FN0001000000000000000A","id":"tsk_two",
        "principal":"prp_01K6FN0001000000000000000P","opened_by":"key_01K6FN0001000000000000000A","calls":0,"uncounted":true,"spent":0,"created_at":0}"#,
];

pub(super) const CONTEXT: [&str; 2] = [
    r#"{"id":"ffffffffffffffffffffffffffffffff","seen":[{"source":"web","digest":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","at":1790847000000}]}"#,
    r#"{"id":"00000000000000000000000000000000","seen":[]}"#,
];

pub(super) const REFUSAL_NOTE: [&str; 2] = [
    r#"{"id":"ffffffffffffffffffffffffffffffff","workspace":"wsp_01K6FN0001000000000000000A","key":"key_01K6FN0001000000000000000A",
        "kind":"budget_exhausted","evidence":"evd_01K6FN0001000000000000000A","at":1790847000000,"repeats":2}"#,
    r#"{"id":"00000000000000000000000000000000","workspace":"wsp_01K6FN0001000000000000000A","key":"key_01K6FN0001000000000000000A",
        "kind":"agent_stopped","evidence":"evd_01K6FN0001000000000000000B","at":0,"repeats":0}"#,
];

pub(super) const BUDGET: [&str; 2] = [
    r#"{"id":"bdg_01K6FN0001000000000000000A","workspace":"wsp_01K6FN0001000000000000000A","scope":{"task_class":"support.reply"},
        "amount":9007199254740991,"period":"quarter","ladder":[{"at":0,"step":"observe"},{"at":80,"step":"nudge"},
        {"at":90,"step":"downgrade"},{"at":100,"step":"approval"},{"at":1000,"step":"stop"}],
        "owner":"prp_01K6FN0001000000000000000P","created_by":{"key":"key_01K6FN0001000000000000000K"},"created_at":1790847000000}"#,
    r#"{"id":"bdg_01K6FN0001000000000000000B","workspace":"wsp_01K6FN0001000000000000000B","scope":"workspace","amount":1,
        "period":"total","ladder":[],"owner":"prp_01K6FN0001000000000000000P","created_at":0}"#,
];

pub(super) const BUDGET_USE: [&str; 2] = [
    r#"{"budget":"bdg_01K6FN0001000000000000000A","start":1790805600000,"end":1798754400000,"spent":1,"reserved":9007199254740990,
        "open":4294967295,"raised":9007199254740991,"told":{"used":["nudge","approval"],"spent":["nudge"]},
        "asked":"apv_01K6FN0001000000000000000V"}"#,
    r#"{"budget":"bdg_01K6FN0001000000000000000B","start":0}"#,
];

pub(super) const MODEL_LISTING: [&str; 2] = [
    r#"{"workspace":"wsp_01K6FN0001000000000000000A","listing":{"date":"2026-11-21","models":{"large-1":{"aliases":["large"],
        "jurisdiction":"eu","context_window":200000,"max_output":8192,"capabilities":["tools"],"retention":{"days":30},
        "quality":{"general":80,"by_class":{"support.reply":90}},"figures":{"image":1,"page":2,"audioSecond":3},
        "prices":{"tokens":{"input":1,"output":2},"perAudioSecond":3,"audioOutput":4,"imageOutput":5,"cachesUnasked":true,
        "serviceTiers":{"flex":{"tokens":{"input":1,"output":1},"tiers":[{"aboveInputTokens":5,"prices":{"input":2,"output":2}}]}}}}}},
        "updated_at":1790847000000}"#,
    r#"{"workspace":"wsp_01K6FN0001000000000000000B","listing":{"models":{}},"updated_at":0}"#,
];

pub(super) const CELL: [&str; 2] = [
    r#"{"id":"0000000000000000000000000000000a","workspace":"wsp_01K6FN0001000000000000000A","day":20727,
        "key":"key_01K6FN0001000000000000000K","principal":"prp_01K6FN0001000000000000000P","team":"team_01K6FN0001000000000000000T",
        "agent":"agt_01K6FN0001000000000000000A","model":"one/large-1","upstream":"ups_01K6FN0001000000000000000A","class":"support.reply",
        "sums":{"calls":9,"usage":{"input":1,"cachedInput":2,"cacheWrite":3,"cacheWriteLong":4,"output":5,"reasoning":6,"estimated":true},
        "cost":1000,"estimated":10,"unpriced":1,"tasks":3,"outcomes":[1,2,3,4],"waste":[
        {"count":1,"cost":2,"savable":3,"example":"cal_01K6FN0001000000000000000A"},
        {"count":1,"cost":2,"savable":3,"example":"cal_01K6FN0001000000000000000A"},
        {"count":1,"cost":2,"savable":3,"example":"cal_01K6FN0001000000000000000A"},
        {"count":1,"cost":2,"savable":3,"example":"cal_01K6FN0001000000000000000A"},
        {"count":1,"cost":2,"savable":3,"example":"cal_01K6FN0001000000000000000A"}]},
        "last":"cal_01K6FN0001000000000000000A","recent":[1,18446744073709551615]}"#,
    r#"{"id":"0000000000000000000000000000000b","workspace":"wsp_01K6FN0001000000000000000B","day":0,
        "key":"key_01K6FN0001000000000000000K","principal":"prp_01K6FN0001000000000000000P"}"#,
];

pub(super) const YIELDS: [&str; 2] = [
    r#"{"workspace":"wsp_01K6FN0001000000000000000A","lines":[{"class":"support.reply","model":"one/large-1",
        "days":[[20726,1,0],[20727,18446744073709551615,3]]}]}"#,
    r#"{"workspace":"wsp_01K6FN0001000000000000000B"}"#,
];

pub(super) const MONTH: [&str; 2] = [
    r#"{"id":{"w":"wsp_01K6FN0001000000000000000A","day":20727},"requests":4294967295,
        "people":["prp_01K6FN0001000000000000000P"],"grace_from":1790847000000}"#,
    r#"{"id":{"w":"wsp_01K6FN0001000000000000000B","day":0}}"#,
];

pub(super) const BILLING_IMPORT: [&str; 2] = [
    r#"{"id":"bil_01K6FN0001000000000000000A","workspace":"wsp_01K6FN0001000000000000000A","upstream":"ups_01K6FN0001000000000000000A",
        "from":20727,"to":20758,"billed":10,"metered":9,"differences":[{"day":20727,"model":"large-1","billed":10,"metered":9}],
        "created_by":{"person":"prp_01K6FN0001000000000000000P"},"created_at":1790847000000}"#,
    r#"{"id":"bil_01K6FN0001000000000000000B","workspace":"wsp_01K6FN0001000000000000000B","upstream":"ups_01K6FN0001000000000000000A",
        "from":0,"to":1,"billed":0,"metered":0,"created_at":0}"#,
];
