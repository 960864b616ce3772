use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

use super::*;

/// The header and the claims of a proof, whose signature must be that of the key in it.
pub(in crate::mcp::oauth) fn opened(proof: &str) -> (Value, Value) {
    let (signed, signature) = proof.rsplit_once('.').unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let parse = |part: &str| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    let (header, claims) = (parse(header), parse(claims));
    let coordinate = |name: &str| URL_SAFE_NO_PAD.decode(header["jwk"][name].as_str().unwrap()).unwrap();
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
    key.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    (header, claims)
}

fn address(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn nonce(values: &[&str]) -> HeaderMap {
    values.iter().map(|value| (NONCE, HeaderValue::from_str(value).unwrap())).collect()
}

#[test]
fn a_proof_is_for_one_request_and_its_token() {
    let key = ProofKey::generate().unwrap();
    let url = address("https://user:password@example.com/mcp?secret=1#x");
    let proof = key.proof(&Method::POST, &url, Some("token")).unwrap();
    let (header, claims) = opened(proof.to_str().unwrap());
    assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
    let mut members: Vec<&str> = header["jwk"].as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(members, ["crv", "kty", "x", "y"], "no private part");
    assert_eq!((&claims["htm"], &claims["htu"]), (&json!("POST"), &json!("https://example.com/mcp")));
    assert_eq!(claims["ath"], URL_SAFE_NO_PAD.encode(digest(&SHA256, b"token")).as_str());
    assert!(claims["iat"].is_u64() && claims.get("nonce").is_none(), "{claims}");
    // Each has an id of its own, and one for a token endpoint has no token.
    let other = key.proof(&Method::POST, &url, None).unwrap();
    let (_, others) = opened(other.to_str().unwrap());
    assert_ne!(others["jti"], claims["jti"]);
    assert!(others.get("ath").is_none(), "{others}");
    assert!(proof.is_sensitive());
    // The stored key is the same key, and its text is in nothing that is printed.
    let read = ProofKey::read(&key.to_stored()).unwrap();
    assert_eq!(read.public, key.public);
    assert!(!format!("{key:?}").contains(&key.to_stored()));
    assert!(ProofKey::read("no key").is_none() && ProofKey::read("AAAA").is_none());
}

#[test]
fn a_nonce_is_for_the_server_that_gave_it_and_bounded() {
    let key = ProofKey::generate().unwrap();
    let (one, other) = (address("https://one.example/token"), address("https://other.example/mcp"));
    let of = |url: &Url| {
        let proof = key.proof(&Method::POST, url, None).unwrap();
        opened(proof.to_str().unwrap()).1["nonce"].clone()
    };
    assert!(key.take_nonce(&one, &nonce(&["first"])));
    assert_eq!((of(&one), of(&other)), (json!("first"), Value::Null));
    assert!(key.take_nonce(&one, &nonce(&["second"])));
    assert_eq!(of(&address("https://one.example/elsewhere")), "second");
    let long = "x".repeat(MAX_NONCE + 1);
    let unusable: [&[&str]; 6] =
        [&[], &[""], &["a b"], &["\"quoted\""], &["two", "values"], &[long.as_str()]];
    for unusable in unusable {
        assert!(!key.take_nonce(&one, &nonce(unusable)), "{unusable:?}");
    }
    assert_eq!(of(&one), "second");
    for number in 0..100 {
        key.take_nonce(&address(&format!("https://{number}.example/")), &nonce(&["n"]));
    }
    assert!(key.nonces.lock().len() <= MAX_ORIGINS);
}

#[test]
fn servers_say_in_their_challenges_what_they_want() {
    let challenge = |value: &str| {
        HeaderMap::from_iter([(
            http::header::WWW_AUTHENTICATE,
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        )])
    };
    for (value, offered, lacks_nonce) in [
        (r#"DPoP resource_metadata="https://example.com/x""#, true, false),
        (r#"Bearer realm="x", dpop algs="PS256 ES256""#, true, false),
        (r#"DPoP algs="PS256""#, false, false),
        (r#"DPoP error="use_dpop_nonce""#, true, true),
        (r#"DPoP error="use_dpop_nonce", error_description="Einmalwert benötigt""#, true, true),
        (r#"Bearer error="use_dpop_nonce""#, false, false),
        (r#"Bearer realm="DPoP error=use_dpop_nonce""#, false, false),
    ] {
        let headers = challenge(value);
        assert_eq!(is_offered(&headers), offered, "{value}");
        assert_eq!(asks_for_nonce(StatusCode::UNAUTHORIZED, &headers), lacks_nonce, "{value}");
        assert!(!asks_for_nonce(StatusCode::FORBIDDEN, &headers), "{value}");
    }
    assert!(lists_algorithm(&json!(["RS256", "ES256"])));
    assert!(!lists_algorithm(&json!(["RS256"])) && !lists_algorithm(&json!("ES256")));
}
