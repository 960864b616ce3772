//! Signing in with an ID token that an enterprise's identity provider exchanges.

use std::path::Path;

use serde_json::Map;

use super::*;

const ID_TOKEN: &str = "for-ada.payload.signature";

/// What the identity provider returns: an assertion of this type for one authorization server.
const ASSERTION_TYPE: &str = "oauth-id-jag+jwt";

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn parts(assertion: &str) -> Vec<Value> {
    let read = |part: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap_or_default()).unwrap_or_default()
    };
    assertion.split('.').map(read).collect()
}

/// Whether an assertion is one of an identity provider for a user.
pub(super) fn is_for_a_user(assertion: &str) -> bool {
    parts(assertion)[0]["typ"] == ASSERTION_TYPE
}

/// Whether the authorization server accepts such an assertion, from the client that it names.
pub(super) fn is_accepted(issuer: &Issuer, form: &HashMap<String, String>, assertion: &str) -> bool {
    let claims = &parts(assertion)[1];
    let has_secret = form.get("client_secret").is_some_and(|secret| secret == "hush");
    let key = issuer.key.lock();
    let has_key = || key.as_ref().is_some_and(|key| super::assertion::is_signed(form, key));
    form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        && claims["aud"] == json!(*issuer.base.lock())
        && claims["resource"] == json!(issuer.resource())
        && claims["client_id"] == json!(form["client_id"])
        && (has_secret || has_key())
}

/// An identity provider.
#[derive(Default)]
struct Provider {
    base: Mutex<String>,
    /// The headers for authorization, and the forms, of the requests to its token endpoint.
    requests: Mutex<Vec<(String, HashMap<String, String>)>>,
    /// Its issuer, if it says that it is another one.
    issuer: Mutex<Option<String>>,
    /// Claims of its assertions that are other ones.
    claims: Mutex<Map<String, Value>>,
}

impl Provider {
    async fn start() -> Arc<Self> {
        let provider = Arc::new(Self::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        *provider.base.lock() = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/token", post(exchange))
            .with_state(Arc::clone(&provider));
        tokio::spawn(axum::serve(listener, router).into_future());
        provider
    }
}

async fn metadata(State(provider): State<Arc<Provider>>) -> Response {
    let base = provider.base.lock().clone();
    let issuer = provider.issuer.lock().clone().unwrap_or_else(|| base.clone());
    let (authorization, token) = (format!("{base}/authorize"), format!("{base}/token"));
    answer(
        StatusCode::OK,
        json!({ "issuer": issuer, "authorization_endpoint": authorization, "token_endpoint": token }),
    )
}

async fn exchange(State(provider): State<Arc<Provider>>, headers: HeaderMap, body: String) -> Response {
    let form: HashMap<String, String> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let shown = headers.get(header::AUTHORIZATION).map_or("", |value| value.to_str().unwrap());
    provider.requests.lock().push((shown.to_owned(), form.clone()));
    if form["subject_token"] != ID_TOKEN {
        return answer(StatusCode::BAD_REQUEST, json!({ "error": "invalid_grant" }));
    }
    let mut claims = json!({
        "iss": *provider.base.lock(), "sub": "ada", "aud": form["audience"], "resource": form["resource"],
        "client_id": "robot", "jti": "1", "iat": 0, "exp": 4_000_000_000_u64,
    });
    for (name, value) in provider.claims.lock().clone() {
        claims[name.as_str()] = value;
    }
    let header = part(&json!({ "alg": "ES256", "typ": ASSERTION_TYPE }));
    answer(
        StatusCode::OK,
        json!({
            "access_token": format!("{header}.{}.c2lnbmF0dXJl", part(&claims)), "token_type": "N_A",
            "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        }),
    )
}

/// The server of an enterprise, whose user has an ID token in the file.
fn of_enterprise(issuer: &Issuer, provider: &Provider, file: &Path) -> McpServer {
    // Only a sign-in of the user would come with a token to renew it.
    issuer.token_fields.lock().insert("refresh_token".to_owned(), Value::Null);
    let mut server = issuer.server();
    if let McpTransport::Http(http) = &mut server.transport {
        http.oauth = Some(OAuth {
            client_id: Some("robot".to_owned()),
            client_secret: Some("hush".to_owned()),
            issuer: Some(issuer.base.lock().clone()),
            client_credentials: true,
            identity_provider: Some(provider.base.lock().clone()),
            identity_client_id: Some("cx".to_owned()),
            identity_client_secret: Some("quiet".to_owned()),
            id_token_file: Some(file.to_owned()),
            ..OAuth::default()
        });
    }
    server
}

#[tokio::test]
async fn a_user_for_whom_an_identity_provider_vouches_needs_no_browser() {
    let (issuer, provider) = (Issuer::start(3600).await, Provider::start().await);
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("id-token");
    std::fs::write(&file, format!("{ID_TOKEN}\n")).unwrap();
    let server = of_enterprise(&issuer, &provider, &file);
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    call(&running).await.unwrap();
    let (shown, form) = provider.requests.lock()[0].clone();
    let basic = base64::engine::general_purpose::STANDARD.encode("cx:quiet");
    assert_eq!(shown, format!("Basic {basic}"), "its metadata says nothing else");
    let base = issuer.base.lock().clone();
    let resource = format!("{base}/mcp");
    for (name, expected) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("subject_token", ID_TOKEN),
        ("audience", base.as_str()),
        ("resource", resource.as_str()),
    ] {
        assert_eq!(form[name], expected, "{name}");
    }
    // The authorization server gets what the identity provider has issued for it, and not the ID token.
    let sent = issuer.forms.lock().clone();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].values().all(|value| !value.contains(ID_TOKEN)), "{sent:?}");
    // If the server no longer accepts the token, both exchanges are made again.
    issuer.number.fetch_add(1, Ordering::SeqCst);
    call(&running).await.unwrap();
    assert_eq!((provider.requests.lock().len(), issuer.forms.lock().len()), (2, 2));
    assert_eq!(*issuer.grants.lock(), ["jwt-bearer", "jwt-bearer"]);
}

/// The client shows what its private key has signed, in place of a secret.
#[tokio::test]
async fn a_client_of_an_enterprise_signs_in_with_its_key() {
    let (issuer, provider) = (Issuer::start(3600).await, Provider::start().await);
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("id-token");
    std::fs::write(&file, ID_TOKEN).unwrap();
    let (pem, public) = super::assertion::new_key();
    *issuer.key.lock() = Some(public);
    let mut server = of_enterprise(&issuer, &provider, &file);
    if let McpTransport::Http(http) = &mut server.transport {
        let oauth = http.oauth.take().unwrap();
        http.oauth = Some(OAuth { client_secret: None, private_key: Some(pem), ..oauth });
    }
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    call(&running).await.unwrap();
    assert_eq!(*issuer.grants.lock(), ["jwt-bearer"]);
    assert!(!issuer.forms.lock()[0].contains_key("client_secret"));
}

/// A sign-in that cannot succeed is refused with its reason before the ID token is sent.
#[tokio::test]
async fn nothing_is_sent_for_a_configuration_that_cannot_be_used() {
    let (issuer, provider) = (Issuer::start(3600).await, Provider::start().await);
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("id-token");
    std::fs::write(&file, ID_TOKEN).unwrap();
    let no_key =
        |oauth: OAuth| OAuth { client_secret: None, private_key: Some("no key".to_owned()), ..oauth };
    let in_clear = |oauth: OAuth| OAuth { identity_provider: Some("http://192.0.2.1".to_owned()), ..oauth };
    let changes: [(&dyn Fn(OAuth) -> OAuth, &str); 2] =
        [(&no_key, "`oauth.privateKey` cannot be used"), (&in_clear, "it is behind `http`")];
    for (change, expected) in changes {
        let mut server = of_enterprise(&issuer, &provider, &file);
        if let McpTransport::Http(http) = &mut server.transport {
            http.oauth = http.oauth.take().map(change);
        }
        let error = connect(&server, authorization(&server, &directory)).await.err().unwrap();
        assert!(error.message.contains(expected), "{}", error.message);
    }
    assert!(provider.requests.lock().is_empty() && issuer.forms.lock().is_empty());
}

#[tokio::test]
async fn an_id_token_that_has_expired_is_named_with_its_file() {
    let (issuer, provider) = (Issuer::start(3600).await, Provider::start().await);
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("id-token");
    std::fs::write(&file, "for-ada.old.signature").unwrap();
    let server = of_enterprise(&issuer, &provider, &file);
    let error = connect(&server, authorization(&server, &directory)).await.err().unwrap();
    assert!(error.message.contains("does not accept the ID token"), "{}", error.message);
    assert!(error.message.contains(file.to_str().unwrap()), "{}", error.message);
    assert!(!error.message.contains("for-ada"), "{}", error.message);
    assert!(issuer.forms.lock().is_empty());
}

/// Threat 665.
#[tokio::test]
async fn v_665_an_id_token_reaches_no_server_but_the_identity_provider() {
    let (issuer, other) = (Issuer::start(3600).await, Issuer::start(3600).await);
    let provider = Provider::start().await;
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("id-token");
    std::fs::write(&file, ID_TOKEN).unwrap();
    let server = of_enterprise(&issuer, &provider, &file);
    let refused = async || connect(&server, authorization(&server, &directory)).await.err().unwrap().message;
    // The server names another authorization server than the configured one.
    let base = other.base.lock().clone();
    *issuer.resource.lock() =
        Some(json!({ "resource": format!("{}/mcp", issuer.base.lock()), "authorization_servers": [base] }));
    assert!(refused().await.contains("expected"), "another authorization server");
    *issuer.resource.lock() = None;
    // What answers at the address of the identity provider says that it is another one.
    *provider.issuer.lock() = Some("https://login.example.com".to_owned());
    let message = refused().await;
    assert!(message.contains("the identity provider `http://127.0.0.1"), "{message}");
    *provider.issuer.lock() = None;
    assert!(provider.requests.lock().is_empty(), "{:?}", provider.requests.lock());
    // Its assertion is for another authorization server, client or resource.
    for (claim, value) in
        [("aud", "https://other.example"), ("client_id", "cx"), ("resource", "https://other.example/mcp")]
    {
        *provider.claims.lock() = Map::from_iter([(claim.to_owned(), json!(value))]);
        assert!(refused().await.contains("mismatch"), "{claim}");
    }
    assert!(issuer.forms.lock().is_empty() && other.forms.lock().is_empty());
}
