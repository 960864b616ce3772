//! Several processes that renew or end one sign-in.

use super::*;

/// Waits until the authorization server has begun a renewal.
async fn renewing(issuer: &Issuer) {
    for _ in 0..10_000 {
        if issuer.refreshes.load(Ordering::SeqCst) > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("no renewal was sent");
}

/// Threat 717. The authorization server answers at once, and not with tokens.
#[tokio::test]
async fn v_717_renewals_that_fail_are_spaced_and_a_new_sign_in_waits_for_none() {
    // Tokens of this lifetime have to be renewed before they are used.
    let issuer = Issuer::start(5).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    let authorization = authorization(&server, &directory);
    let McpTransport::Http(http) = &server.transport else { unreachable!() };
    let mut other = issuer.truth();
    other["issuer"] = json!("https://example.com");
    *issuer.metadata.lock() = Some(other);
    issuer.lookups.store(0, Ordering::SeqCst);
    let began = Instant::now();
    let first = authorization.token(&http.url).await.err().unwrap();
    let each = issuer.lookups.load(Ordering::SeqCst);
    assert!(each > 0, "{}", first.message);
    for _ in 0..20 {
        let error = authorization.token(&http.url).await.err().unwrap();
        assert!(error.message.starts_with(&first.message), "{}", error.message);
    }
    // A busy machine may take longer than a pause.
    let max = each * (1 + usize::try_from(began.elapsed().as_secs()).unwrap());
    let lookups = issuer.lookups.load(Ordering::SeqCst);
    assert!(lookups <= max, "{lookups} requests for 21 calls, at most {max}");
    *issuer.metadata.lock() = None;
    signed_in(&server, &directory).await;
    issuer.lifetime.store(3600, Ordering::Relaxed);
    let token = authorization.token(&http.url).await.unwrap().unwrap();
    assert_eq!(token.header(), format!("Bearer {}", issuer.current()));
}

#[tokio::test]
async fn v_352_of_concurrent_renewals_one_is_sent() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    expire(&server, &directory).await;
    // This simulates several processes: each has its own lock and its own memory.
    let tokens = futures::future::join_all((0..8).map(|_| token_of(&server, &directory))).await;
    for token in tokens {
        assert_eq!(token.unwrap().unwrap().header(), format!("Bearer {}", issuer.current()));
    }
    assert_eq!(issuer.refreshes.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn v_353_a_renewal_under_way_undoes_no_sign_out() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    expire(&server, &directory).await;
    let tokens = store(&server, &directory);
    let signing_out = async {
        renewing(&issuer).await;
        logout_with(&server, &tokens).await.unwrap();
    };
    let (renewed, ()) = tokio::join!(token_of(&server, &directory), signing_out);
    assert!(renewed.unwrap().is_some());
    assert!(store(&server, &directory).load().await.is_none());
}

#[tokio::test]
async fn v_353_a_renewal_under_way_undoes_no_sign_in() {
    let issuer = Issuer::start(3600).await;
    let (server, directory) = (issuer.server(), TempDir::new().unwrap());
    signed_in(&server, &directory).await;
    expire(&server, &directory).await;
    // The renewal takes longer than a sign-in, so that they overlap.
    *issuer.renewal_time.lock() = Some(Duration::from_secs(1));
    let signing_in = async {
        renewing(&issuer).await;
        signed_in(&server, &directory).await;
    };
    let (_renewed, ()) = tokio::join!(token_of(&server, &directory), signing_in);
    assert_eq!(*issuer.grants.lock(), ["authorization_code", "refresh_token", "authorization_code"]);
    let stored = stored_text(&server, &directory).await;
    assert!(stored.contains(&format!("\"{}\"", issuer.current())), "{stored}");
}
