//! What single settings become: limits, rules, grants, the audit trail and language models.

use super::*;

#[test]
fn promise_96_settings_take_their_values_from_variables() {
    let text = r#"{
        "deny": ["env:DENIED", "a.b"], "strict": "env:STRICT", "import": ["env:CLIENT"],
        "limits": {"timeoutMs": "env:TIME"}, "cache": {"enabled": "env:OFF", "directory": "env:HOME"}
    }"#;
    let place = Place::new()
        .file("home/.config/cx/config.json", text)
        .file("home/.cursor/mcp.json", r#"{"mcpServers": {"x": {"command": "cursor"}}}"#)
        .with("DENIED", "c.*")
        .with("STRICT", "true")
        .with("CLIENT", "cursor")
        .with("OFF", "0")
        .with("TIME", "5000");
    let config = place.load();
    assert_eq!(config.rules.deny, ["c.*", "a.b"]);
    assert!(config.strict && !config.cache_enabled);
    assert_eq!(config.limits.wall_time, Duration::from_secs(5));
    assert_eq!(chosen(&config), ["x=cursor"]);
    assert_eq!(config.cache_directory, Some(place.path("home")));
    // A restriction that cannot be known is an error, and no value is shown.
    let error = |text: &str| {
        let place = Place::new().file("home/.config/cx/config.json", text).with("SECRET", "geheim");
        place.load_with(&[]).unwrap_err().to_string()
    };
    let missing = error(r#"{"deny": ["env:NOPE"]}"#);
    assert!(missing.ends_with("`deny[0]`: the environment variable `NOPE` is not set"), "{missing}");
    for text in [
        r#"{"limits": {"timeoutMs": "env:SECRET"}}"#,
        r#"{"strict": "env:SECRET"}"#,
        r#"{"deny": ["env:SECRET"]}"#,
    ] {
        let error = error(text);
        assert!(error.contains("expected") && !error.contains("geheim"), "{error}");
    }
    // What others have written takes nothing from the environment, until it is trusted.
    let place = Place::new()
        .file("work/.cx.json", r#"{"allow": ["env:ALLOWED"], "strict": true}"#)
        .with("ALLOWED", "geheim.*");
    assert!(place.load_with(&[]).unwrap_err().to_string().contains("`allow[0]`: expected a pattern"));
}

/// A named file brings servers, and widens nothing.
#[test]
fn a_named_file_keeps_the_users_rules() {
    let user = r#"{"mcpServers": {"mine": {"command": "mine"}}, "import": ["cursor"], "readOnly": ["*"],
        "allow": ["x.*"], "deny": ["x.delete"], "ask": ["write"], "strict": true, "limits": {"timeoutMs": 5000}, "privateAddresses": "deny"}"#;
    let place = Place::new()
        .file("home/.config/cx/config.json", user)
        .file("home/.cursor/mcp.json", r#"{"mcpServers": {"cursor": {"command": "cursor"}}}"#)
        .file("work/.cx.json", r#"{"mcpServers": {"workspace": {"command": "workspace"}}}"#)
        .file("named.json", r#"{"mcpServers": {"x": {"command": "named"}}}"#)
        .file("proxy.json", r#"{"mcpServers": [], "code_execution_timeout_ms": 60000}"#);
    let load = |place: &Place, discover| {
        let files = ["proxy.json", "named.json"].map(|file| place.path(file)).to_vec();
        let options = LoadOptions { workspace: place.path("work"), files, discover };
        super::load(&options, &place.environment()).unwrap()
    };
    let config = load(&place, Discovery::UserRules);
    assert_eq!(chosen(&config), ["x=named"]);
    assert_eq!((config.rules.allow.len(), config.rules.read_only.len()), (1, 0));
    assert_eq!(config.rules.deny, ["x.delete"]);
    assert_eq!(config.rules.ask, ["write"]);
    assert!(config.strict && config.rules.private_addresses == crate::tools::PrivateAddresses::Deny);
    // The named file has a default of its own, below the user's maximum.
    assert_eq!(config.limits.wall_time, Duration::from_secs(5));
    let config = load(&place, Discovery::None);
    assert_eq!(config.rules, crate::ToolRules::new());
    assert_eq!(config.limits.wall_time, Duration::from_secs(60));
    // The variable's file is the user's own.
    let place = place.file("other.json", r#"{"deny": ["y.*"]}"#);
    let other = place.path("other.json").display().to_string();
    let config = load(&place.with("CX_CONFIG", &other), Discovery::UserRules);
    assert_eq!(config.rules.deny, ["y.*"]);
}

#[test]
fn files_that_wait_for_trust_are_listed() {
    let servers = r#"{"mcpServers": {"x": {"command": "a"}, "y": {"command": "b"}}}"#;
    let place = Place::new().file("work/.mcp.json", servers).file("work/.cx.json", r#"{"deny": ["a.b"]}"#);
    assert_eq!(place.load().untrusted, [Path::new(".mcp.json")]);
    assert!(place.trust("work/.mcp.json").load().untrusted.is_empty());
}

/// The user's file with these settings in `security` and `sampling`.
fn with_security(security: &str) -> Place {
    Place::new().file("home/.code-executor.json", &format!(r#"{{"security": {security}}}"#))
}

#[test]
fn what_scripts_may_reach_there_is_granted() {
    let granted = |place: &Place| {
        let config = place.load();
        let texts =
            |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        let net: Vec<String> = config.grants.net.iter().map(ToString::to_string).collect();
        let warnings: Vec<String> = unused(&config).into_iter().map(str::to_owned).collect();
        (texts(&config.grants.read), texts(&config.grants.write), net, warnings)
    };
    let home = |place: &Place| place.path("home").display().to_string();
    // The scratch directory and loopback hosts need no grant. A port makes a host one that is meant.
    let place = with_security(
        r#"{"allowRead": ["~/a", "/tmp", "/srv/b"], "allowWrite": ["/srv/b"],
            "allowNetwork": ["localhost", "127.0.0.1", "::1", "api.example.com", "localhost:3000"]}"#,
    );
    let (read, write, net, warnings) = granted(&place);
    assert_eq!(read, [format!("{}/a", home(&place)), "/srv/b".to_owned()]);
    assert_eq!(
        (write, net),
        (vec!["/srv/b".to_owned()], vec!["api.example.com".to_owned(), "localhost:3000".to_owned()])
    );
    assert!(warnings.is_empty(), "{warnings:?}");
    // `true` is what may be read, and every name.
    let place = with_security(r#"{"allowWrite": true, "allowRead": ["/srv/b"], "allowNetwork": true}"#);
    let (read, write, net, warnings) = granted(&place);
    assert_eq!((read, net), (write, vec!["*".to_owned()]));
    assert!(warnings.is_empty(), "{warnings:?}");
    // No list of directories to read is the working directory there, which no setting has named.
    for security in [r#"{"allowWrite": true}"#, r#"{"allowRead": [], "allowWrite": true}"#] {
        let (read, write, _, warnings) = granted(&with_security(security));
        assert!(read.is_empty() && write.is_empty(), "{read:?} {write:?}");
        assert!(warnings[0].ends_with("ignored: `security.allowWrite`"), "{warnings:?}");
    }
    // What cannot be read grants nothing, and the rest is granted.
    let place = with_security(r#"{"allowRead": ["relative", "/srv/b"], "allowNetwork": ["http://a/", "b"]}"#);
    let (read, _, net, warnings) = granted(&place);
    assert_eq!((read, net), (vec!["/srv/b".to_owned()], vec!["b".to_owned()]));
    assert!(warnings.iter().any(|text| text.contains("`security.allowRead[0]`")), "{warnings:?}");
    assert!(warnings.iter().any(|text| text.contains("`security.allowNetwork[0]`")), "{warnings:?}");
    // A variable comes before files, and cx's own lists before those of the same file.
    let place = place.with("ALLOWED_PROJECTS", "/home/ada/projects:/tmp::/srv/c:relative");
    let (read, _, _, warnings) = granted(&place);
    assert_eq!(read, ["/home/ada/projects", "/srv/c"]);
    assert!(warnings.iter().any(|text| text.contains("`ALLOWED_PROJECTS`")), "{warnings:?}");
    let text = r#"{"security": {"allowRead": ["/srv/b"], "allowWrite": ["/srv/b"]}, "grants": {"read": ["/srv/c"]}}"#;
    let (read, write, ..) = granted(&Place::new().file("home/.code-executor.json", text));
    assert_eq!((read, write), (vec!["/srv/c".to_owned()], vec!["/srv/b".to_owned()]));
}

#[test]
fn an_audit_log_there_is_a_trail() {
    let audit = |place: &Place| place.load().audit.map(|audit| (audit.directory, audit.retention_days));
    let trail = |directory: &str| Some((Some(PathBuf::from(directory)), Some(180)));
    let on = r#"{"enableAuditLog": true, "auditLogPath": "/srv/log/audit.log"}"#;
    assert_eq!(audit(&with_security(on)), trail("/srv/log/audit.log.d"));
    assert_eq!(audit(&with_security(r#"{"auditLogPath": "/srv/log/audit.log"}"#)), None);
    assert_eq!(audit(&with_security(r#"{"enableAuditLog": true}"#)), Some((None, Some(180))));
    let relative = with_security(r#"{"enableAuditLog": true, "auditLogPath": "./audit.log"}"#);
    assert_eq!(audit(&relative), Some((None, Some(180))));
    assert!(
        unused(&relative.load())[0].contains("`security.auditLogPath`"),
        "{:?}",
        relative.load().warnings
    );
    // Variables come before that file, and each setting from where it is said.
    let place = with_security(on).with("AUDIT_LOG_PATH", "/srv/trail").with("AUDIT_LOG_RETENTION_DAYS", "30");
    assert_eq!(audit(&place), Some((Some("/srv/trail".into()), Some(30))));
    assert_eq!(audit(&with_security(on).with("ENABLE_AUDIT_LOG", "false")), None);
    let place = with_security(r#"{"auditLogPath": "/srv/trail"}"#).with("ENABLE_AUDIT_LOG", "true");
    assert_eq!(audit(&place), trail("/srv/trail"));
    // cx's own key decides, whatever else is said: the variables' names are other programs' too.
    let text = r#"{"security": {"enableAuditLog": false}, "audit": {"directory": "/srv/own"}}"#;
    let place = Place::new()
        .file("home/.code-executor.json", text)
        .with("ENABLE_AUDIT_LOG", "0")
        .with("AUDIT_LOG_PATH", "/srv/other");
    assert_eq!(audit(&place), trail("/srv/own"));
    assert!(unused(&place.load())[0].contains("another file decides about `audit`"));
    let place = Place::new()
        .file("home/.code-executor.json", r#"{"audit": {"enabled": false}}"#)
        .with("ENABLE_AUDIT_LOG", "true");
    assert_eq!(audit(&place), None);
}

#[test]
fn providers_keep_their_keys_and_addresses() {
    let llm = |place: &Place| place.load().llm.provider;
    let place = |variables: &[(&str, &str)]| {
        let keys = ["ANTHROPIC", "OPENAI", "GEMINI", "PERPLEXITY"];
        let place = Place::new().with("CODE_EXECUTOR_SAMPLING_ENABLED", "true");
        let place = keys
            .iter()
            .fold(place, |place, name| place.with(&format!("{name}_API_KEY"), &format!("key of {name}")));
        variables.iter().fold(place, |place, (name, value)| place.with(name, value))
    };
    let shown = |variables: &[(&str, &str)]| {
        let provider = llm(&place(variables)).unwrap();
        let key = provider.key.as_ref().map_or("none", ApiKey::expose).to_owned();
        (provider.kind.as_str(), provider.model, provider.url.unwrap_or_default(), key)
    };
    let expected =
        |kind, model: &str, url: &str, key: &str| (kind, model.to_owned(), url.to_owned(), key.to_owned());
    let (provider, url) = ("CODE_EXECUTOR_AI_PROVIDER", "CODE_EXECUTOR_AI_BASE_URL");
    for (name, ours) in [
        ("anthropic", expected("anthropic", "claude-haiku-4-5-20251001", "", "key of ANTHROPIC")),
        ("openai", expected("openai", "gpt-4o-mini", "", "key of OPENAI")),
        ("gemini", expected("gemini", "gemini-2.5-flash-lite", "", "key of GEMINI")),
        ("perplexity", expected("openai", "sonar", "https://api.perplexity.ai", "key of PERPLEXITY")),
        // Its key is not set, and another provider's is not sent there.
        ("grok", expected("openai", "grok-4-1-fast-non-reasoning", "https://api.x.ai/v1", "none")),
    ] {
        assert_eq!(shown(&[(provider, name)]), ours, "{name}");
    }
    // An address is that of a provider of this kind: no other key is sent there.
    let at = expected("openai", "gpt-4o-mini", "http://localhost:1/v1", "key of OPENAI");
    assert_eq!(shown(&[(provider, "openai"), (url, "http://localhost:1/v1")]), at);
    for name in ["anthropic", "gemini"] {
        let place = place(&[(provider, name), (url, "http://localhost:1/v1")]);
        assert_eq!(llm(&place).unwrap().url, None, "{name}");
        assert!(unused(&place.load())[0].ends_with("ignored: `CODE_EXECUTOR_AI_BASE_URL`"), "{name}");
    }
    // A key in the file is not that of a provider in variables.
    let file = r#"{"llm": {"provider": "openai", "model": "own", "apiKey": "own key"}}"#;
    let mixed = place(&[(provider, "grok")]).file("home/.config/cx/config.json", file);
    assert_eq!(llm(&mixed).unwrap().key, None);
    // The first model of a list, unless the usual one is in it; the provider's own list comes first.
    let models = |variables: &[(&str, &str)]| {
        let config = place(variables).load();
        (config.llm.provider.unwrap().model, config.llm.allowed_models.unwrap())
    };
    let all = ("CODE_EXECUTOR_ALLOWED_MODELS", "a, gpt-4o-mini");
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(models(&[(provider, "openai"), all]), ("gpt-4o-mini".into(), list(&["a", "gpt-4o-mini"])));
    assert_eq!(models(&[(provider, "gemini"), all]), ("a".into(), list(&["a", "gpt-4o-mini"])));
    let own = ("CODE_EXECUTOR_ALLOWED_MODELS_OPENAI", "b,c");
    assert_eq!(models(&[(provider, "openai"), all, own]), ("b".into(), list(&["b", "c"])));
    assert_eq!(models(&[(provider, "gemini"), all, own]).1, list(&["a", "gpt-4o-mini"]));
    let prompts = place(&[("CODE_EXECUTOR_ALLOWED_SYSTEM_PROMPTS", ", be brief")]).load();
    assert_eq!(prompts.llm.allowed_system_prompts, Some(list(&["", "be brief"])));
    // cx's own model and variables come before what the program takes.
    let file = r#"{"llm": {"provider": "openai", "model": "own"}}"#;
    let own = place(&[(provider, "openai")]).file("home/.config/cx/config.json", file);
    assert_eq!(llm(&own).unwrap().model, "own");
    let gemini = place(&[(provider, "grok"), ("CX_LLM_PROVIDER", "gemini"), ("CX_LLM_MODEL", "m")]);
    assert_eq!(llm(&gemini).unwrap().key, Some(ApiKey::new("key of GEMINI")));
    // The same in the file.
    let text =
        r#"{"sampling": {"enabled": true, "provider": "grok", "apiKeys": {"openai": "o", "grok": "g"}}}"#;
    let config = Place::new().file("home/.code-executor.json", text).load();
    assert_eq!(config.llm.provider.unwrap().key, Some(ApiKey::new("g")));
}

/// Threat 490.
#[test]
fn v_490_a_workspaces_file_of_another_program_grants_nothing() {
    let text = r#"{"security": {
        "allowRead": ["/"], "allowWrite": true, "allowNetwork": true,
        "enableAuditLog": false, "auditLogPath": "/srv/theirs"},
        "sampling": {"enabled": true, "provider": "openai", "baseUrl": "https://theirs/v1", "apiKeys": {"openai": "k"}}}"#;
    let workspace = || Place::new().file("work/.code-executor.json", text).with("OPENAI_API_KEY", "secret");
    let config = workspace().load();
    assert!(config.grants.is_empty(), "{:?}", config.grants);
    assert!(config.llm.provider.is_none() && config.llm.access == LlmAccess::OnRequest);
    // What is granted stays: the file names a directory around it.
    let own =
        r#"{"grants": {"read": ["/srv/a"], "net": ["a.example"]}, "audit": {"directory": "/srv/ours"}}"#;
    let config = workspace().file("home/.config/cx/config.json", own).load();
    assert_eq!(
        (config.grants.read.as_slice(), config.grants.write.len()),
        ([PathBuf::from("/srv/a")].as_slice(), 0)
    );
    assert_eq!(config.audit.unwrap().directory, Some("/srv/ours".into()));
    // The trail that a variable switches on, and models, are the user's even where the file is trusted.
    let place = workspace().with("ENABLE_AUDIT_LOG", "true").trust("work/.code-executor.json");
    let config = place.load();
    assert_eq!(config.audit.as_ref().unwrap().directory, None);
    assert!(config.llm.provider.is_none() && config.llm.access == LlmAccess::OnRequest);
    let messages = unused(&config);
    assert!(messages.iter().any(|text| text.contains("`audit.enabled` of another program")), "{messages:?}");
    assert!(
        messages.iter().any(|text| text.contains("`llm` belongs in the user's own file")),
        "{messages:?}"
    );
}

/// The program's times have a unit, and a number has none.
#[test]
fn a_time_of_mcpproxy_without_a_unit_is_not_guessed() {
    for (time, found) in
        [("30", "a number"), ("\"30\"", "a number"), ("\"soon\"", "another text"), ("[]", "an array")]
    {
        let text = format!(r#"{{"mcpServers": [], "call_tool_timeout": {time}}}"#);
        let config = Place::new().file("home/.config/cx/config.json", &text).load();
        let expected =
            format!("`call_tool_timeout`: expected a time such as `30s` or `1m30s`, found {found}");
        assert_eq!(unused(&config), [format!("ignored: {expected}")]);
        let has_hint = config.warnings.iter().any(|warning| warning.hint.is_some());
        assert_eq!(has_hint, found == "a number", "{time}");
    }
}
