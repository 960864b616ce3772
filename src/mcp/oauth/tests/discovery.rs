//! Where servers put their metadata, the ids that clients have, and the scopes that they ask for.

use axum::http::Request;

use super::*;

/// A server with its authorization server, whose documents can be anywhere.
#[derive(Default)]
struct Place {
    base: String,
    documents: Mutex<HashMap<String, Value>>,
    /// What it says to a request without a token. Only to POST, as many servers do.
    challenge: Mutex<String>,
    /// Whether the handshake needs no token.
    opens_handshake: AtomicBool,
    /// The scope that calls need.
    needed: Mutex<Option<String>>,
    /// The parameters of each page to sign in at.
    pages: Mutex<Vec<HashMap<String, String>>>,
    registrations: AtomicUsize,
}

impl Place {
    async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let place = Arc::new(Self { base, ..Self::default() });
        let router = Router::new().fallback(answer_all).with_state(Arc::clone(&place));
        tokio::spawn(axum::serve(listener, router).into_future());
        place
    }

    fn server(&self) -> McpServer {
        McpServer::http("s", Url::parse(&format!("{}/mcp", self.base)).unwrap())
    }

    fn put(&self, path: &str, document: Value) {
        self.documents.lock().insert(path.to_owned(), document);
    }

    /// Metadata of the issuer at this path, with endpoints below `/oauth`.
    fn metadata(&self, issuer: &str) -> Value {
        let base = &self.base;
        json!({
            "issuer": format!("{base}{issuer}"), "authorization_endpoint": format!("{base}/oauth/authorize"),
            "token_endpoint": format!("{base}/oauth/token"),
            "registration_endpoint": format!("{base}/oauth/register"),
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        })
    }

    fn resource(&self, issuer: &str) -> Value {
        json!({ "resource": format!("{}/mcp", self.base), "authorization_servers": [format!("{}{issuer}", self.base)] })
    }

    /// Resource metadata and authorization server at the usual places.
    fn put_usual(&self) {
        self.put("/.well-known/oauth-protected-resource/mcp", self.resource(""));
        self.put("/.well-known/oauth-authorization-server", self.metadata(""));
    }

    /// The scopes that the last page asked for.
    fn scope(&self) -> String {
        self.pages.lock().last().and_then(|page| page.get("scope").cloned()).unwrap_or_default()
    }
}

fn with_challenge(status: StatusCode, challenge: &str) -> Response {
    let mut response = answer(status, json!({}));
    if !challenge.is_empty() {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge.parse().unwrap());
    }
    response
}

async fn answer_all(State(place): State<Arc<Place>>, request: Request<Body>) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let query = head.uri.query().unwrap_or_default().as_bytes();
    let query: HashMap<String, String> = url::form_urlencoded::parse(query).into_owned().collect();
    match (head.method.as_str(), head.uri.path()) {
        ("POST", "/mcp") => {
            let message: Value = serde_json::from_slice(&body).unwrap();
            let token =
                head.headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
            let method = message["method"].as_str().unwrap();
            let is_open = method == "initialize" && place.opens_handshake.load(Ordering::Relaxed);
            let result = match (token, method) {
                (None, _) if !is_open => {
                    return with_challenge(StatusCode::UNAUTHORIZED, &place.challenge.lock());
                }
                (_, "initialize") => json!({
                    "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                    "serverInfo": { "name": "fake", "version": "1" },
                }),
                (Some(token), "tools/call") => {
                    let needed = place.needed.lock().clone();
                    // A token is the list of its scopes.
                    if let Some(needed) = needed.filter(|needed| !token.contains(needed.as_str())) {
                        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\"");
                        return with_challenge(StatusCode::FORBIDDEN, &challenge);
                    }
                    json!({ "content": [{ "type": "text", "text": "done" }] })
                }
                _ => return answer(StatusCode::ACCEPTED, json!({})),
            };
            answer(StatusCode::OK, json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
        }
        ("POST", "/oauth/register") => {
            place.registrations.fetch_add(1, Ordering::Relaxed);
            let asked: Value = serde_json::from_slice(&body).unwrap();
            let registered = json!({ "client_id": "registered", "redirect_uris": asked["redirect_uris"] });
            answer(StatusCode::CREATED, registered)
        }
        ("GET", "/oauth/authorize") => {
            let mut back = Url::parse(&query["redirect_uri"]).unwrap();
            back.query_pairs_mut().append_pair("code", "the-code").append_pair("state", &query["state"]);
            place.pages.lock().push(query);
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::FOUND;
            response.headers_mut().insert(header::LOCATION, back.as_str().parse().unwrap());
            response
        }
        ("POST", "/oauth/token") => {
            let scope = place.scope();
            let token = format!("scopes-{}", scope.replace(' ', "-"));
            answer(
                StatusCode::OK,
                json!({ "access_token": token, "token_type": "Bearer", "expires_in": 3600, "scope": scope }),
            )
        }
        ("GET", path) => match place.documents.lock().get(path) {
            Some(document) => answer(StatusCode::OK, document.clone()),
            None => answer(StatusCode::NOT_FOUND, json!({})),
        },
        _ => answer(StatusCode::NOT_FOUND, json!({})),
    }
}

/// The metadata of the resource is where only the refusal of a POST says, and that of the authorization
/// server where OpenID Connect puts it.
#[tokio::test]
async fn metadata_is_found_where_a_refusal_says() {
    let place = Place::start().await;
    place.put("/custom/place.json", place.resource("/tenant"));
    place.put("/tenant/.well-known/openid-configuration", place.metadata("/tenant"));
    *place.challenge.lock() = format!("Bearer resource_metadata=\"{}/custom/place.json\"", place.base);
    let (server, directory) = (place.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let stored = store(&server, &directory).load().await.unwrap();
    assert_eq!(stored.binding.issuer, format!("{}/tenant", place.base));
    call(&connect(&server, authorization(&server, &directory)).await.unwrap()).await.unwrap();
}

/// Revision 2025-03-26: there is no metadata of the resource, and that of the authorization server is at
/// the root of the server.
#[tokio::test]
async fn metadata_at_the_root_of_the_server_is_its_own() {
    let place = Place::start().await;
    place.put("/.well-known/oauth-authorization-server", place.metadata(""));
    let (server, directory) = (place.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    assert_eq!(store(&server, &directory).load().await.unwrap().binding.issuer, place.base);
    assert_eq!(place.registrations.load(Ordering::Relaxed), 1);
    // A document there that names another issuer proves nothing (RFC 8414, section 3.3).
    place.put("/.well-known/oauth-authorization-server", place.metadata("/oauth"));
    let fresh = TempDir::new().unwrap();
    let refused =
        login_with(&server, store(&server, &fresh), &[], |address| panic!("opened {address}")).await;
    assert!(refused.is_err());
}

#[tokio::test]
async fn a_client_id_metadata_document_is_preferred_where_it_is_taken() {
    let place = Place::start().await;
    place.put_usual();
    let document = "https://client.example/cx.json";
    let (mut server, directory) = (place.server(), TempDir::new().unwrap());
    if let McpTransport::Http(http) = &mut server.transport {
        http.oauth = Some(OAuth { client_metadata_url: Some(document.to_owned()), ..OAuth::default() });
    }
    // Not taken: the client is registered.
    signed_in(&server, &directory).await;
    assert_eq!(place.pages.lock().pop().unwrap()["client_id"], "registered");
    let mut metadata = place.metadata("");
    metadata["client_id_metadata_document_supported"] = true.into();
    place.put("/.well-known/oauth-authorization-server", metadata.clone());
    signed_in(&server, &directory).await;
    assert_eq!(place.pages.lock().pop().unwrap()["client_id"], document);
    assert_eq!(place.registrations.load(Ordering::Relaxed), 1);
    // The id is the same everywhere, so a code of one authorization server could be meant for another.
    metadata["authorization_endpoint"] = "https://honest.example/authorize".into();
    metadata["issuer"] = place.base.clone().into();
    metadata["token_endpoint"] = "https://attacker.example/token".into();
    place.put("/.well-known/oauth-authorization-server", metadata);
    let refused = login_with(&server, store(&server, &directory), &[], |address| panic!("opened {address}"));
    assert!(refused.await.unwrap_err().to_string().contains("set `oauth.issuer`"));
}

#[tokio::test]
async fn the_scopes_of_the_refusal_are_asked_for() {
    let place = Place::start().await;
    place.put_usual();
    *place.challenge.lock() = "Bearer scope=\"files:read\"".to_owned();
    let (server, directory) = (place.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    assert_eq!(place.scope(), "files:read");
    // Where the handshake is open to anybody, the list of tools is refused.
    place.opens_handshake.store(true, Ordering::Relaxed);
    *place.challenge.lock() =
        "Basic realm=\"x\", Bearer realm=\"scope=evil\", scope=\"files:list\"".to_owned();
    signed_in(&server, &directory).await;
    assert_eq!(place.scope(), "files:list");
}

/// A call needs a scope that was not granted. The error names it, the user signs in for it, and keeps
/// what was granted before; the connection that lacked it goes on.
#[tokio::test]
async fn a_second_sign_in_adds_the_scope_that_a_call_needs() {
    let place = Place::start().await;
    place.put_usual();
    *place.challenge.lock() = "Bearer scope=\"files:read\"".to_owned();
    *place.needed.lock() = Some("files:write".to_owned());
    let (server, directory) = (place.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    let error = call(&running).await.unwrap_err();
    assert!(error.message.ends_with("run `cx auth login s --scope files:write`"), "{}", error.message);
    let more = ["files:write".to_owned()];
    let signing_in = login_with(&server, store(&server, &directory), &more, |address| drop(browser(address)));
    signing_in.await.unwrap();
    assert_eq!(place.scope(), "files:read files:write");
    call(&running).await.unwrap();
}

/// The error's command is pasted into a shell, so it has nothing of the server's that a shell would read.
#[tokio::test]
async fn a_scope_is_no_command() {
    let place = Place::start().await;
    place.put_usual();
    let (server, directory) = (place.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    for scope in ["x;id", "$(id)", "a|b", "`id`", "--url", "a'b", "&", "a\tb", &"x".repeat(600)] {
        *place.needed.lock() = Some(scope.to_owned());
        let error = call(&running).await.unwrap_err();
        assert!(error.message.ends_with("run `cx auth login s --scope SCOPE`"), "{}", error.message);
    }
}
