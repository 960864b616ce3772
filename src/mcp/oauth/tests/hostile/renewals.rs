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
