//! Signing in with a small authorization server that checks the requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ::http::{HeaderMap, StatusCode, header};
use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::Response;
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::net::TcpListener;
use url::Url;

use super::authorization::Authorization;
use super::login::{AuthError, login, login_with};
use super::tokens::TokenStore;
use crate::mcp::errors::tool_error;
use crate::mcp::http::{Deadlines, connect_transport};
use crate::mcp::notifications::Notifications;
use crate::mcp::settings::{McpServer, McpTransport, OAuth};
use crate::tools::{ToolError, ToolErrorCode};

mod assertion;
mod discovery;
mod dpop;
mod enterprise;
mod hostile;
mod token_store;
mod useless;

/// The state and the behavior of the authorization server.
#[derive(Default)]
struct Issuer {
    base: Mutex<String>,
    /// The number of the access token that is valid now.
    number: AtomicU64,
    refreshes: AtomicUsize,
    /// Lifetime of new tokens in seconds.
    lifetime: AtomicU64,
    refuses_refresh: AtomicBool,
    challenge: Mutex<Option<String>>,
    forms: Mutex<Vec<HashMap<String, String>>>,
    registrations: AtomicUsize,
    calls: AtomicUsize,
    /// Requests for its metadata.
    lookups: AtomicUsize,
    /// False metadata that it returns: of the resource, and of itself.
    resource: Mutex<Option<Value>>,
    metadata: Mutex<Option<Value>>,
    /// The resource that tokens are for, if it is not its own.
    other_resource: Mutex<Option<String>>,
    /// How long a renewal takes, if not 100 ms.
    renewal_time: Mutex<Option<Duration>>,
    /// The grants of its tokens, in the order in which they were issued.
    grants: Mutex<Vec<String>>,
    /// Fields of its answers with tokens that are other ones; `null` for none.
    token_fields: Mutex<serde_json::Map<String, Value>>,
    /// The target to which its token endpoint redirects.
    token_redirect: Mutex<Option<String>>,
    /// The public key (P-256) of a client that signs in with its private one.
    key: Mutex<Option<Vec<u8>>>,
}

type Shared = State<Arc<Issuer>>;

impl Issuer {
    async fn start(lifetime: u64) -> Arc<Self> {
        let issuer = Arc::new(Self::default());
        issuer.lifetime.store(lifetime, Ordering::Relaxed);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        *issuer.base.lock() = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(resource_metadata))
            .route("/.well-known/oauth-authorization-server", get(server_metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/mcp", post(mcp))
            .with_state(Arc::clone(&issuer));
        tokio::spawn(axum::serve(listener, router).into_future());
        issuer
    }

    fn server(&self) -> McpServer {
        let url = Url::parse(&format!("{}/mcp", self.base.lock())).unwrap();
        McpServer::http("s", url)
    }

    /// The URL of the resource that tokens are for.
    fn resource(&self) -> String {
        let other = self.other_resource.lock().clone();
        other.unwrap_or_else(|| format!("{}/mcp", self.base.lock()))
    }

    fn truth(&self) -> Value {
        let base = self.base.lock().clone();
        json!({
            "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "token_endpoint_auth_methods_supported": ["client_secret_post", "none"],
        })
    }

    fn current(&self) -> String {
        format!("token-{}", self.number.load(Ordering::SeqCst))
    }

    /// Makes a new token; the one before becomes invalid.
    fn issue(&self, grant: &str) -> Response {
        self.grants.lock().push(grant.to_owned());
        self.number.fetch_add(1, Ordering::SeqCst);
        let lifetime = self.lifetime.load(Ordering::Relaxed);
        let mut tokens = json!({
            "access_token": self.current(), "token_type": "Bearer", "expires_in": lifetime,
            "refresh_token": format!("refresh-{}", self.current()),
        });
        for (name, value) in self.token_fields.lock().clone() {
            tokens[name.as_str()] = value;
        }
        if let Value::Object(tokens) = &mut tokens {
            tokens.retain(|_, value| !value.is_null());
        }
        answer(StatusCode::OK, tokens)
    }
}

fn answer(status: StatusCode, body: Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    response
}

async fn resource_metadata(State(issuer): Shared) -> Response {
    let base = issuer.base.lock().clone();
    let truth = json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base] });
    answer(StatusCode::OK, issuer.resource.lock().clone().unwrap_or(truth))
}

async fn server_metadata(State(issuer): Shared) -> Response {
    issuer.lookups.fetch_add(1, Ordering::SeqCst);
    let said = issuer.metadata.lock().clone();
    answer(StatusCode::OK, said.unwrap_or_else(|| issuer.truth()))
}

async fn register(State(issuer): Shared, body: String) -> Response {
    issuer.registrations.fetch_add(1, Ordering::Relaxed);
    let asked: Value = serde_json::from_str(&body).unwrap();
    answer(StatusCode::CREATED, json!({ "client_id": "registered", "redirect_uris": asked["redirect_uris"] }))
}

/// The user agrees at once.
async fn authorize(State(issuer): Shared, Query(query): Query<HashMap<String, String>>) -> Response {
    assert_eq!(query["response_type"], "code");
    assert_eq!(query["code_challenge_method"], "S256");
    assert_eq!(query["resource"], issuer.resource());
    *issuer.challenge.lock() = Some(query["code_challenge"].clone());
    let mut back = Url::parse(&query["redirect_uri"]).unwrap();
    back.query_pairs_mut().append_pair("code", "the-code").append_pair("state", &query["state"]);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    response.headers_mut().insert(header::LOCATION, back.as_str().parse().unwrap());
    response
}

async fn token(State(issuer): Shared, body: String) -> Response {
    if let Some(target) = issuer.token_redirect.lock().clone() {
        let mut response = answer(StatusCode::TEMPORARY_REDIRECT, json!({}));
        response.headers_mut().insert(header::LOCATION, target.parse().unwrap());
        return response;
    }
    let form: HashMap<String, String> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    issuer.forms.lock().push(form.clone());
    let refused = || answer(StatusCode::BAD_REQUEST, json!({ "error": "invalid_grant" }));
    if let Some(assertion) = form.get("assertion").filter(|assertion| enterprise::is_for_a_user(assertion)) {
        // Only the assertion says what the token is for.
        return match enterprise::is_accepted(&issuer, &form, assertion) {
            true => issuer.issue("jwt-bearer"),
            false => refused(),
        };
    }
    if form.get("resource") != Some(&issuer.resource()) {
        return answer(StatusCode::BAD_REQUEST, json!({ "error": "invalid_target" }));
    }
    match form["grant_type"].as_str() {
        "authorization_code" if form["code"] == "the-code" && !form["code_verifier"].is_empty() => {
            issuer.issue("authorization_code")
        }
        "refresh_token" => {
            issuer.refreshes.fetch_add(1, Ordering::SeqCst);
            let is_current = form["refresh_token"] == format!("refresh-{}", issuer.current());
            // Long enough for all other calls to arrive.
            let renewal_time = *issuer.renewal_time.lock();
            tokio::time::sleep(renewal_time.unwrap_or(Duration::from_millis(100))).await;
            if !is_current || issuer.refuses_refresh.load(Ordering::Relaxed) {
                refused()
            } else {
                issuer.issue("refresh_token")
            }
        }
        "client_credentials" if form.get("client_secret").map(String::as_str) == Some("hush") => {
            issuer.issue("client_credentials")
        }
        "client_credentials" if form.contains_key("client_assertion") => {
            if issuer.key.lock().as_ref().is_some_and(|key| assertion::is_signed(&form, key)) {
                issuer.issue("client_credentials")
            } else {
                answer(StatusCode::UNAUTHORIZED, json!({ "error": "invalid_client" }))
            }
        }
        "urn:ietf:params:oauth:grant-type:jwt-bearer" if form["assertion"].starts_with("for-cx.") => {
            issuer.issue("jwt-bearer")
        }
        _ => refused(),
    }
}

async fn mcp(State(issuer): Shared, headers: HeaderMap, body: String) -> Response {
    let expected = format!("Bearer {}", issuer.current());
    if headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) != Some(&expected) {
        return answer(StatusCode::UNAUTHORIZED, json!({}));
    }
    let message: Value = serde_json::from_str(&body).unwrap();
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "fake", "version": "1" },
        }),
        "tools/call" => {
            issuer.calls.fetch_add(1, Ordering::SeqCst);
            json!({ "content": [{ "type": "text", "text": "done" }] })
        }
        _ => return answer(StatusCode::ACCEPTED, json!({})),
    };
    answer(StatusCode::OK, json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
}

fn store(server: &McpServer, directory: &TempDir) -> Arc<TokenStore> {
    Arc::new(TokenStore::in_files(server.identity(), directory.path()))
}

/// Does what a browser does: opens the URL and follows redirects.
fn browser(address: &Url) -> tokio::task::JoinHandle<(StatusCode, String)> {
    let address = address.clone();
    tokio::spawn(async move {
        let client = crate::mcp::web::client(Duration::from_secs(60)).unwrap();
        let sent = client.get(address).send().await.unwrap();
        let back = sent.headers()[header::LOCATION].to_str().unwrap().to_owned();
        let page = client.get(back).send().await.unwrap();
        (page.status(), page.text().await.unwrap())
    })
}

async fn signed_in(server: &McpServer, directory: &TempDir) {
    login_with(server, store(server, directory), &[], |address| drop(browser(address))).await.unwrap();
}

fn authorization(server: &McpServer, directory: &TempDir) -> Arc<Authorization> {
    Arc::new(Authorization::with_store(server, store(server, directory)).unwrap())
}

type Running = rmcp::service::RunningService<rmcp::RoleClient, rmcp::model::ClientConfig>;

async fn connect(server: &McpServer, authorization: Arc<Authorization>) -> Result<Running, ToolError> {
    let McpTransport::Http(http) = &server.transport else { unreachable!() };
    let deadlines = Deadlines { connect: Duration::from_secs(60), request: Duration::from_secs(60) };
    let (wire, state) = connect_transport(
        Arc::from("s"),
        http,
        Some(authorization),
        Arc::default(),
        Notifications::default(),
        deadlines,
    )
    .unwrap();
    let running = rmcp::serve_client(rmcp::model::ClientConfig::default(), wire).await;
    running.map_err(|error| state.failure().cloned().unwrap_or_else(|| panic!("{error}")))
}

async fn call(running: &Running) -> Result<(), ToolError> {
    match crate::mcp::answers::call_tool(running, rmcp::model::CallToolRequestParams::new("t")).await {
        Ok(_) => Ok(()),
        Err(rmcp::ServiceError::McpError(error)) => Err(tool_error(&error).unwrap()),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_person_signs_in_and_calls_work() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    let mut page = None;
    login_with(&server, store(&server, &directory), &[], |address| page = Some(browser(address)))
        .await
        .unwrap();
    let (status, page) = page.unwrap().await.unwrap();
    assert_eq!(status, StatusCode::OK);
    assert!(page.contains("You can close this page"), "{page}");
    assert!(!page.contains("the-code"), "{page}");
    assert_eq!(issuer.registrations.load(Ordering::Relaxed), 1);
    // The verifier belongs to the challenge.
    let verifier = issuer.forms.lock()[0]["code_verifier"].clone();
    let digest = Sha256::digest(verifier.as_bytes());
    let challenge = URL_SAFE_NO_PAD.encode(digest);
    assert_eq!(issuer.challenge.lock().as_deref(), Some(challenge.as_str()));

    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    call(&running).await.unwrap();
    assert_eq!(issuer.refreshes.load(Ordering::Relaxed), 0);

    // No other user can read the file, and it is removed afterwards.
    use std::os::unix::fs::PermissionsExt as _;
    let file = directory.path().join("tokens").join(format!("{}.json", server.identity()));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    store(&server, &directory).clear().await.unwrap();
    assert!(!file.exists());
}

#[tokio::test]
async fn without_a_sign_in_the_error_says_what_to_do_and_comes_back_to_life() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    let authorization = authorization(&server, &directory);
    let error = connect(&server, Arc::clone(&authorization)).await.err().unwrap();
    assert_eq!(error.code, ToolErrorCode::UpstreamUnavailable);
    assert!(error.message.contains("cx auth login s"), "{}", error.message);
    assert!(issuer.forms.lock().is_empty());
    // The user signs in, and this process need not be restarted.
    signed_in(&server, &directory).await;
    call(&connect(&server, authorization).await.unwrap()).await.unwrap();
}

#[tokio::test]
async fn an_expired_token_is_renewed_once_for_many_calls() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    // The server stops accepting the token before its expiry, as after a restart.
    let refresh = format!("refresh-{}", issuer.current());
    let stored = store(&server, &directory).load().await.unwrap();
    assert!(serde_json::to_string(&stored).unwrap().contains(&refresh));
    issuer.number.fetch_add(1, Ordering::SeqCst);
    rewrite(&server, &directory, |text| text.replace(&refresh, &format!("refresh-{}", issuer.current())))
        .await;

    let calls = futures::future::join_all((0..20).map(|_| call(&running))).await;
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    assert_eq!(issuer.refreshes.load(Ordering::SeqCst), 1);
    assert_eq!(issuer.calls.load(Ordering::SeqCst), 20);
}

#[tokio::test]
async fn a_token_that_is_about_to_expire_is_renewed_before_it_is_used() {
    // The lifetime is shorter than the early-renewal time, so the token is never valid for a
    // request.
    let issuer = Issuer::start(5).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    issuer.lifetime.store(3600, Ordering::Relaxed);
    let authorization = authorization(&server, &directory);
    let McpTransport::Http(http) = &server.transport else { unreachable!() };
    let tokens = futures::future::join_all((0..20).map(|_| authorization.token(&http.url))).await;
    for token in tokens {
        assert_eq!(token.unwrap().unwrap().header(), format!("Bearer {}", issuer.current()));
    }
    assert_eq!(issuer.refreshes.load(Ordering::SeqCst), 1);
}

/// Another process has the lock for renewals, and is stopped.
#[tokio::test]
async fn v_581_calls_that_end_leave_nothing_that_waits_for_a_renewal() {
    // Tokens of this lifetime have to be renewed before they are used.
    let issuer = Issuer::start(5).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    issuer.lifetime.store(3600, Ordering::Relaxed);
    let stopped = store(&server, &directory).lock().await.unwrap();
    let authorization = authorization(&server, &directory);
    let McpTransport::Http(http) = &server.transport else { unreachable!() };
    for _ in 0..20 {
        let token = tokio::time::timeout(Duration::from_millis(20), authorization.token(&http.url));
        assert!(token.await.is_err());
    }
    // The test's own, and that of the renewal which the first call has begun.
    assert_eq!(Arc::strong_count(&authorization), 2);
    drop(stopped);
    let token = tokio::time::timeout(Duration::from_secs(60), authorization.token(&http.url));
    let token = token.await.expect("the renewal goes on").unwrap().unwrap();
    assert_eq!(token.header(), format!("Bearer {}", issuer.current()));
    assert_eq!(issuer.refreshes.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_refused_renewal_asks_to_sign_in_and_is_not_repeated() {
    let issuer = Issuer::start(5).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    issuer.refuses_refresh.store(true, Ordering::Relaxed);
    let began = Instant::now();
    let authorization = authorization(&server, &directory);
    for _ in 0..10 {
        let error = connect(&server, Arc::clone(&authorization)).await.err().unwrap();
        assert!(error.message.contains("cx auth login s"), "{}", error.message);
    }
    // A busy machine may take longer than the pauses.
    let max = 1 + usize::try_from(began.elapsed().as_secs()).unwrap();
    let refreshes = issuer.refreshes.load(Ordering::SeqCst);
    assert!(refreshes <= max, "{refreshes} renewals for 10 connections, at most {max}");
}

#[tokio::test]
async fn a_forged_return_does_not_end_the_sign_in() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    let mut forged = None;
    let signing_in = login_with(&server, store(&server, &directory), &[], |address| {
        let address = address.clone();
        forged = Some(tokio::spawn(async move {
            let client = crate::mcp::web::client(Duration::from_secs(60)).unwrap();
            let (_, back) = address.query_pairs().find(|(key, _)| key == "redirect_uri").unwrap();
            let forged = client.get(format!("{back}?code=evil&state=guessed")).send().await.unwrap().status();
            browser(&address).await.unwrap();
            forged
        }));
    });
    signing_in.await.unwrap();
    assert_eq!(forged.unwrap().await.unwrap(), StatusCode::BAD_REQUEST);
    assert_eq!(issuer.forms.lock()[0]["code"], "the-code");
}

#[tokio::test]
async fn a_person_who_says_no_is_told_so() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    let error = login_with(&server, store(&server, &directory), &[], |address| {
        let query: HashMap<_, _> = address.query_pairs().into_owned().collect();
        let back = format!("{}?error=access_denied&state={}", query["redirect_uri"], query["state"]);
        drop(tokio::spawn(async move {
            crate::mcp::web::client(Duration::from_secs(60)).unwrap().get(back).send().await.unwrap();
        }));
    });
    let error = error.await.unwrap_err();
    assert_eq!(error.to_string(), "signing in to server `s` failed: access_denied");
    assert!(issuer.forms.lock().is_empty());
}

#[tokio::test]
async fn tokens_do_not_go_over_the_wire_in_clear() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let authorization = authorization(&server, &directory);
    let error = authorization.token(&Url::parse("http://example.com/mcp").unwrap()).await.err().unwrap();
    assert!(error.message.contains("use `https`"), "{}", error.message);
    assert!(authorization.token(&Url::parse("https://example.com/mcp").unwrap()).await.unwrap().is_some());
}

#[tokio::test]
async fn nothing_shows_a_token() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let authorization = authorization(&server, &directory);
    let McpTransport::Http(http) = &server.transport else { unreachable!() };
    let token = authorization.token(&http.url).await.unwrap().unwrap();
    assert!(!format!("{authorization:?} {:?}", token.header()).contains("token-"));
}

#[tokio::test]
async fn processes_have_nothing_to_sign_in_to() {
    let directory = TempDir::new().unwrap();
    let server = McpServer::stdio("files", "true");
    assert!(Authorization::new(&server, directory.path()).is_none());
    let error = login(&server, directory.path(), |_| ()).await.unwrap_err();
    assert!(matches!(error, AuthError::NotHttp(name) if name == "files"));
}

/// Changes the stored sign-in after it has been read.
async fn rewrite(server: &McpServer, directory: &TempDir, change: impl FnOnce(String) -> String) {
    let tokens = store(server, directory);
    let text = serde_json::to_string(&tokens.load().await.unwrap()).unwrap();
    tokens.save(serde_json::from_str(&change(text)).unwrap()).await.unwrap();
}
