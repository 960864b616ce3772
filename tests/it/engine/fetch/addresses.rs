//! Which addresses a script may reach, also by redirects.

use super::*;

#[tokio::test]
async fn without_a_grant_there_is_no_fetch() {
    python().await;
    let alone = executor(&[]);
    let granted = executor(&["127.0.0.1"]);
    let nothing = Permissions { net: Some(Vec::new()), ..Permissions::default() };
    for (executor, permissions) in [(&alone, Permissions::default()), (&granted, nothing)] {
        let names = "typeof fetch + typeof Response + typeof ReadableStream + ('fetch' in globalThis)";
        let script = Script::typescript(format!("return {names}")).permissions(permissions.clone());
        assert_eq!(value(&executor.run(script).await.unwrap()), json!("undefinedundefinedundefinedfalse"));
        for script in
            [Script::typescript("await fetch('http://127.0.0.1/')"), Script::python("await fetch('a')")]
        {
            let result = executor.run(script.permissions(permissions.clone())).await.unwrap();
            let error = result.error().unwrap();
            assert_eq!(error.code, ErrorCode::RuntimeError);
            assert!(error.hint.as_ref().unwrap().contains("--allow-net HOST"), "{error:?}");
        }
    }
}

#[tokio::test]
async fn every_spelling_of_a_private_address_is_refused_unless_it_is_granted() {
    python().await;
    let host = HttpHost::start(|_| Reply::text("hello"));
    let urls: Vec<String> = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        "127.0.0.1.",
        "localhost",
        "localhost.",
        "LOCALHOST",
    ]
    .iter()
    .map(|spelling| format!("http://{spelling}:{}/", host.port))
    .collect();
    for grants in [&["*"][..], &["example.com"], &["10.0.0.1"], &["127.0.0.1:1", "localhost:1"]] {
        let codes = codes(&executor(grants), &urls).await;
        assert!(codes.iter().all(|code| code == "NET_DENIED"), "{grants:?}: {codes:?}");
    }
    assert_eq!(host.asked().len(), 0);
    let codes = codes(&executor(&["127.0.0.1", "localhost"]), &urls).await;
    assert!(codes.iter().filter(|code| code.is_null()).count() >= 9, "{codes:?}");
}

/// A run's permission for one host of a wildcard grant does not count as a host that a person has named.
#[tokio::test]
async fn a_run_cannot_turn_a_pattern_into_a_private_name() {
    let host = HttpHost::start(|_| Reply::text("hello"));
    let executor = executor(&["*"]);
    let asks = Permissions { net: Some(vec!["localhost".parse().unwrap()]), ..Permissions::default() };
    let source = "try { await fetch(input) } catch (error) { return error.cause.code }";
    let url = format!("http://localhost:{}/", host.port);
    let result = executor.run(Script::typescript(source).input(json!(url)).permissions(asks)).await.unwrap();
    assert_eq!(value(&result), "NET_DENIED");
    assert_eq!(host.asked().len(), 0);
}

#[tokio::test]
async fn addresses_that_no_script_may_ask_for() {
    python().await;
    let urls = [
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "http://a:b@127.0.0.1/",
        "nonsense",
        "http://127.0.0.1:22/",
        "http://127.0.0.1:6667/",
        "http://169.254.9.9/latest",
        "http://[fe80::1]/",
        "http://0/",
        "http://10.0.0.1/",
        "http://224.0.0.1/",
    ];
    let codes = codes(&executor(&["127.0.0.1"]), &urls.map(str::to_owned)).await;
    let invalid = ["INVALID_ARGUMENTS"; 4];
    let denied = ["NET_DENIED"; 7];
    assert_eq!(json!(codes), json!([&invalid[..], &denied[..]].concat()));
}

#[tokio::test]
async fn errors_say_which_host_and_what_to_do() {
    python().await;
    let (_unheard, address) = crate::support::unheard_address();
    let closed = address.port();
    let executor = executor(&["127.0.0.1"]);
    for (url, code, words) in [
        (
            "http://10.1.2.3/secret".to_owned(),
            ToolErrorCode::NetDenied,
            ["`10.1.2.3`", "--allow-net 10.1.2.3"],
        ),
        (
            "http://api.example.com/secret".to_owned(),
            ToolErrorCode::NetDenied,
            ["`api.example.com`", "grants.net"],
        ),
        // Threat 840: a URL may have such a host.
        ("http://a;id&b/secret".to_owned(), ToolErrorCode::NetDenied, ["`a;id&b`", "`--allow-net 'a;id&b'`"]),
        (
            format!("http://127.0.0.1:{closed}/secret"),
            ToolErrorCode::NetFailed,
            ["127.0.0.1", "cannot be reached"],
        ),
    ] {
        for script in [Script::typescript("await fetch(input)"), Script::python("await fetch(inputs)")] {
            let result = executor.run(script.input(json!(url))).await.unwrap();
            let error = result.error().unwrap();
            assert_eq!(error.tool_code, Some(code), "{error:?}");
            assert!(words.iter().all(|words| error.message.contains(words)), "{}", error.message);
            assert!(!error.message.contains("secret"), "{}", error.message);
        }
    }
}

#[tokio::test]
async fn a_redirect_is_checked_like_a_request() {
    python().await;
    let inner = HttpHost::start(|_| Reply::text("secret"));
    let target = inner.url("/a");
    let by_name = format!("http://localhost:{}/a", inner.port);
    let decimal = format!("http://2130706433:{}/a", inner.port);
    let outer = HttpHost::start(move |asked| match &*asked.path {
        "/address" => Reply::redirect(302, target.as_str()),
        "/name" => Reply::redirect(307, by_name.as_str()),
        "/decimal" => Reply::redirect(301, decimal.as_str()),
        "/metadata" => Reply::redirect(302, "http://169.254.9.9/latest/meta-data/"),
        "/file" => Reply::redirect(302, "file:///etc/passwd"),
        "/password" => Reply::redirect(302, "http://a:b@127.0.0.1/"),
        "/loop" => Reply::redirect(302, "/loop"),
        "/self" => Reply::redirect(308, "/end"),
        _ => Reply::text("end"),
    });
    let only_outer = executor(&[&format!("127.0.0.1:{}", outer.port)]);
    let urls = ["/address", "/name", "/decimal", "/metadata", "/file", "/password", "/loop", "/self"];
    let found = codes(&only_outer, &urls.map(|path| outer.url(path))).await;
    let expected = [
        "NET_DENIED",
        "NET_DENIED",
        "NET_DENIED",
        "NET_DENIED",
        "INVALID_ARGUMENTS",
        "INVALID_ARGUMENTS",
        "NET_FAILED",
    ];
    assert_eq!(found[..7], expected.map(Value::from));
    assert_eq!(found[7], Value::Null);
    assert_eq!(inner.asked().len(), 0, "a redirect has reached a host that is not granted");
    // The first request and twenty redirects, in each language.
    assert_eq!(outer.asked().iter().filter(|asked| asked.path == "/loop").count(), 42);
}

#[tokio::test]
async fn credentials_stay_with_their_origin() {
    python().await;
    let other = HttpHost::start(|_| Reply::text("other"));
    let (target, own) = (other.url("/"), "/same".to_owned());
    let first = HttpHost::start(move |asked| match &*asked.path {
        "/elsewhere" => Reply::redirect(307, target.as_str()),
        "/here" => Reply::redirect(307, own.as_str()),
        _ => Reply::text("first"),
    });
    let executor = executor(&["127.0.0.1"]);
    let typescript =
        "const headers = { authorization: 'Bearer s', cookie: 'a=b', 'x-a': '1' }; const found = [];
        for (const url of input) {
            const response = await fetch(url, { method: 'POST', body: 'b', headers });
            found.push([await response.text(), response.redirected]);
        }
        return found";
    let in_python = "headers = {'authorization': 'Bearer s', 'cookie': 'a=b', 'x-a': '1'}
found = []
for url in inputs:
    response = await fetch(url, method='POST', body='b', headers=headers)
    found.append([await response.text(), response.redirected])
found";
    let input = json!([first.url("/elsewhere"), first.url("/here")]);
    let found = twins(&executor, input, typescript, in_python).await;
    assert_eq!(found, json!([["other", true], ["first", true]]));
    for asked in other.asked() {
        assert_eq!((asked.header("authorization"), asked.header("cookie")), (None, None));
        assert_eq!((asked.header("x-a"), &asked.body[..], &*asked.method), (Some("1"), &b"b"[..], "POST"));
    }
    let same: Vec<Asked> = first.asked().into_iter().filter(|asked| asked.path == "/same").collect();
    assert!(same.iter().all(|asked| asked.header("authorization") == Some("Bearer s")) && same.len() == 2);
}
