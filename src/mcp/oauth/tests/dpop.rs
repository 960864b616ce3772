//! Tokens that are bound to a key, with an authorization server and a server that check each proof.

use ring::digest::{SHA256, digest};

use super::*;
use crate::mcp::oauth::dpop::tests::opened;
use crate::mcp::oauth::login::{AuthStatus, status_with};
use crate::mcp::oauth::tokens::StoredSignIn;

/// An authorization server and its server, at one address.
#[derive(Default)]
struct Binding {
    base: Mutex<String>,
    /// Whether the server asks for bound tokens.
    asks: AtomicBool,
    /// Whether it does so in its metadata, and not in its challenge.
    asks_in_metadata: AtomicBool,
    /// Whether the authorization server has another algorithm than this client.
    has_other_algorithm: AtomicBool,
    /// The nonce that both want to see, if they want one.
    nonce: Mutex<Option<String>>,
    /// Whether that is another one in each request.
    changes_nonce: AtomicBool,
    /// The public key that the tokens are bound to.
    key: Mutex<Option<Value>>,
    /// The ids of the proofs that were accepted.
    seen: Mutex<Vec<String>>,
    /// The assertions of clients that came, each of which counts once.
    assertions: Mutex<Vec<String>>,
    /// Whether the server refuses all proofs, as one does whose clock differs.
    refuses_proofs: AtomicBool,
    /// The grants, and the schemes of the calls.
    grants: Mutex<Vec<String>>,
    schemes: Mutex<Vec<String>>,
    /// The schemes of all requests to the server; an empty one for none.
    shown: Mutex<Vec<String>>,
    /// The number of the access token that is valid now.
    number: AtomicU64,
    lifetime: AtomicU64,
}

type Shared = State<Arc<Binding>>;

impl Binding {
    async fn start(asks: bool) -> Arc<Self> {
        let binding = Arc::new(Self::default());
        binding.asks.store(asks, Ordering::Relaxed);
        binding.lifetime.store(3600, Ordering::Relaxed);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        *binding.base.lock() = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/mcp", post(mcp))
            .with_state(Arc::clone(&binding));
        tokio::spawn(axum::serve(listener, router).into_future());
        binding
    }

    fn server(&self) -> McpServer {
        McpServer::http("s", Url::parse(&format!("{}/mcp", self.base.lock())).unwrap())
    }

    fn token(&self) -> String {
        format!("token-{}", self.number.load(Ordering::SeqCst))
    }

    /// Whether a request has a fresh proof for itself and its token, with the nonce if one is wanted. `Err` is the
    /// answer that asks for the nonce.
    fn is_proved(&self, path: &str, headers: &HeaderMap, token: Option<&str>) -> Result<bool, ()> {
        let Some(proof) = headers.get("dpop").and_then(|proof| proof.to_str().ok()) else { return Ok(false) };
        let (header, claims) = opened(proof);
        if self.changes_nonce.load(Ordering::Relaxed) {
            *self.nonce.lock() = Some(format!("nonce-{}", self.shown.lock().len()));
        }
        let nonce = self.nonce.lock().clone();
        if nonce.as_deref() != claims["nonce"].as_str() {
            return Err(());
        }
        let id = claims["jti"].as_str().unwrap().to_owned();
        let mut seen = self.seen.lock();
        let is_fresh = !seen.contains(&id);
        seen.push(id);
        let target = format!("{}{path}", self.base.lock());
        let hash = token.map(|token| URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes())));
        let mut key = self.key.lock();
        let is_key = *key.get_or_insert_with(|| header["jwk"].clone()) == header["jwk"];
        Ok(is_fresh
            && is_key
            && claims["htm"] == "POST"
            && claims["htu"] == target.as_str()
            && claims["ath"].as_str() == hash.as_deref())
    }

    /// An answer that asks for the nonce.
    fn asks_for_nonce(&self, status: StatusCode) -> Response {
        let mut response = answer(status, json!({ "error": "use_dpop_nonce" }));
        let nonce = self.nonce.lock().clone().unwrap_or_else(|| "unused".to_owned());
        response.headers_mut().insert("dpop-nonce", nonce.parse().unwrap());
        let challenge = r#"DPoP error="use_dpop_nonce""#;
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge.parse().unwrap());
        response
    }
}

async fn resource(State(binding): Shared) -> Response {
    let base = binding.base.lock().clone();
    let mut document = json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base] });
    if binding.asks_in_metadata.load(Ordering::Relaxed) {
        document["dpop_bound_access_tokens_required"] = true.into();
    }
    answer(StatusCode::OK, document)
}

async fn metadata(State(binding): Shared) -> Response {
    let base = binding.base.lock().clone();
    let algorithm = if binding.has_other_algorithm.load(Ordering::Relaxed) { "PS256" } else { "ES256" };
    answer(
        StatusCode::OK,
        json!({
            "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "token_endpoint_auth_methods_supported": ["none"],
            "dpop_signing_alg_values_supported": [algorithm],
        }),
    )
}

async fn register(body: String) -> Response {
    let asked: Value = serde_json::from_str(&body).unwrap();
    answer(StatusCode::CREATED, json!({ "client_id": "registered", "redirect_uris": asked["redirect_uris"] }))
}

async fn authorize(Query(query): Query<HashMap<String, String>>) -> Response {
    let mut back = Url::parse(&query["redirect_uri"]).unwrap();
    back.query_pairs_mut().append_pair("code", "the-code").append_pair("state", &query["state"]);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    response.headers_mut().insert(header::LOCATION, back.as_str().parse().unwrap());
    response
}

async fn token(State(binding): Shared, headers: HeaderMap, body: String) -> Response {
    let form: HashMap<String, String> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    if let Some(assertion) = form.get("client_assertion") {
        let mut assertions = binding.assertions.lock();
        if assertions.contains(assertion) {
            return answer(StatusCode::UNAUTHORIZED, json!({ "error": "invalid_client" }));
        }
        assertions.push(assertion.clone());
    }
    let Ok(is_bound) = binding.is_proved("/token", &headers, None) else {
        return binding.asks_for_nonce(StatusCode::BAD_REQUEST);
    };
    if headers.contains_key("dpop") && !is_bound {
        return answer(StatusCode::BAD_REQUEST, json!({ "error": "invalid_dpop_proof" }));
    }
    binding.grants.lock().push(form["grant_type"].clone());
    binding.number.fetch_add(1, Ordering::SeqCst);
    let token = json!({
        "access_token": binding.token(), "token_type": if is_bound { "DPoP" } else { "Bearer" },
        "expires_in": binding.lifetime.load(Ordering::Relaxed), "refresh_token": "refresh",
    });
    answer(StatusCode::OK, token)
}

async fn mcp(State(binding): Shared, headers: HeaderMap, body: String) -> Response {
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, token) = shown.and_then(|shown| shown.split_once(' ')).unwrap_or_default();
    binding.shown.lock().push(scheme.to_owned());
    let asks = binding.asks.load(Ordering::Relaxed);
    if scheme == "DPoP" && binding.refuses_proofs.load(Ordering::Relaxed) {
        let mut response = answer(StatusCode::UNAUTHORIZED, json!({}));
        let challenge = r#"DPoP error="invalid_dpop_proof""#;
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge.parse().unwrap());
        return response;
    }
    let is_accepted = match scheme {
        "DPoP" => match binding.is_proved("/mcp", &headers, Some(token)) {
            Ok(is_proved) => is_proved && token == binding.token(),
            Err(()) => return binding.asks_for_nonce(StatusCode::UNAUTHORIZED),
        },
        scheme => scheme == "Bearer" && !asks && token == binding.token(),
    };
    if !is_accepted {
        let mut response = answer(StatusCode::UNAUTHORIZED, json!({}));
        let is_silent = binding.asks_in_metadata.load(Ordering::Relaxed);
        let challenge = if asks && !is_silent { "DPoP" } else { "Bearer" };
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge.parse().unwrap());
        return response;
    }
    let message: Value = serde_json::from_str(&body).unwrap();
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "fake", "version": "1" },
        }),
        "tools/call" => {
            binding.schemes.lock().push(scheme.to_owned());
            json!({ "content": [{ "type": "text", "text": "done" }] })
        }
        _ => return answer(StatusCode::ACCEPTED, json!({})),
    };
    answer(StatusCode::OK, json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
}

#[tokio::test]
async fn a_server_that_asks_for_it_gets_a_token_that_only_this_client_can_use() {
    let binding = Binding::start(true).await;
    let (server, directory) = (binding.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    for _ in 0..3 {
        call(&running).await.unwrap();
    }
    assert_eq!(*binding.schemes.lock(), ["DPoP"; 3]);
    // The token is renewed with the same key, also by another process.
    binding.number.fetch_add(1, Ordering::SeqCst);
    let other = connect(&server, authorization(&server, &directory)).await.unwrap();
    call(&other).await.unwrap();
    assert_eq!(*binding.grants.lock(), ["authorization_code", "refresh_token"]);
    // A new sign-in has a new key.
    let before = binding.key.lock().take();
    signed_in(&server, &directory).await;
    assert_ne!(*binding.key.lock(), before);
}

#[tokio::test]
async fn the_nonces_of_both_are_in_the_next_proof() {
    let binding = Binding::start(true).await;
    *binding.nonce.lock() = Some("first".to_owned());
    let (server, directory) = (binding.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    call(&running).await.unwrap();
    *binding.nonce.lock() = Some("second".to_owned());
    call(&running).await.unwrap();
    assert_eq!(*binding.grants.lock(), ["authorization_code"], "the token is not renewed for a nonce");
    assert_eq!(*binding.schemes.lock(), ["DPoP"; 2]);
}

/// Many servers take no bound tokens, although their authorization server issues them.
#[tokio::test]
async fn a_server_that_does_not_ask_for_it_gets_a_plain_token() {
    let binding = Binding::start(false).await;
    let (server, directory) = (binding.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    call(&running).await.unwrap();
    assert_eq!(*binding.schemes.lock(), ["Bearer"]);
    assert!(binding.key.lock().is_none());
    let stored = store(&server, &directory).load().await.unwrap();
    assert!(stored.proof_key.is_none());
}

/// The server for a client that signs in with a private key.
fn with_key(binding: &Binding) -> McpServer {
    let mut server = binding.server();
    if let McpTransport::Http(http) = &mut server.transport {
        http.oauth = Some(OAuth {
            client_id: Some("robot".to_owned()),
            private_key: Some(super::assertion::new_key().0),
            client_credentials: true,
            issuer: Some(binding.base.lock().clone()),
            ..OAuth::default()
        });
    }
    server
}

#[tokio::test]
async fn an_assertion_is_not_sent_again_for_a_nonce() {
    let binding = Binding::start(true).await;
    *binding.nonce.lock() = Some("first".to_owned());
    let (server, directory) = (with_key(&binding), TempDir::new().unwrap());
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    call(&running).await.unwrap();
    assert_eq!(*binding.schemes.lock(), ["DPoP"]);
    assert_eq!(binding.assertions.lock().len(), 2);
}

#[tokio::test]
async fn a_client_follows_a_server_that_no_longer_takes_bound_tokens() {
    let binding = Binding::start(true).await;
    let (server, directory) = (with_key(&binding), TempDir::new().unwrap());
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    call(&running).await.unwrap();
    binding.asks.store(false, Ordering::Relaxed);
    binding.number.fetch_add(1, Ordering::SeqCst);
    call(&running).await.unwrap();
    assert_eq!(*binding.schemes.lock(), ["DPoP", "Bearer"]);
}

#[tokio::test]
async fn a_proof_that_is_refused_is_no_reason_for_another_token() {
    let binding = Binding::start(true).await;
    let (server, directory) = (binding.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    binding.refuses_proofs.store(true, Ordering::Relaxed);
    let error = call(&running).await.unwrap_err();
    assert!(error.message.contains("`invalid_dpop_proof`") && error.message.contains("clock"), "{error:?}");
    assert_eq!(*binding.grants.lock(), ["authorization_code"]);
}

#[tokio::test]
async fn a_stored_key_that_cannot_be_read_is_no_key() {
    let binding = Binding::start(true).await;
    let (server, directory) = (binding.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let tokens = store(&server, &directory);
    assert!(matches!(status_with(&tokens).await, AuthStatus::SignedIn { .. }));
    rewrite(&server, &directory, |text| text.replace(r#""proof_key":""#, r#""proof_key":"A"#)).await;
    assert_eq!(status_with(&tokens).await, AuthStatus::Unusable);
    // The next sign-in has a new one.
    *binding.key.lock() = None;
    signed_in(&server, &directory).await;
    assert!(matches!(status_with(&tokens).await, AuthStatus::SignedIn { .. }));
}

#[tokio::test]
async fn a_server_can_ask_for_it_in_its_metadata() {
    let binding = Binding::start(true).await;
    binding.asks_in_metadata.store(true, Ordering::Relaxed);
    let (server, directory) = (binding.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    call(&running).await.unwrap();
    assert_eq!(*binding.schemes.lock(), ["DPoP"]);
}

#[tokio::test]
async fn an_authorization_server_with_other_algorithms_gets_no_proof() {
    let binding = Binding::start(true).await;
    binding.has_other_algorithm.store(true, Ordering::Relaxed);
    let (server, directory) = (binding.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    assert!(binding.key.lock().is_none());
    assert_eq!(*binding.grants.lock(), ["authorization_code"]);
}

/// Whoever has the request of a server that takes it could use it.
#[tokio::test]
async fn a_bound_token_whose_key_is_gone_is_not_sent() {
    let binding = Binding::start(true).await;
    let (server, directory) = (binding.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let stored = store(&server, &directory).load().await.unwrap();
    store(&server, &directory).save(StoredSignIn { proof_key: None, ..stored }).await.unwrap();
    assert!(connect(&server, authorization(&server, &directory)).await.is_err());
    let shown = binding.shown.lock().clone();
    assert!(shown.iter().all(String::is_empty), "{shown:?}");
}

/// Threat 715. A server that wants another nonce each time does not keep a call for ever.
#[tokio::test]
async fn v_715_a_request_is_sent_again_once_for_a_nonce() {
    let binding = Binding::start(true).await;
    let (server, directory) = (binding.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    call(&running).await.unwrap();
    binding.changes_nonce.store(true, Ordering::Relaxed);
    let before = binding.shown.lock().len();
    let called = tokio::time::timeout(Duration::from_secs(60), call(&running)).await;
    called.expect("the call ends").unwrap_err();
    assert_eq!(binding.shown.lock().len() - before, 2);
}
