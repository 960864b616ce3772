//! When the tokens are looked at, on a clock that stands still.

use tokio::net::TcpListener;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::executor::Executor;
use crate::server::{HttpOptions, Server, ServerOptions, TokenReading};

/// A revoked token has to count at once, also if one was revoked just before.
#[tokio::test(start_paused = true)]
async fn v_544_the_end_of_what_a_token_has_begun_delays_no_other_change() {
    let list = |text: &str| HttpTenant::list(text).unwrap();
    let (looked, mut looks) = unbounded_channel();
    let lists = parking_lot::Mutex::new(vec![list("c third"), list("b second\nc third")]);
    let mut options = HttpOptions { tenants: list("a first\nb second\nc third"), ..HttpOptions::default() };
    options.tenant_reader = Some(Arc::new(move || {
        looked.send(()).unwrap();
        lists.lock().pop().map_or(TokenReading::Unchanged, TokenReading::Changed)
    }));
    let server = Server::new(Executor::builder().build().unwrap(), ServerOptions::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stop = CancellationToken::new();
    let mut serving = JoinSet::new();
    let its_stop = stop.clone();
    serving.spawn(async move { server.serve_http(listener, options, &its_stop).await });
    let mut times = Vec::new();
    for _ in 0..3 {
        looks.recv().await.unwrap();
        times.push(Instant::now());
    }
    let pauses: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    // Each of the first two has revoked a token.
    assert_eq!(pauses, [2, 2]);
    stop.cancel();
    assert!(serving.join_next().await.unwrap().unwrap().is_ok());
}
