//! Signing in as the client itself: with a secret, with a private key, and with a file.

use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};

use super::*;

fn with_secret(issuer: &Issuer) -> McpServer {
    let mut server = issuer.server();
    if let McpTransport::Http(http) = &mut server.transport {
        http.oauth = Some(OAuth {
            client_id: Some("robot".to_owned()),
            client_secret: Some("hush".to_owned()),
            client_credentials: true,
            issuer: Some(issuer.base.lock().clone()),
            ..OAuth::default()
        });
    }
    server
}

#[tokio::test]
async fn a_client_signs_in_as_itself() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (with_secret(&issuer), TempDir::new().unwrap());
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    call(&running).await.unwrap();
    assert_eq!(issuer.forms.lock().len(), 1);
    // If the server no longer accepts the token, another one is requested.
    issuer.number.fetch_add(1, Ordering::SeqCst);
    call(&running).await.unwrap();
    assert_eq!(issuer.forms.lock().len(), 2);
}

/// Threat 659. The authorization server may be another party's, and an identity provider may be asked before it.
#[tokio::test]
async fn v_659_a_server_that_accepts_each_token_once_does_not_make_each_call_a_sign_in() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (with_secret(&issuer), TempDir::new().unwrap());
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    call(&running).await.unwrap();
    issuer.number.fetch_add(1, Ordering::SeqCst);
    call(&running).await.unwrap();
    assert_eq!(issuer.forms.lock().len(), 2);
    // The token of the last renewal is not accepted any more either.
    issuer.number.fetch_add(1, Ordering::SeqCst);
    for _ in 0..3 {
        let error = call(&running).await.unwrap_err();
        assert_eq!(error.code, ToolErrorCode::UpstreamUnavailable);
        assert!(error.message.contains("is not renewed again"), "{}", error.message);
        assert!(error.retry_after.is_some());
    }
    assert_eq!(issuer.forms.lock().len(), 2);
    // It stays in use.
    issuer.number.fetch_sub(1, Ordering::SeqCst);
    call(&running).await.unwrap();
    assert_eq!((issuer.forms.lock().len(), issuer.calls.load(Ordering::SeqCst)), (2, 3));
}

/// Threat 716.
#[tokio::test]
async fn v_716_tokens_that_expire_at_once_do_not_make_each_call_a_sign_in() {
    let issuer = Issuer::start(1).await;
    let (server, directory) = (with_secret(&issuer), TempDir::new().unwrap());
    let began = Instant::now();
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    for _ in 0..50 {
        call(&running).await.unwrap();
    }
    // A busy machine may take longer than a token is used.
    let max = 1 + usize::try_from(began.elapsed().as_secs() / 5).unwrap();
    let sign_ins = issuer.forms.lock().len();
    assert!(sign_ins <= max, "{sign_ins} sign-ins for 50 calls, at most {max}");
}

/// Whether the key has signed the assertion of a form.
pub(super) fn is_signed(form: &HashMap<String, String>, key: &[u8]) -> bool {
    let Some((signed, signature)) = form["client_assertion"].rsplit_once('.') else { return false };
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key);
    form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        && key.verify(signed.as_bytes(), &signature).is_ok()
}

/// A new key as text, and its public part.
pub(super) fn new_key() -> (String, Vec<u8>) {
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random).unwrap();
    let text = STANDARD.encode(key.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
    (pem, pair.public_key().as_ref().to_vec())
}

fn with_key(issuer: &Issuer, pem: &str) -> McpServer {
    let mut server = issuer.server();
    if let McpTransport::Http(http) = &mut server.transport {
        http.oauth = Some(OAuth {
            client_id: Some("robot".to_owned()),
            private_key: Some(pem.to_owned()),
            client_credentials: true,
            issuer: Some(issuer.base.lock().clone()),
            scopes: vec!["read".to_owned(), "write".to_owned()],
            ..OAuth::default()
        });
    }
    server
}

/// The claims of an assertion that the key has signed.
fn verified(assertion: &str, public: &[u8]) -> Value {
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public).verify(signed.as_bytes(), &signature).unwrap();
    let parts: Vec<Value> = signed
        .split('.')
        .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
        .collect();
    assert_eq!(parts[0], json!({ "alg": "ES256", "typ": "JWT" }));
    parts[1].clone()
}

#[tokio::test]
async fn a_client_signs_in_with_its_key() {
    let issuer = Issuer::start(3600).await;
    let (pem, public) = new_key();
    *issuer.key.lock() = Some(public.clone());
    // As a variable of the environment has it.
    for pem in [pem.clone(), pem.replace('\n', "\\n")] {
        let (server, directory) = (with_key(&issuer, &pem), TempDir::new().unwrap());
        let running = connect(&server, authorization(&server, &directory)).await.unwrap();
        call(&running).await.unwrap();
        // If the server no longer accepts the token, another one is requested, with another assertion.
        issuer.number.fetch_add(1, Ordering::SeqCst);
        call(&running).await.unwrap();
        let forms: Vec<_> = issuer.forms.lock().drain(..).collect();
        assert_eq!(forms.len(), 2);
        let claims: Vec<Value> =
            forms.iter().map(|form| verified(&form["client_assertion"], &public)).collect();
        for (form, claims) in forms.iter().zip(&claims) {
            assert_eq!(
                (form["grant_type"].as_str(), form["scope"].as_str()),
                ("client_credentials", "read write")
            );
            assert!(form["client_id"] == "robot" && !form.contains_key("client_secret"), "{form:?}");
            let base = issuer.base.lock().clone();
            assert_eq!(
                (&claims["iss"], &claims["sub"], &claims["aud"]),
                (&json!("robot"), &json!("robot"), &json!(base))
            );
            assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 60);
        }
        assert_ne!(claims[0]["jti"], claims[1]["jti"]);
    }
}

/// Threat 626.
#[tokio::test]
async fn v_626_a_key_and_what_it_signs_reach_no_other_authorization_server() {
    let (issuer, other) = (Issuer::start(3600).await, Issuer::start(3600).await);
    let (pem, public) = new_key();
    *other.key.lock() = Some(public);
    // The server names another authorization server than the configured one.
    let base = other.base.lock().clone();
    *issuer.resource.lock() =
        Some(json!({ "resource": format!("{}/mcp", issuer.base.lock()), "authorization_servers": [base] }));
    let (server, directory) = (with_key(&issuer, &pem), TempDir::new().unwrap());
    let error = connect(&server, authorization(&server, &directory)).await.err().unwrap();
    assert!(!error.message.contains("PRIVATE KEY"), "{}", error.message);
    assert!(other.forms.lock().is_empty());
    // Without an issuer nothing is sent at all.
    let mut server = with_key(&other, &pem);
    if let McpTransport::Http(http) = &mut server.transport {
        http.oauth = http.oauth.take().map(|oauth| OAuth { issuer: None, ..oauth });
    }
    let directory = TempDir::new().unwrap();
    let error = connect(&server, authorization(&server, &directory)).await.err().unwrap();
    assert!(error.message.contains("need `oauth.issuer`"), "{}", error.message);
    assert!(other.forms.lock().is_empty());
}

#[tokio::test]
async fn a_key_that_the_authorization_server_does_not_know_is_refused() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (with_key(&issuer, &new_key().0), TempDir::new().unwrap());
    *issuer.key.lock() = Some(new_key().1);
    let error = connect(&server, authorization(&server, &directory)).await.err().unwrap();
    assert!(error.message.contains("answers 401: invalid_client"), "{}", error.message);
    assert!(!error.message.contains("PRIVATE KEY"), "{}", error.message);
}

fn with_file(issuer: &Issuer, file: &std::path::Path) -> McpServer {
    let mut server = issuer.server();
    if let McpTransport::Http(http) = &mut server.transport {
        http.oauth = Some(OAuth {
            assertion_file: Some(file.to_owned()),
            client_credentials: true,
            issuer: Some(issuer.base.lock().clone()),
            ..OAuth::default()
        });
    }
    server
}

#[tokio::test]
async fn a_workload_signs_in_with_what_is_in_its_file_now() {
    let issuer = Issuer::start(3600).await;
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("token");
    let server = with_file(&issuer, &file);
    std::fs::write(&file, "for-cx.first.signature\n").unwrap();
    let running = connect(&server, authorization(&server, &directory)).await.unwrap();
    call(&running).await.unwrap();
    std::fs::write(&file, "for-cx.second.signature\n").unwrap();
    issuer.number.fetch_add(1, Ordering::SeqCst);
    call(&running).await.unwrap();
    let forms: Vec<_> = issuer.forms.lock().drain(..).collect();
    let sent: Vec<&str> = forms.iter().map(|form| form["assertion"].as_str()).collect();
    assert_eq!(sent, ["for-cx.first.signature", "for-cx.second.signature"]);
}

/// Threat 627.
#[tokio::test]
async fn v_627_a_file_that_has_no_assertion_is_not_sent() {
    let issuer = Issuer::start(3600).await;
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    for (name, content) in [
        ("words", "password of root".to_owned()),
        // Its beginning has all three parts.
        ("large", format!("for-cx.payload.{}", "a".repeat(1 << 20))),
        ("unsigned", "header.payload.".to_owned()),
        ("split", "a.b c.d".to_owned()),
    ] {
        std::fs::write(path(name), content).unwrap();
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::RWXU).unwrap();
    for (name, problem) in [
        ("missing", "cannot be read"),
        ("pipe", "cannot be read: expected a regular file, found something else"),
        ("words", "expected a signed JSON Web Token"),
        ("large", "expected a signed JSON Web Token"),
        ("unsigned", "expected a signed JSON Web Token"),
        ("split", "expected a signed JSON Web Token"),
    ] {
        let server = with_file(&issuer, &path(name));
        let error = connect(&server, authorization(&server, &directory)).await.err().unwrap();
        assert!(error.message.contains(problem), "{name}: {}", error.message);
        assert!(!error.message.contains("password"), "{}", error.message);
    }
    assert!(issuer.forms.lock().is_empty());
}
