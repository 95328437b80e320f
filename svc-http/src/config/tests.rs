//! Settings from the file, the environment and flags, and what is wrong with them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]
use std::ffi::OsString;

use super::*;
use crate::routes::{Limit, Route, all};

fn environment(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
}

/// A data directory with this settings file in it.
fn directory(settings: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(FILE_NAME), settings).unwrap();
    folder
}

fn in_directory(folder: &tempfile::TempDir) -> Sources {
    Sources { flags: vec![("data", folder.path().display().to_string())], ..Sources::default() }
}

fn faults(sources: Sources) -> Vec<String> {
    let ConfigError(faults) = Config::load(sources).expect_err("is refused");
    faults
        .into_iter()
        .map(|it| it.advice.map_or_else(|| it.what.clone(), |advice| format!("{} / {advice}", it.what)))
        .collect()
}

fn folder_of(sources: &Sources) -> String {
    sources.flags.first().unwrap().1.clone()
}

/// Nothing given: every documented default, word for word, is what the settings hold.
#[test]
fn documented_defaults_are_the_defaults() {
    let untouched = Config::default();
    for key in
        KEYS.iter().filter(|key| !key.default.contains(['<', '`', '[']) && !key.is_table && key.default != "none")
    {
        let mut config = Config::default();
        let texts = [key.default.to_owned()];
        key.set(&mut config, &given::Given { texts: &texts, folder: None, range: None }).unwrap();
        config.data = config.data.strip_prefix("./").map_or_else(|_| config.data.clone(), Path::to_path_buf);
        assert_eq!(format!("{config:?}"), format!("{untouched:?}"), "{}", key.name);
    }
    let loaded =
        Config::load(Sources { flags: vec![("data", "/nowhere/svc".to_owned())], ..Sources::default() }).unwrap();
    assert_eq!(loaded.config.limits, Limits::default());
    assert_eq!(loaded.config.database(), Path::new("/nowhere/svc/svc.db"));
    assert_eq!(loaded.file, None);
}

/// Flags win over the environment, the environment over the file, the file over defaults, key by key.
#[test]
fn the_stronger_source_wins_key_by_key() {
    let folder = directory("listen = \"127.0.0.1:1\"\nlimits.gatePerMinute = 11\n[limits]\nverifyPerMinute = 12\n");
    assert!(Config::load(in_directory(&folder)).is_err(), "TOML does not open a table twice");
    let folder =
        directory("listen = \"127.0.0.1:1\"\n[limits]\ngatePerMinute = 11\nverifyPerMinute = 12\nbodyBytes = 2048\n");
    let mut sources = in_directory(&folder);
    sources.environment =
        environment(&[("SVC_LISTEN", "127.0.0.1:2"), ("SVC_LIMITS_VERIFY_PER_MINUTE", "22"), ("HOME", "/root")]);
    sources.flags.push(("listen", "127.0.0.1:3".to_owned()));
    let loaded = Config::load(sources).unwrap();
    assert_eq!(loaded.config.listen.port(), 3);
    let limits = loaded.config.limits;
    assert_eq!(
        (limits.verify_per_minute, limits.gate_per_minute, limits.body_bytes, limits.connections),
        (22, 11, 2048, 10_000)
    );
    assert_eq!(loaded.file, Some(folder.path().join(FILE_NAME)));
    assert!(loaded.warnings.is_empty());
}

/// Every key can be set in the environment, under its name in upper case with `_` for `.` and at word starts.
#[test]
fn every_key_has_its_name_in_the_environment() {
    let names: Vec<String> = KEYS.iter().map(Key::env).collect();
    assert_eq!(
        names.join(" "),
        "SVC_LISTEN SVC_BASE_URL SVC_DATA SVC_STORE_URL SVC_STORE_MAY_LOSE SVC_MASTER_KEY SVC_TRUSTED_PROXIES SVC_OUTBOUND_ALLOW SVC_OUTBOUND_CA_FILE \
         SVC_LIMITS_GATE_PER_MINUTE \
         SVC_LIMITS_VERIFY_PER_MINUTE SVC_LIMITS_GATEWAY_PER_MINUTE \
         SVC_LIMITS_TOKEN_PER_MINUTE SVC_LIMITS_SIGN_IN_PER_MINUTE SVC_LIMITS_OAUTH_PER_MINUTE SVC_OAUTH_ALLOW_REDIRECTS SVC_OAUTH_CLIENT_DOCUMENTS SVC_LIMITS_BODY_BYTES SVC_LIMITS_MODEL_BODY_BYTES SVC_LIMITS_BILLING_BODY_BYTES \
         SVC_LIMITS_CONNECTIONS SVC_TIMEOUTS_HEADER_MS \
         SVC_TIMEOUTS_BODY_MS SVC_TIMEOUTS_DRAIN_MS SVC_TIMEOUTS_FIRST_TOKEN_MS SVC_TIMEOUTS_IDLE_MS SVC_TIMEOUTS_TOTAL_MS SVC_LOG_LEVEL SVC_LOG_FORMAT SVC_MAIL_URL SVC_MAIL_FROM SVC_METRICS_LISTEN SVC_BILLING_SECRET SVC_BILLING_PLANS SVC_SLACK_API_URL \
         SVC_PLANS_SELF_HOSTED_PEOPLE SVC_PLANS_SELF_HOSTED_AGENTS SVC_PLANS_SELF_HOSTED_MANDATES SVC_PLANS_SELF_HOSTED_REQUESTS \
         SVC_PLANS_FREE_PEOPLE SVC_PLANS_FREE_AGENTS SVC_PLANS_FREE_MANDATES SVC_PLANS_FREE_REQUESTS \
         SVC_PLANS_TEAM_PEOPLE SVC_PLANS_TEAM_AGENTS SVC_PLANS_TEAM_MANDATES SVC_PLANS_TEAM_REQUESTS \
         SVC_PLANS_ENTERPRISE_PEOPLE SVC_PLANS_ENTERPRISE_AGENTS SVC_PLANS_ENTERPRISE_MANDATES SVC_PLANS_ENTERPRISE_REQUESTS"
    );
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let sources = Sources {
        environment: environment(&[
            ("SVC_LISTEN", "[::1]:9"),
            ("SVC_BASE_URL", "https://gate.example.com/svc/"),
            ("SVC_DATA", "/nowhere"),
            ("SVC_STORE_URL", "sqlite:/nowhere/else/svc.db"),
            ("SVC_MASTER_KEY", key),
            ("SVC_TRUSTED_PROXIES", "10.0.0.0/8, ::1"),
            ("SVC_OUTBOUND_ALLOW", "models.internal, ::1"),
            ("SVC_OUTBOUND_CA_FILE", "/nowhere/roots.pem"),
            ("SVC_LIMITS_GATE_PER_MINUTE", "1"),
            ("SVC_LIMITS_VERIFY_PER_MINUTE", "2"),
            ("SVC_LIMITS_BODY_BYTES", "4096"),
            ("SVC_LIMITS_CONNECTIONS", "3"),
            ("SVC_TIMEOUTS_HEADER_MS", "100"),
            ("SVC_TIMEOUTS_BODY_MS", "200"),
            ("SVC_TIMEOUTS_DRAIN_MS", "300"),
            ("SVC_TIMEOUTS_FIRST_TOKEN_MS", "400"),
            ("SVC_TIMEOUTS_IDLE_MS", "500"),
            ("SVC_TIMEOUTS_TOTAL_MS", "600"),
            ("SVC_LOG_LEVEL", "trace"),
            ("SVC_LOG_FORMAT", "json"),
        ]),
        ..Sources::default()
    };
    let config = Config::load(sources).unwrap().config;
    assert_eq!(config.outbound.ca_file.as_deref(), Some(Path::new("/nowhere/roots.pem")));
    assert_eq!(config.listen, "[::1]:9".parse().unwrap());
    assert_eq!(config.base_url(config.listen).as_str(), "https://gate.example.com/svc");
    assert_eq!(config.base_url(config.listen).host(), "gate.example.com");
    assert_eq!(config.base_url(config.listen).authority(), "gate.example.com");
    assert_eq!(
        (config.data.as_path(), config.database()),
        (Path::new("/nowhere"), PathBuf::from("/nowhere/else/svc.db"))
    );
    assert_eq!(config.master_key.as_ref().unwrap().expose(), key);
    assert_eq!(format!("{:?}", config.trusted_proxies), "[10.0.0.0/8, ::1/128]");
    assert_eq!(
        config.limits,
        Limits { gate_per_minute: 1, verify_per_minute: 2, body_bytes: 4096, connections: 3, ..Limits::default() }
    );
    let millis = |it: Duration| it.as_millis();
    let timeouts = config.timeouts;
    assert_eq!((millis(timeouts.header), millis(timeouts.body), millis(timeouts.drain)), (100, 200, 300));
    let calls = timeouts.calls;
    assert_eq!((millis(calls.first_token), millis(calls.idle), millis(calls.total)), (400, 500, 600));
    assert_eq!(config.outbound.allow, Allowed::parse(["models.internal", "[::1]"]).unwrap());
    let sources = Sources { environment: environment(&[("SVC_OUTBOUND_ALLOW", "not a host")]), ..Sources::default() };
    assert!(Config::load(sources).is_err());
    assert_eq!(config.log, LogConfig { level: LogLevel::Trace, format: LogFormat::Json });
    assert!(!format!("{config:?}").contains(key), "a secret is not printed");
}

/// A file and the environment say what a plan allows; the other plans stay as they are, and 0 is no limit.
#[test]
fn a_plan_allows_what_the_settings_say() {
    let folder = directory("[plans.self-hosted]\nagents = 2\n[plans.free]\nagents = 0\nmandates = 7\n");
    let mut sources = in_directory(&folder);
    sources.environment = environment(&[("SVC_PLANS_SELF_HOSTED_MANDATES", "5"), ("SVC_PLANS_TEAM_PEOPLE", "1")]);
    let plans = Config::load(sources).unwrap().config.plans;
    let mut wanted = Plans::default();
    (wanted.self_hosted.agents, wanted.self_hosted.mandates) = (2, 5);
    (wanted.free.agents, wanted.free.mandates, wanted.team.people) = (0, 7, 1);
    assert_eq!(plans, wanted);
    let folder = directory("[plans.free]\nagents = -1\n[plans.gold]\nagents = 1\n");
    assert_eq!(faults(in_directory(&folder)).len(), 2);
}

/// A file has prices and their plans as a table, the environment as pairs; a plan that there is not is a fault, and the secret is not
/// shown.
#[test]
fn prices_have_plans() {
    let secret = "whsec_planted_secret_of_billing";
    let folder = directory(&format!("[billing]\nsecret = \"{secret}\"\n[billing.plans]\nprice_1 = \"team\"\n"));
    let config = Config::load(in_directory(&folder)).unwrap().config;
    assert_eq!(config.billing.plans, [("price_1".into(), Plan::Team)].into());
    assert!(config.billing.secret.is_some() && !format!("{config:?}").contains(secret));
    let mut sources = in_directory(&folder);
    sources.environment = environment(&[("SVC_BILLING_PLANS", "price_2=free, price_3=enterprise")]);
    let plans = Config::load(sources).unwrap().config.billing.plans;
    assert_eq!(plans, [("price_2".into(), Plan::Free), ("price_3".into(), Plan::Enterprise)].into());
    let folder = directory("[billing]\nsecret = \"short\"\n[billing.plans]\nprice_1 = \"gold\"\n");
    let faults = faults(in_directory(&folder));
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults.iter().any(|it| it.contains("`price_1=gold` is none")) && !faults.concat().contains("short"));
}

/// A misspelt key is refused in the file and in the environment, and the nearest one is named.
#[test]
fn unknown_keys_are_refused_and_the_nearest_is_named() {
    let folder = directory("[limits]\ngatePerMin = 1\n[limts]\nbodyBytes = 1\n[limit]\ngatePerMinute = 5\n");
    let mut sources = in_directory(&folder);
    sources.environment = environment(&[("SVC_LIMIT_BODY_BYTES", "1")]);
    let at = folder_of(&sources);
    assert_eq!(
        faults(sources),
        [
            "`SVC_LIMIT_BODY_BYTES` in the environment is no setting / Did you mean `SVC_LIMITS_BODY_BYTES`? Correct the name or unset it.".to_owned(),
            format!("`limit` in {at}/svc.toml is no setting / Did you mean `limits.gatePerMinute`? Correct the name or remove the line."),
            format!("`limits.gatePerMin` in {at}/svc.toml is no setting / Did you mean `limits.gatePerMinute`? Correct the name or remove the line."),
            format!("`limts` in {at}/svc.toml is no setting / Did you mean `limits.bodyBytes`? Correct the name or remove the line."),
        ]
    );
}

/// What is like no setting is not said to have been meant as one, though the nearest is named.
#[test]
fn what_is_far_from_every_key_is_no_slip() {
    let folder = directory("[plans.gold]\nagents = 5\n[plans.fre]\nagents = 5\n");
    let mut sources = in_directory(&folder);
    sources.environment = environment(&[("SVC_FOO", "1"), ("SVC_DATE", "x"), ("SVC_URLL", "x"), ("SVC_AGENTKEY", "x")]);
    let all = faults(sources);
    let told = |name: &str| all.iter().find(|it| it.starts_with(&format!("`{name}`"))).unwrap().clone();
    assert!(told("SVC_FOO").contains(" / No setting has a name like it (the nearest is `SVC_"), "{all:?}");
    assert!(told("plans.gold").contains(" / No setting has a name like it (the nearest is `plans."), "{all:?}");
    assert!(told("plans.fre").contains(" / Did you mean `plans.free.agents`? "), "{all:?}");
    assert!(told("SVC_DATE").contains(" / Did you mean `SVC_DATA`? "), "{all:?}");
    assert!(told("SVC_URLL").contains(" / Did you mean `SVC_URL`? "), "{all:?}");
    assert!(told("SVC_AGENTKEY").contains(" / Did you mean `SVC_AGENT_KEY`? "), "{all:?}");
}

/// What container platforms set is told of and passed over; what other commands read is known.
#[test]
fn names_of_platforms_and_other_commands_are_no_errors() {
    let names =
        ["SVC_PORT", "SVC_PORT_8080_TCP", "SVC_SERVICE_HOST", "SVC_URL", "SVC_AGENT_KEY", "SVC_HOOK_TIMEOUT_MS"];
    let pairs: Vec<(&str, &str)> = names.iter().map(|name| (*name, "tcp://10.0.0.1:8080")).collect();
    let loaded = Config::load(Sources { environment: environment(&pairs), ..Sources::default() }).unwrap();
    let told =
        |name: &str| format!("`{name}` in the environment is passed over: container platforms set names like it");
    assert_eq!(loaded.warnings, [told("SVC_PORT"), told("SVC_PORT_8080_TCP"), told("SVC_SERVICE_HOST")]);
}

/// Every value that no setting can have gets a message that says what it must be, and a secret one is not shown.
#[test]
fn values_are_refused_with_what_they_must_be() {
    for (name, value, must) in [
        (
            "SVC_LISTEN",
            "localhost:8080",
            " is `localhost:8080` and must be an IP address with a port, such as `127.0.0.1:8080`: names are not looked up",
        ),
        (
            "SVC_BASE_URL",
            "http://gate.example.com",
            " is `http://gate.example.com` and must begin with `https://`, because its host is not loopback",
        ),
        ("SVC_BASE_URL", "ftp://localhost", " is `ftp://localhost` and must begin with `https://`"),
        (
            "SVC_BASE_URL",
            "https://a@gate.example.com",
            " is `…@gate.example.com` and must have no user, query or fragment",
        ),
        ("SVC_BASE_URL", "ada:hunter2@gate.example.com", " is `…@gate.example.com` and must have a host"),
        (
            "SVC_OUTBOUND_ALLOW",
            "ada:hunter2@models.internal",
            " is `…@models.internal` and must be a list of hosts such as `models.internal`, and `…@models.internal` is none",
        ),
        ("SVC_BASE_URL", "gate", " is `gate` and must be an address such as `https://gate.example.com`"),
        (
            "SVC_STORE_URL",
            "postgres://svc:hunter2@db/svc?sslmode=prefer",
            " names a database, and the address has an `sslmode` that checks too little: `verify-full`, or `disable` where the way is safe",
        ),
        (
            "SVC_STORE_URL",
            "svc.db",
            " must be `sqlite:` and a file called `svc.db`, such as `sqlite:/var/lib/svc/svc.db`, or `postgres://user:password@host/database`",
        ),
        ("SVC_MASTER_KEY", "hunter2", " must be 32 bytes in base64url (43 characters) or hexadecimal (64)"),
        (
            "SVC_TRUSTED_PROXIES",
            "10.0.0.0/33",
            " is `10.0.0.0/33` and must be a list of networks such as `10.0.0.0/8`, and `10.0.0.0/33` is none",
        ),
        (
            "SVC_TRUSTED_PROXIES",
            "0.0.0.0/0",
            " is `0.0.0.0/0` and must name the networks of proxies, and `0.0.0.0/0` is every address there is",
        ),
        (
            "SVC_TRUSTED_PROXIES",
            "::ffff:127.0.0.0/104",
            " is `::ffff:127.0.0.0/104` and must name IPv4 networks as such, and `::ffff:127.0.0.0/104` is one written as IPv6",
        ),
        ("SVC_LIMITS_GATE_PER_MINUTE", "0", " is `0` and must be a whole number from 1 to 1000000"),
        ("SVC_LIMITS_BODY_BYTES", "1e6", " is `1e6` and must be a whole number from 1024 to 33554432"),
        ("SVC_TIMEOUTS_DRAIN_MS", "99", " is `99` and must be a whole number from 100 to 3600000"),
        ("SVC_LOG_LEVEL", "loud", " is `loud` and must be `off`, `error`, `warn`, `info`, `debug` or `trace`"),
        ("SVC_LOG_FORMAT", "", " is `` and must be `auto`, `json` or `text`"),
        ("SVC_DATA", "", " is `` and must be a path"),
    ] {
        let sources = Sources { environment: environment(&[(name, value)]), ..Sources::default() };
        assert_eq!(faults(sources), [format!("`{name}` in the environment{must}")]);
    }
}

/// Faults of a file are told with the line; its text, which may hold a secret, is not quoted.
#[test]
fn a_file_that_is_not_toml_names_the_line_and_quotes_nothing() {
    let folder = directory("listen = \"127.0.0.1:1\"\nmasterKey = hunter2hunter2\n");
    let sources = in_directory(&folder);
    let found = faults(sources);
    assert!(found.iter().all(|it| it.contains("line 2 of the settings file") && !it.contains("hunter2")), "{found:?}");
    let missing = Sources { file: Some(PathBuf::from("/nowhere/svc.toml")), ..Sources::default() };
    assert_eq!(
        faults(missing),
        [
            "the settings file /nowhere/svc.toml cannot be read: No such file or directory (os error 2) / Check the path and that this user may read the file."
        ]
    );
    std::fs::write(folder.path().join(FILE_NAME), b"listen = \"\xff\"").unwrap();
    let found = faults(in_directory(&folder));
    assert!(found.len() == 1 && found.concat().ends_with("/ Save it as UTF-8."), "{found:?}");
    let list = directory("limits = 3\nlisten = [1, [2]]\n");
    assert_eq!(faults(in_directory(&list)).len(), 2);
}

/// A link to a settings file that is gone is told: whoever laid it meant its settings to count.
#[test]
fn a_settings_file_that_leads_nowhere_is_told() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("nowhere.toml", folder.path().join(FILE_NAME)).unwrap();
    let found = faults(in_directory(&folder));
    assert!(found.len() == 1 && found.concat().contains("svc.toml cannot be read"), "{found:?}");
}

/// Hosts are names and addresses as they are compared: no pattern, nothing empty, and no number that could be read as an address.
#[test]
fn hosts_that_match_nothing_are_refused() {
    for none in ["*.internal", "", "600 ", "-a", "a..b", "a:80", "0x7f.1", "http://a", "a/24"] {
        let file = directory(&format!("[outbound]\nallow = [\"models.internal\", \"{none}\"]\n"));
        let found = faults(in_directory(&file)).concat();
        assert!(found.ends_with(&format!(", and `{}` is none", none.trim())), "{none}: {found}");
    }
    for none in ["true", "600", "[true]", "[600]"] {
        let file = directory(&format!("[outbound]\nallow = {none}\n"));
        let found = faults(in_directory(&file)).concat();
        assert!(found.starts_with("`outbound.allow` in ") && found.ends_with(" must be a list of texts"), "{found}");
    }
    for host in ["ollama", "my_service.internal", "127.0.0.1", "::1", "[::1]", "bücher.example", "a.example."] {
        let file = directory(&format!("[outbound]\nallow = [\" {host} \"]\n"));
        assert!(Config::load(in_directory(&file)).is_ok(), "{host}");
    }
}

/// Whoever gives a table another form, or its members, is told that it is one, and what is in it.
#[test]
fn a_table_is_asked_for_as_one() {
    let told = |text: &str| faults(in_directory(&directory(text))).concat();
    for plans in ["[billing.plans]\nprice_1 = 3\n", "[billing]\nplans = 3\n"] {
        let found = told(plans);
        assert!(found.starts_with("`billing.plans` in ") && found.ends_with(" must be a table of texts"), "{found}");
    }
    for limits in ["limits = 3\n", "limits = \"many\"\n"] {
        let found = told(limits);
        assert!(found.starts_with("`limits` in ") && found.contains(" must be a table"), "{found}");
        assert!(found.contains("`limits.bodyBytes`") && !found.contains("`listen`"), "{found}");
    }
}

/// A file named by `--config` may say where the data lies, seen from the file; the one in the data directory may not.
#[test]
fn only_a_named_file_may_say_where_the_data_lies() {
    let folder = directory("data = \"elsewhere\"\nstore.url = \"sqlite:db/svc.db\"\n");
    let named = Sources { file: Some(folder.path().join(FILE_NAME)), ..Sources::default() };
    let config = Config::load(named).unwrap().config;
    assert_eq!(config.data, folder.path().join("elsewhere"));
    assert_eq!(config.database(), folder.path().join("db/svc.db"));
    let found = faults(in_directory(&folder));
    assert!(found.iter().all(|it| it.contains("cannot name the directory that the file lies in")), "{found:?}");
}

/// Commas separate the entries of every list in the environment, and of nothing else; nothing at all is an empty list; each
/// entry is read as one of a file is.
#[test]
fn lists_of_the_environment_are_separated_by_commas() {
    let load = |name: &str, value: &str| {
        Config::load(Sources { environment: environment(&[(name, value)]), ..Sources::default() })
    };
    let lists: Vec<String> = KEYS.iter().filter(|it| it.is_list).map(Key::env).collect();
    assert_eq!(lists, ["SVC_TRUSTED_PROXIES", "SVC_OUTBOUND_ALLOW", "SVC_OAUTH_ALLOW_REDIRECTS", "SVC_BILLING_PLANS"]);
    assert!(KEYS.iter().all(|it| it.is_list == ["[]", "{}"].contains(&it.default)), "a list's default is an empty one");
    for name in &lists {
        let empty = load(name, " ").unwrap().config;
        assert_eq!(format!("{empty:?}"), format!("{:?}", Config::default()), "{name}");
    }
    let several =
        load("SVC_OAUTH_ALLOW_REDIRECTS", "cursor://x/cb, com.example.app:/cb,https://a.example/?a=1").unwrap();
    let wanted = ["cursor://x/cb", "com.example.app:/cb", "https://a.example/?a=1"];
    assert_eq!(several.config.allow_redirects.iter().map(|it| &**it).collect::<Vec<_>>(), wanted);
    let file = directory("[oauth]\nallowRedirects = [\"cursor://x/cb\", \"x://y/a,b\"]\n");
    let config = Config::load(in_directory(&file)).unwrap().config;
    assert_eq!(config.allow_redirects, [Box::from("cursor://x/cb"), Box::from("x://y/a,b")]);
    for (value, none) in [("cursor", "cursor"), ("a://b,", ""), ("a://b#c", "a://b#c"), ("a://b,a://b c", "a://b c")] {
        let sources = Sources { environment: environment(&[(lists[2].as_str(), value)]), ..Sources::default() };
        let must = "must be a list of URIs without a fragment such as `cursor://oauth/callback`";
        let wanted = format!("`{}` in the environment is `{value}` and {must}, and `{none}` is none", lists[2]);
        assert_eq!(faults(sources), [wanted]);
    }
    let file = directory("[oauth]\nallowRedirects = [\"cursor\"]\n");
    assert_eq!(faults(in_directory(&file)).len(), 1);
}

/// Metrics have a port of their own: the server's is refused, also where one of the two takes every address.
#[test]
fn metrics_are_not_served_on_the_servers_own_address() {
    let sources = |listen: &str, metrics: &str| Sources {
        flags: vec![("data", "/nowhere".to_owned())],
        environment: environment(&[("SVC_LISTEN", listen), ("SVC_METRICS_LISTEN", metrics)]),
        ..Sources::default()
    };
    for (listen, metrics) in [("127.0.0.1:1", "127.0.0.1:1"), ("0.0.0.0:1", "127.0.0.1:1"), ("[::1]:1", "[::]:1")] {
        let what = format!("`metrics.listen` is {metrics}, and the server itself listens on {listen}");
        let advice = "Give metrics a port of their own, such as `127.0.0.1:9464`, or set `metrics.listen` to `off`.";
        assert_eq!(faults(sources(listen, metrics)), [format!("{what} / {advice}")]);
    }
    for (listen, metrics) in
        [("127.0.0.1:1", "127.0.0.1:2"), ("127.0.0.1:0", "127.0.0.1:0"), ("127.0.0.1:1", "127.0.0.2:1")]
    {
        assert!(Config::load(sources(listen, metrics)).is_ok(), "{listen} {metrics}");
    }
}

/// Private callbacks are for a server on loopback alone.
#[test]
fn private_callbacks_need_loopback() {
    let sources = |listen: &str| Sources {
        flags: vec![("listen", listen.to_owned()), ("data", "/nowhere".to_owned())],
        allow_private_callbacks: true,
        ..Sources::default()
    };
    assert!(Config::load(sources("[::1]:1")).unwrap().config.allow_private_callbacks);
    assert_eq!(
        faults(sources("0.0.0.0:80")),
        [
            "`--allow-private-callbacks` needs a server on a loopback address, and `0.0.0.0:80` is none / Leave the flag out, or set `listen` to `127.0.0.1:8080`."
        ]
    );
}

/// Without a base address of its own a server names the loopback address it listens on, with the port it really got.
#[test]
fn the_base_address_follows_from_the_port() {
    let config = Config::default();
    for (listening, base, host) in [
        ("127.0.0.1:8080", "http://127.0.0.1:8080", "127.0.0.1"),
        ("127.0.0.2:81", "http://127.0.0.2:81", "127.0.0.2"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080", "127.0.0.1"),
        ("[::1]:4", "http://[::1]:4", "[::1]"),
    ] {
        let url = config.base_url(listening.parse().unwrap());
        assert_eq!((url.as_str(), url.host(), url.is_loopback()), (base, host, true));
        assert_eq!(format!("http://{}", url.authority()), base);
        assert_eq!(BaseUrl::parse(base).unwrap(), url);
    }
}

/// The table in the documentation is the one the program has. `UPDATE_EXPECTED=1` writes it.
#[test]
fn the_documentation_has_the_table_of_settings() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (head, rest) = page.split_once("<!-- settings -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- /settings -->").unwrap();
    let wanted = format!("{head}<!-- settings -->\n{}<!-- /settings -->{tail}", markdown_table());
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    assert_eq!(page, wanted);
}

/// Whose rate counts which routes is said where it is set: every route of the four that name theirs, and none besides.
#[test]
fn a_rate_names_every_route_that_it_counts() {
    let names = |text: &str, route: &Route| {
        let (method, path) = text.split_once(' ').map_or((None, text), |(method, path)| (Some(method), path));
        let is_there = path.strip_suffix('*').map_or(route.path == path, |under| route.path.starts_with(under));
        is_there && method.is_none_or(|it| it == route.method.as_str())
    };
    for (limit, key) in [
        (Limit::Gate, "limits.gatePerMinute"),
        (Limit::Verify, "limits.verifyPerMinute"),
        (Limit::SignIn, "limits.signInPerMinute"),
        (Limit::OAuth, "limits.oauthPerMinute"),
    ] {
        let named: Vec<&str> = Key::named(key).unwrap().help.split('`').skip(1).step_by(2).collect();
        for route in all() {
            let is_named = named.iter().any(|it| names(it, route));
            assert_eq!(is_named, route.limit == limit, "{key}: {} {}", route.method, route.path);
        }
    }
}

/// What bounds a number is what its row says.
#[test]
fn numbers_are_refused_beyond_what_their_rows_say() {
    for key in KEYS {
        let Some((least, most)) = key.range else { continue };
        let set = |number: u64| {
            let texts = [number.to_string()];
            key.set(&mut Config::default(), &given::Given { texts: &texts, folder: None, range: None })
        };
        assert!(set(least).is_ok() && set(most).is_ok(), "{}", key.name);
        let must = format!("must be a whole number from {least} to {most}");
        assert_eq!(set(most + 1), Err(must), "{}", key.name);
        let row = format!("; {least} to {most} |");
        let name = format!("| `{}` |", key.name);
        assert!(markdown_table().lines().any(|it| it.starts_with(&name) && it.ends_with(&row)), "{}", key.name);
    }
}
