//! One sign-in that several processes use at once, because every client starts its own.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// Long enough for the other process to send the same refresh token meanwhile.
const RENEWAL_TIME: Duration = Duration::from_millis(500);

/// An MCP server that is its own authorization server. A refresh token can be used once; using one again revokes the
/// whole sign-in (RFC 9700, section 4.14.2).
#[derive(Default)]
struct Issuer {
    base: String,
    state: Mutex<Issued>,
}

#[derive(Default)]
struct Issued {
    number: usize,
    /// Seconds that access tokens live.
    lifetime: u64,
    /// How long a renewal takes.
    renewal_time: Duration,
    /// Access tokens that are accepted.
    accepted: HashSet<String>,
    used: HashSet<String>,
    is_revoked: bool,
    refreshes: usize,
    reuses: usize,
    calls: usize,
}

type Shared = State<Arc<Issuer>>;

fn answer(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    response
}

impl Issuer {
    async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let issuer = Arc::new(Self { base, ..Self::default() });
        {
            let mut state = issuer.state.lock();
            (state.lifetime, state.renewal_time) = (3600, RENEWAL_TIME);
        }
        let router = Router::new()
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/authorize", get(authorize))
            .route("/register", post(register))
            .route("/token", post(token))
            .route("/mcp", post(mcp))
            .route("/refreshes", get(refreshes))
            .with_state(Arc::clone(&issuer));
        tokio::spawn(axum::serve(listener, router).into_future());
        issuer
    }

    fn issue(&self) -> Response {
        let mut state = self.state.lock();
        state.number += 1;
        let number = state.number;
        state.accepted.insert(format!("access-{number}"));
        answer(
            StatusCode::OK,
            &json!({
                "access_token": format!("access-{number}"), "token_type": "Bearer", "expires_in": state.lifetime,
                "refresh_token": format!("refresh-{number}"), "id_token": "identity-1234",
            }),
        )
    }
}

async fn metadata(State(issuer): Shared) -> Response {
    let base = &issuer.base;
    answer(
        StatusCode::OK,
        &json!({
            "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
            "code_challenge_methods_supported": ["S256"],
        }),
    )
}

/// How many renewals have begun.
async fn refreshes(State(issuer): Shared) -> Response {
    answer(StatusCode::OK, &json!(issuer.state.lock().refreshes))
}

async fn register() -> Response {
    answer(
        StatusCode::CREATED,
        &json!({ "client_id": "registered", "redirect_uris": ["http://127.0.0.1/callback"] }),
    )
}

async fn authorize(Query(query): Query<HashMap<String, String>>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    let back = format!("{}?code=code&state={}", query["redirect_uri"], query["state"]);
    response.headers_mut().insert(header::LOCATION, back.parse().unwrap());
    response
}

async fn token(State(issuer): Shared, body: String) -> Response {
    let form: HashMap<String, String> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    if form["grant_type"] == "refresh_token" {
        let renewal_time = {
            let mut state = issuer.state.lock();
            state.refreshes += 1;
            if !state.used.insert(form["refresh_token"].clone()) {
                state.reuses += 1;
                state.is_revoked = true;
                state.accepted.clear();
            }
            if state.is_revoked {
                return answer(StatusCode::BAD_REQUEST, &json!({ "error": "invalid_grant" }));
            }
            state.renewal_time
        };
        tokio::time::sleep(renewal_time).await;
    }
    issuer.issue()
}

async fn mcp(State(issuer): Shared, headers: HeaderMap, body: String) -> Response {
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut state = issuer.state.lock();
    if !token.strip_prefix("Bearer ").is_some_and(|token| state.accepted.contains(token)) {
        return answer(StatusCode::UNAUTHORIZED, &json!({}));
    }
    let message: Value = serde_json::from_str(&body).unwrap();
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "fake", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{ "name": "ping", "inputSchema": { "type": "object" } }] }),
        "tools/call" => {
            state.calls += 1;
            json!({ "content": [{ "type": "text", "text": "pong" }] })
        }
        method if method.starts_with("notifications/") => return answer(StatusCode::ACCEPTED, &json!({})),
        _ => {
            let error = json!({ "code": -32601, "message": "no such method" });
            return answer(StatusCode::OK, &json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
        }
    };
    answer(StatusCode::OK, &json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
}

/// A home in which the command runs, with the server in a file.
struct Home {
    directory: TempDir,
    config: PathBuf,
}

impl Home {
    fn new(issuer: &Issuer, oauth: &Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("mcp.json");
        let server = json!({ "url": format!("{}/mcp", issuer.base), "oauth": oauth });
        let servers = json!({ "mcpServers": { "remote": server } });
        std::fs::write(&config, servers.to_string()).unwrap();
        Self { directory, config }
    }

    fn cx(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
        command.args(arguments).arg("--mcp-config").arg(&self.config).current_dir(self.directory.path());
        for variable in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
            command.env(variable, self.directory.path());
        }
        // Tokens of tests must not get into the keyring of the user who runs the tests.
        command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
        command.env_remove("CX_LOG").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Signs in as a person whose browser agrees to everything.
    async fn sign_in(&self) {
        let mut child = self.cx(&["auth", "login", "remote", "--no-browser"]).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, address) = tokio::sync::oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let mut sender = Some(sender);
            for line in lines.map_while(Result::ok).filter(|line| line.starts_with("http://")) {
                let _gone = sender.take().expect("one address").send(line);
            }
        });
        let address = address.await.expect("an address to open");
        // A process has one crypto provider; other tests may have installed it.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().build().unwrap();
        assert!(http.get(address).send().await.unwrap().status().is_success());
        let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Two processes that each make a call, begun at once. Both calls must succeed.
    async fn two_calls(&self, issuer: &Issuer, round: usize) {
        let begin = || {
            let child = self.cx(&["run", "-e", "return await tools.remote.ping({})"]).spawn().unwrap();
            tokio::task::spawn_blocking(move || child.wait_with_output().unwrap())
        };
        let (one, other) = (begin(), begin());
        let mut said = Vec::new();
        for output in [one.await.unwrap(), other.await.unwrap()] {
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            said.push(text + &String::from_utf8_lossy(&output.stderr));
        }
        let state = issuer.state.lock();
        let seen = (state.refreshes, state.reuses, state.is_revoked, state.calls);
        let text = "refreshes, reuses, revoked, calls";
        assert_eq!(said, ["\"pong\"", "\"pong\""], "round {round}; {text}: {seen:?}");
    }
}

/// The server forgets its access tokens, and two processes find out at once. They share one refresh token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v_352_two_processes_renew_one_sign_in() {
    let issuer = Issuer::start().await;
    let home = Home::new(&issuer, &json!({}));
    home.sign_in().await;
    for round in 1..=8 {
        issuer.state.lock().accepted.clear();
        home.two_calls(&issuer, round).await;
        let state = issuer.state.lock();
        assert_eq!((state.refreshes, state.reuses, state.is_revoked), (round, 0, false), "round {round}");
    }
    // Tokens that are always about to expire are renewed by every process, each time with the last refresh token.
    issuer.state.lock().lifetime = 20;
    for round in 1..=3 {
        issuer.state.lock().accepted.clear();
        home.two_calls(&issuer, round).await;
        let state = issuer.state.lock();
        assert_eq!((state.reuses, state.is_revoked), (0, false), "round {round}");
    }
    assert_eq!(issuer.state.lock().calls, 22);
}

/// A refresh token that was used, and whose successor was not stored, signs the person out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v_375_a_process_that_ends_stores_the_tokens_it_asked_for() {
    let issuer = Issuer::start().await;
    let home = Home::new(&issuer, &json!({}));
    home.sign_in().await;
    // Long enough for the process to end meanwhile, also on a busy machine.
    let renewal_time = 8 * RENEWAL_TIME;
    issuer.state.lock().renewal_time = renewal_time;
    for round in 1..=3 {
        issuer.state.lock().accepted.clear();
        let renewing = format!(
            "tools.remote.ping({{}}).catch(() => {{}});
             while (await (await fetch('{}/refreshes')).json() < {round}) {{
                 await new Promise((done) => setTimeout(done, 20));
             }}",
            issuer.base
        );
        let host = issuer.base.strip_prefix("http://").unwrap();
        let mut command = home.cx(&["run", "--allow-net", host, "-e", &renewing]);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // The process is gone, and has used a refresh token.
        assert_eq!(issuer.state.lock().refreshes, round, "the run ends while its tokens are renewed");
        home.two_calls(&issuer, round).await;
        let state = issuer.state.lock();
        assert_eq!((state.refreshes, state.reuses), (round, 0), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v_354_the_most_detailed_log_has_no_secret_of_a_sign_in() {
    let issuer = Issuer::start().await;
    let oauth = json!({
        "clientId": "robot", "clientSecret": "hush-1234", "issuer": issuer.base, "clientCredentials": true,
    });
    let home = Home::new(&issuer, &oauth);
    for log in ["trace", "trace,rmcp::transport::auth=trace"] {
        issuer.state.lock().accepted.clear();
        let mut command = home.cx(&["run", "-e", "return await tools.remote.ping({})"]);
        let child = command.env("CX_LOG", log).spawn().unwrap();
        let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "\"pong\"", "{said}");
        assert!(said.contains("DEBUG") && said.contains("TRACE"), "the log is on: {said}");
        for secret in ["hush-1234", "identity-1234", "access-", "refresh-1", "refresh-2"] {
            let line = said.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{secret} with CX_LOG={log}");
        }
    }
}
