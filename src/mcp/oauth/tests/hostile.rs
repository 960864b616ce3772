//! Servers whose metadata sends secrets elsewhere, and processes that renew one sign-in.

use axum::http::{Method, Request};

use super::*;
use crate::mcp::oauth::authorization::Token;
use crate::mcp::oauth::discovery::{Discovered, discover};
use crate::mcp::oauth::issuer::{Binding, Endpoints, IssuerError};
use crate::mcp::oauth::login::logout_with;
use crate::mcp::oauth::tokens::{BoundCredentials, secret};
use crate::mcp::oauth::unattended::client_credentials;

mod renewals;

/// An attacker's site: answers every GET with one document, and records the requests.
#[derive(Default)]
struct Site {
    base: String,
    document: Mutex<Value>,
    /// Method, URL with headers, and body of each request.
    requests: Mutex<Vec<(Method, String, String)>>,
}

impl Site {
    async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let site = Arc::new(Self { base, ..Self::default() });
        let router = Router::new().fallback(note).with_state(Arc::clone(&site));
        tokio::spawn(axum::serve(listener, router).into_future());
        site
    }

    /// Metadata in which only the token endpoint is false.
    fn forged(&self, honest: &Issuer) -> Value {
        let mut document = honest.truth();
        document["token_endpoint"] = json!(format!("{}/token", self.base));
        document
    }

    /// The site's own metadata, which is true.
    fn own(&self) -> Value {
        let base = &self.base;
        json!({
            "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
            "code_challenge_methods_supported": ["S256"],
        })
    }

    fn serve(&self, document: Value) {
        *self.document.lock() = document;
    }

    /// Checks that nothing was posted, and that no request contains a secret.
    fn got_nothing(&self, case: &str) {
        let requests = self.requests.lock();
        assert!(requests.iter().all(|(method, _, _)| method == Method::GET), "{case}: {requests:?}");
        let all = format!("{requests:?}");
        for secret in ["hush", "refresh-", "token-", "the-code"] {
            assert!(!all.contains(secret), "{case}: {all}");
        }
    }
}

async fn note(State(site): State<Arc<Site>>, request: Request<Body>) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let text = format!("{} {:?}", head.uri, head.headers);
    site.requests.lock().push((head.method.clone(), text, String::from_utf8_lossy(&body).into_owned()));
    if head.method == Method::GET {
        return answer(StatusCode::OK, site.document.lock().clone());
    }
    answer(
        StatusCode::OK,
        json!({
            "access_token": "stolen", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "stolen",
            "client_id": "stolen", "redirect_uris": ["http://127.0.0.1/callback"],
        }),
    )
}

/// Makes the server name other authorization servers.
fn name(issuer: &Issuer, servers: &[String]) {
    let resource = issuer.resource();
    *issuer.resource.lock() = Some(json!({ "resource": resource, "authorization_servers": servers }));
}

/// Paths at which a site can put a document that names an honest issuer.
const PLACES: &[&str] = &[
    "",
    "/",
    "/tenant",
    "/x/.well-known/anything",
    "/.well-known/anything",
    "/.well-known/",
    "/x/.well-known/oauth-authorization-server",
    "/x/.well-known/oauth-authorization-server/y",
    "/x/.well-known/openid-configuration",
    "/x/.well-known/openid-configuration/y",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-authorization-server/x",
    "/.well-known/oauth-authorization-server?x=/.well-known/",
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/x",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-authorization-serverx",
];

/// Makes the stored token expire, so that the next request renews it.
async fn expire(server: &McpServer, directory: &TempDir) {
    rewrite(server, directory, |text| text.replace("\"expires_in\":3600", "\"expires_in\":1")).await;
}

async fn stored_text(server: &McpServer, directory: &TempDir) -> String {
    serde_json::to_string(&store(server, directory).load().await.unwrap()).unwrap()
}

async fn token_of(server: &McpServer, directory: &TempDir) -> Result<Option<Token>, ToolError> {
    let McpTransport::Http(http) = &server.transport else { unreachable!() };
    authorization(server, directory).token(&http.url).await
}

fn with_oauth(mut server: McpServer, oauth: OAuth) -> McpServer {
    if let McpTransport::Http(http) = &mut server.transport {
        http.oauth = Some(oauth);
    }
    server
}

/// A manually registered client, as in the configuration.
fn robot(issuer: Option<String>) -> OAuth {
    OAuth {
        client_id: Some("robot".to_owned()),
        client_secret: Some("hush".to_owned()),
        issuer,
        ..OAuth::default()
    }
}

async fn refused_login(server: &McpServer, directory: &TempDir, case: &str) -> String {
    let signing_in =
        login_with(server, store(server, directory), &[], |address| panic!("{case}: opened {address}"));
    signing_in.await.err().unwrap_or_else(|| panic!("{case}: signed in")).to_string()
}

#[tokio::test]
async fn v_342_forged_metadata_gets_no_code() {
    let (honest, evil) = (Issuer::start(3600).await, Site::start().await);
    let directory = TempDir::new().unwrap();
    let issuer = honest.base.lock().clone();
    let host = issuer.strip_prefix("http://").unwrap().to_owned();
    let honest_issuer = json!(issuer);
    let others = [
        json!(format!("{issuer}/")),
        json!(null),
        json!(format!("HTTP://{host}")),
        json!(format!("{}/@{host}", evil.base)),
        json!(format!("{issuer}@{}", evil.base.strip_prefix("http://").unwrap())),
    ];
    let mut cases: Vec<(&str, &Value)> = PLACES.iter().map(|place| (*place, &honest_issuer)).collect();
    for said in &others {
        cases.extend([("", said), ("/x/.well-known/anything", said)]);
    }
    for oauth in [OAuth::default(), robot(Some(issuer.clone()))] {
        let server = with_oauth(honest.server(), oauth);
        for (place, said) in &cases {
            name(&honest, &[format!("{}{place}", evil.base)]);
            let mut document = evil.forged(&honest);
            document["issuer"] = (*said).clone();
            evil.serve(document);
            let case = format!("{place} {said}");
            refused_login(&server, &directory, &case).await;
            evil.got_nothing(&case);
        }
    }
    assert!(honest.forms.lock().is_empty());
    assert!(!evil.requests.lock().is_empty());
}

#[tokio::test]
async fn v_343_forged_metadata_gets_no_refresh_token() {
    let (honest, evil) = (Issuer::start(3600).await, Site::start().await);
    let issuer = honest.base.lock().clone();
    for oauth in [OAuth::default(), robot(Some(issuer))] {
        let (server, directory) = (with_oauth(honest.server(), oauth), TempDir::new().unwrap());
        signed_in(&server, &directory).await;
        expire(&server, &directory).await;
        let before = stored_text(&server, &directory).await;
        evil.serve(evil.forged(&honest));
        for place in PLACES {
            name(&honest, &[format!("{}{place}", evil.base)]);
            let refused = token_of(&server, &directory).await;
            let error = refused.err().unwrap_or_else(|| panic!("{place}"));
            assert_eq!(error.code, ToolErrorCode::UpstreamUnavailable, "{place}: {}", error.message);
            evil.got_nothing(place);
            assert_eq!(stored_text(&server, &directory).await, before, "{place}");
        }
        // The server is correct again, and no sign-in is necessary.
        *honest.resource.lock() = None;
        let token = token_of(&server, &directory).await.unwrap().unwrap();
        assert_eq!(token.header(), format!("Bearer {}", honest.current()));
    }
}

#[tokio::test]
async fn v_344_another_authorization_server_needs_a_new_sign_in() {
    let (first, second) = (Issuer::start(3600).await, Issuer::start(3600).await);
    let (server, directory) = (first.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    expire(&server, &directory).await;
    let before = stored_text(&server, &directory).await;
    // Its metadata is valid, but it is another issuer.
    let other = second.base.lock().clone();
    *second.other_resource.lock() = Some(first.resource());
    name(&first, std::slice::from_ref(&other));
    for _ in 0..2 {
        let error = token_of(&server, &directory).await.err().unwrap();
        for part in ["sign in again: run `cx auth login s`", other.as_str(), first.base.lock().as_str()] {
            assert!(error.message.contains(part), "{part}: {}", error.message);
        }
        assert!(second.forms.lock().is_empty() && second.registrations.load(Ordering::Relaxed) == 0);
        assert_eq!(stored_text(&server, &directory).await, before);
    }
    // A user who accepts the change signs in, and the sign-in is bound to the other issuer from
    // then on.
    login_with(&server, store(&server, &directory), &[], |address| drop(browser(address))).await.unwrap();
    expire(&server, &directory).await;
    let token = token_of(&server, &directory).await.unwrap().unwrap();
    assert_eq!(token.header(), format!("Bearer {}", second.current()));
    *first.resource.lock() = None;
    expire(&server, &directory).await;
    let error = token_of(&server, &directory).await.err().unwrap();
    assert!(error.message.contains("cx auth login s"), "{}", error.message);
}

#[tokio::test]
async fn v_344_a_server_without_metadata_is_not_the_authorization_server_it_had() {
    let (server_only, other) = (Issuer::start(3600).await, Issuer::start(3600).await);
    let (server, directory) = (server_only.server(), TempDir::new().unwrap());
    *other.other_resource.lock() = Some(server_only.resource());
    name(&server_only, &[other.base.lock().clone()]);
    signed_in(&server, &directory).await;
    expire(&server, &directory).await;
    // Discovery finds nothing any more, so the endpoints would be the server's own.
    *server_only.resource.lock() = Some(json!({}));
    *server_only.metadata.lock() = Some(json!({}));
    let error = token_of(&server, &directory).await.err().unwrap();
    assert!(error.message.contains("sign in again"), "{}", error.message);
    assert!(server_only.forms.lock().is_empty());
    assert!(store(&server, &directory).load().await.as_ref().and_then(secret).is_some());
}

#[tokio::test]
async fn v_345_a_token_endpoint_that_has_moved_needs_a_new_sign_in() {
    let (honest, evil) = (Issuer::start(3600).await, Site::start().await);
    let (server, directory) = (honest.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    expire(&server, &directory).await;
    *honest.metadata.lock() = Some(evil.forged(&honest));
    let error = token_of(&server, &directory).await.err().unwrap();
    for part in ["moved its token endpoint", "sign in again: run `cx auth login s`", evil.base.as_str()] {
        assert!(error.message.contains(part), "{part}: {}", error.message);
    }
    evil.got_nothing("moved");
    assert!(evil.requests.lock().is_empty());
    // Within the origin the endpoint may change.
    let mut moved = honest.truth();
    moved["token_endpoint"] = json!(format!("{}/token?version=2", honest.base.lock()));
    *honest.metadata.lock() = Some(moved);
    assert!(token_of(&server, &directory).await.unwrap().is_some());
}

#[tokio::test]
async fn v_346_a_secret_without_an_issuer_is_sent_nowhere() {
    let honest = Issuer::start(3600).await;
    for client_credentials in [false, true] {
        let directory = TempDir::new().unwrap();
        let server = with_oauth(honest.server(), OAuth { client_credentials, ..robot(None) });
        let problem = refused_login(&server, &directory, "no issuer").await;
        assert!(problem.contains("`oauth.issuer`"), "{problem}");
        if client_credentials {
            let error = token_of(&server, &directory).await.err().unwrap();
            assert!(error.message.contains("`oauth.issuer`"), "{}", error.message);
        }
    }
    assert!(honest.forms.lock().is_empty());
}

#[tokio::test]
async fn v_347_a_secret_goes_to_the_configured_issuer_only() {
    let (honest, evil) = (Issuer::start(3600).await, Site::start().await);
    let issuer = honest.base.lock().clone();
    for client_credentials in [false, true] {
        let directory = TempDir::new().unwrap();
        let oauth = OAuth { client_credentials, ..robot(Some(issuer.clone())) };
        let server = with_oauth(honest.server(), oauth);
        for (place, document) in [("", evil.own()), ("/x/.well-known/anything", evil.forged(&honest))] {
            name(&honest, &[format!("{}{place}", evil.base)]);
            evil.serve(document);
            let problem = refused_login(&server, &directory, place).await;
            assert!(!place.is_empty() || problem.contains("as `oauth.issuer` says"), "{problem}");
            if client_credentials {
                let error = token_of(&server, &directory).await.err().unwrap();
                assert!(
                    !place.is_empty() || error.message.contains("change `oauth.issuer`"),
                    "{}",
                    error.message
                );
            }
            evil.got_nothing(place);
        }
        assert!(honest.forms.lock().is_empty());
        // If it is named among others, it is the one that is used.
        name(&honest, &[evil.base.clone(), issuer.clone()]);
        login_with(&server, store(&server, &directory), &[], |address| drop(browser(address))).await.unwrap();
        assert_eq!(honest.forms.lock().drain(..).next().unwrap()["client_secret"], "hush");
        evil.got_nothing("named as well");
        // A stored sign-in is used only if it is bound to the configured issuer.
        let other = OAuth { issuer: Some(evil.base.clone()), ..robot(None) };
        assert!(token_of(&with_oauth(honest.server(), other), &directory).await.unwrap().is_none());
        assert!(token_of(&server, &directory).await.unwrap().is_some());
    }
}

/// An impostor's authorization server that sends the user to the true one.
#[tokio::test]
async fn v_348_a_registered_client_is_not_used_to_get_a_code_for_another_server() {
    let (honest, evil, third) = (Issuer::start(3600).await, Site::start().await, Site::start().await);
    let directory = TempDir::new().unwrap();
    let oauth = OAuth { client_id: Some("robot".to_owned()), ..OAuth::default() };
    let server = with_oauth(honest.server(), oauth.clone());
    name(&honest, std::slice::from_ref(&evil.base));
    let mut mixed = evil.own();
    mixed["authorization_endpoint"] = honest.truth()["authorization_endpoint"].clone();
    for token in [&evil.base, &third.base] {
        mixed["token_endpoint"] = json!(format!("{token}/token"));
        evil.serve(mixed.clone());
        let problem = refused_login(&server, &directory, token).await;
        assert!(problem.contains("set `oauth.issuer` to"), "{problem}");
    }
    // The authorization endpoint has the origin of the issuer or of the token endpoint, as with
    // real issuers.
    let origins = |authorization: &str, token: &str| Endpoints {
        issuer: None,
        authorization_endpoint: format!("https://{authorization}/authorize"),
        token_endpoint: format!("https://{token}/token"),
        registration_endpoint: None,
    };
    assert!(origins("a.example", "b.example").check_mix_up("https://a.example").is_ok());
    assert!(origins("b.example", "b.example").check_mix_up("https://a.example").is_ok());
    assert!(origins("a.example:8443", "b.example").check_mix_up("https://a.example").is_err());
}

#[tokio::test]
async fn v_349_no_redirect_takes_a_secret_along() {
    let (honest, evil) = (Issuer::start(3600).await, Site::start().await);
    let (server, directory) = (honest.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    expire(&server, &directory).await;
    evil.serve(evil.own());
    for target in [format!("{}/token", evil.base), format!("{}/elsewhere", honest.base.lock())] {
        *honest.token_redirect.lock() = Some(target);
        assert!(token_of(&server, &directory).await.is_err());
    }
    evil.got_nothing("redirected token request");
    assert!(evil.requests.lock().is_empty());
    let fresh = TempDir::new().unwrap();
    let signing_in = login_with(&server, store(&server, &fresh), &[], |address| drop(browser(address)));
    assert!(signing_in.await.is_err());
    assert!(evil.requests.lock().is_empty());
    assert!(store(&server, &directory).load().await.as_ref().and_then(secret).is_some());
}

/// This includes requests that rmcp would send by mistake.
#[tokio::test]
async fn v_349_nothing_is_posted_but_to_the_endpoints_that_were_checked() {
    let (honest, evil) = (Issuer::start(3600).await, Site::start().await);
    let (server, directory) = (honest.server(), TempDir::new().unwrap());
    let McpTransport::Http(transport) = &server.transport else { unreachable!() };
    let Discovered { mut manager, mut endpoints, .. } =
        discover(&transport.url, &OAuth::default(), None).await.unwrap();
    endpoints.token_endpoint = format!("{}/token", evil.base);
    let mut forged = honest.truth();
    forged["token_endpoint"] = json!(endpoints.token_endpoint);
    manager.set_metadata(serde_json::from_value(forged).unwrap());
    let lock = Arc::new(store(&server, &directory).lock().await.unwrap());
    let binding = Binding { issuer: String::new(), token_origin: String::new() };
    let tokens = store(&server, &directory);
    manager.set_credential_store(BoundCredentials { tokens, binding, lock: Some(lock), key: None });
    let config = OAuth { client_credentials: true, ..robot(None) };
    assert!(client_credentials(&mut manager, &transport.url, &config).await.is_err());
    assert!(evil.requests.lock().is_empty());
}

#[tokio::test]
async fn v_350_a_list_of_authorization_servers_is_not_asked_to_its_end() {
    let (honest, evil) = (Issuer::start(3600).await, Site::start().await);
    let directory = TempDir::new().unwrap();
    // There is no document, so every location of every server would be tried.
    evil.serve(json!({}));
    let many: Vec<String> = (0..500).map(|number| format!("{}/{number}", evil.base)).collect();
    name(&honest, &many);
    let problem = refused_login(&honest.server(), &directory, "many").await;
    assert!(problem.contains("requests"), "{problem}");
    assert!(evil.requests.lock().len() <= 32);
}

#[tokio::test]
async fn v_350_metadata_is_small() {
    let (honest, evil) = (Issuer::start(3600).await, Site::start().await);
    let directory = TempDir::new().unwrap();
    name(&honest, std::slice::from_ref(&evil.base));
    for (entries, fits) in [(1_000, true), (10_000, false)] {
        let mut large = evil.own();
        large["scopes_supported"] = json!(vec![json!({ "": 0 }); entries]);
        evil.serve(large);
        let problem = refused_login(&honest.server(), &directory, "large").await;
        assert_eq!(problem.contains("larger than 65536 bytes"), !fits, "{problem}");
    }
}

#[tokio::test]
async fn v_351_metadata_of_another_resource_is_not_this_servers() {
    let (honest, evil) = (Issuer::start(3600).await, Site::start().await);
    evil.serve(evil.own());
    let base = honest.base.lock().clone();
    for resource in [
        json!("https://other.example/mcp"),
        json!(base.replace("127.0.0.1", "localhost") + "/mcp"),
        json!(format!("{base}/mc")),
        json!(format!("{base}/mcp/more")),
        json!(format!("{base}/MCP")),
        json!(format!("{base}/mcp#x")),
        json!(null),
    ] {
        let directory = TempDir::new().unwrap();
        *honest.resource.lock() = Some(json!({ "resource": resource, "authorization_servers": [evil.base] }));
        // The document is ignored; the authorization server at the URL itself is used.
        signed_in(&honest.server(), &directory).await;
        assert!(evil.requests.lock().is_empty(), "{resource}");
    }
}

#[test]
fn errors_name_what_was_expected() {
    let error = IssuerError::Changed { found: "https://a".to_owned(), expected: "https://b".to_owned() };
    let text = error.to_string();
    assert!(text.contains("`https://a`") && text.contains("`https://b`"), "{text}");
}
