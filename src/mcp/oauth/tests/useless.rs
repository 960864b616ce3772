//! Sign-ins that would be of no use: the server needs none, or no request can be made with the tokens.

use super::*;

async fn open_mcp(body: String) -> Response {
    let message: Value = serde_json::from_str(&body).unwrap();
    let result = match message["method"].as_str().unwrap() {
        "initialize" => {
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": { "name": "fake", "version": "1" } })
        }
        "tools/list" => json!({ "tools": [] }),
        _ => return answer(StatusCode::ACCEPTED, json!({})),
    };
    answer(StatusCode::OK, json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
}

#[tokio::test]
async fn v_395_a_server_that_needs_no_sign_in_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    let router = Router::new().route("/mcp", post(open_mcp));
    tokio::spawn(axum::serve(listener, router).into_future());
    let (server, directory) = (McpServer::http("s", url), TempDir::new().unwrap());
    let signing_in =
        login_with(&server, store(&server, &directory), &[], |address| panic!("opened {address}"));
    let error = signing_in.await.unwrap_err();
    assert!(matches!(error, AuthError::NotNeeded(_)), "{error}");
    assert!(error.to_string().contains("server `s` needs no sign-in"), "{error}");
}

#[tokio::test]
async fn v_395_a_server_with_an_authorization_server_is_signed_in_to() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    assert!(store(&server, &directory).load().await.is_some());
}

#[tokio::test]
async fn v_395_tokens_that_can_never_be_used_are_no_sign_in() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let before = serde_json::to_value(store(&server, &directory).load().await.unwrap()).unwrap();
    for (fields, part) in [
        (json!({ "access_token": null }), "access_token"),
        (json!({ "access_token": "" }), "no access token"),
        (json!({ "access_token": "a\nb" }), "visible ASCII"),
        (json!({ "token_type": "mac" }), "of the type `mac`, and only `Bearer` and `DPoP` can be used"),
        (
            json!({ "token_type": "dpop" }),
            "of the type `DPoP`, which is bound to a key, although no key was sent",
        ),
        (json!({ "token_type": "ma\u{202e}c\n" }), r"of the type `ma\u{202e}c\u{a}`"),
        (json!({ "expires_in": 0, "refresh_token": null }), "expired when it arrived"),
        (json!({ "expires_in": -1 }), "expected u64"),
    ] {
        *issuer.token_fields.lock() = fields.as_object().unwrap().clone();
        let signing_in =
            login_with(&server, store(&server, &directory), &[], |address| drop(browser(address)));
        let error = signing_in.await.err().unwrap_or_else(|| panic!("signed in: {fields}")).to_string();
        assert!(
            error.contains("signing in to server `s` failed") && error.contains(part),
            "{fields}: {error}"
        );
        // What was stored before stays.
        let after = serde_json::to_value(store(&server, &directory).load().await.unwrap()).unwrap();
        assert_eq!(after, before, "{fields}");
    }
    // One that can be renewed is of use.
    *issuer.token_fields.lock() = json!({ "expires_in": 0 }).as_object().unwrap().clone();
    signed_in(&server, &directory).await;
}
