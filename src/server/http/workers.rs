//! Lends worker processes to executors of other machines: `GET /v1/workers`, which is upgraded to a byte stream in both
//! directions.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use hyper::upgrade::{OnUpgrade, on};
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::responses::{plain, try_again};
use super::state::HttpState;
use super::tenant_state::Requester;
use crate::engine::process::lent::{LentWorkers, MAX_IDLE_TIME, MAX_START_TIME};
use crate::error::Error;
use crate::executor::Executor;
use crate::executor::worker_upgrade::{AHEAD, DEPTH, PROTOCOL};
use crate::run::nested::MAX_DEPTH;
use crate::server::calls::{CallGuard, CallsInFlight};
use crate::server::prepare::ENDING;

/// How long a request for a called run waits for a worker. It is made again after that.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// How long a called run waits whose worker was asked for ahead of time, so that it is not asked for again: as long as
/// all requests for another called run.
const MAX_WAIT_OF_AHEAD: Duration = Duration::from_secs(20);

/// How long a run that nothing has called waits: the worker of a run that has just ended is ended first.
const MAX_WAIT_AT_TOP: Duration = Duration::from_secs(1);

/// The workers that a server lends.
pub(crate) struct Lending {
    workers: Arc<LentWorkers>,
    permits: Arc<Permits>,
}

/// The permits for lent workers.
struct Permits {
    /// Permits for runs, by depth. Nested runs have separate ones, because their callers keep theirs while they wait.
    runs: [Arc<Semaphore>; MAX_DEPTH + 1],
    /// Permits for workers that wait for a run. Such a worker may wait for minutes, so it must not hold the permit of a
    /// run: it gets one when its run has come.
    ahead: Arc<Semaphore>,
}

/// The permit that a worker holds while it is lent.
enum Lent {
    /// Its run has come.
    Run(OwnedSemaphorePermit),
    /// It waits for a run.
    Ahead(OwnedSemaphorePermit),
}

impl Lent {
    /// Counts it as a call, if it has the permit of a run. One that was asked for ahead of time can be idle for
    /// minutes, and a server that is draining does not wait for it.
    fn counted(&self, calls: &Arc<CallsInFlight>) -> Option<CallGuard> {
        matches!(self, Self::Run(_)).then(|| calls.begin())
    }

    /// How long it may wait for its run: a permit of a run is not kept for long without one.
    fn max_idle(&self) -> Duration {
        match self {
            Self::Run(_) => MAX_START_TIME,
            Self::Ahead(_) => MAX_IDLE_TIME,
        }
    }
}

impl Lending {
    /// Lends `max` workers to runs at the same time, as many for each depth of nested runs, and as many ahead of time;
    /// `None` if `max` is 0.
    ///
    /// # Errors
    ///
    /// If this machine or this build has no worker processes.
    pub(super) fn new(executor: &Executor, max: usize) -> Result<Option<Self>, Error> {
        if max == 0 {
            return Ok(None);
        }
        let workers = Arc::new(executor.lend_workers(1)?);
        Ok(Some(Self { workers, permits: Arc::new(Permits::new(max)) }))
    }
}

impl Permits {
    fn new(max: usize) -> Self {
        let semaphore = || Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        Self { runs: std::array::from_fn(|_depth| semaphore()), ahead: semaphore() }
    }

    /// A permit for a run with `depth` runs above it; `None` if there is none. Called runs wait longest for it,
    /// `max_wait_of_called`, because those above them go on when they have ended.
    async fn run(&self, depth: usize, max_wait_of_called: Duration) -> Option<OwnedSemaphorePermit> {
        let permits = Arc::clone(self.runs.get(depth)?);
        let max_wait = if depth == 0 { MAX_WAIT_AT_TOP } else { max_wait_of_called };
        timeout(max_wait, permits.acquire_owned()).await.ok()?.ok()
    }

    /// A permit for a worker that waits for a run; `None` if none is free.
    fn ahead(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.ahead).try_acquire_owned().ok()
    }

    /// Admits the run of a worker that was asked for ahead of time. Exchanges the worker's permit for that of a run; it
    /// is kept until then, because the worker exists while its run waits. The run counts as a call. `None` if no permit
    /// is free in time, or if the server is draining.
    async fn admit(
        &self,
        ahead: OwnedSemaphorePermit,
        depth: usize,
        calls: &Arc<CallsInFlight>,
    ) -> Option<(OwnedSemaphorePermit, CallGuard)> {
        let call = calls.begin();
        if is_refused(calls, depth) {
            return None;
        }
        let admitted = self.run(depth, MAX_WAIT_OF_AHEAD).await;
        drop(ahead);
        admitted.map(|permit| (permit, call))
    }
}

/// Answers a request for a worker.
pub(super) async fn lend(
    State(state): State<Arc<HttpState>>,
    Extension(requester): Extension<Requester>,
    mut request: Request,
) -> Response {
    let Some(lending) = &state.lending else {
        return plain(StatusCode::NOT_FOUND, "this server lends no workers: see `--compute`");
    };
    if request.headers().get(UPGRADE) != Some(&PROTOCOL) {
        let mut response = plain(StatusCode::UPGRADE_REQUIRED, "expected `Upgrade: cx-worker`");
        response.headers_mut().insert(UPGRADE, PROTOCOL);
        return response;
    }
    let Some(depth) = depth(request.headers()) else {
        let problem = format!("expected a number up to {MAX_DEPTH} in the header `{DEPTH}`");
        return plain(StatusCode::BAD_REQUEST, &problem);
    };
    let permits = Arc::clone(&lending.permits);
    let lent = if request.headers().contains_key(AHEAD) {
        permits.ahead().map(Lent::Ahead)
    } else {
        permits.run(depth, MAX_WAIT).await.map(Lent::Run)
    };
    let Some(lent) = lent else {
        return try_again("all workers are lent");
    };
    let workers = Arc::clone(&lending.workers);
    let ended = requester.tenant.session.cancellation_with(requester.revoked());
    let calls = Arc::clone(&state.calls);
    let call = lent.counted(&calls);
    // The server may have been told to end while the request waited for its permit.
    if is_refused(&calls, depth) {
        return try_again(ENDING);
    }
    let stream = on(&mut request);
    tokio::spawn(async move {
        let _counted = call;
        let _ends_with_this = ended.clone().drop_guard();
        ended.run_until_cancelled(serve(workers, stream, lent, permits, calls)).await;
    });
    let headers = [(CONNECTION, HeaderValue::from_static("upgrade")), (UPGRADE, PROTOCOL)];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// Whether the server is draining and starts no run of this depth. A nested run is started, because its caller
/// continues.
fn is_refused(calls: &CallsInFlight, depth: usize) -> bool {
    depth == 0 && calls.is_closed()
}

/// The number of callers above the run that a worker is for. `None` if the header is invalid.
fn depth(headers: &HeaderMap) -> Option<usize> {
    let Some(value) = headers.get(DEPTH) else { return Some(0) };
    value.to_str().ok()?.parse().ok().filter(|depth| *depth <= MAX_DEPTH)
}

/// Lends a worker over a connection, from its upgrade to its end.
async fn serve(
    workers: Arc<LentWorkers>,
    stream: OnUpgrade,
    lent: Lent,
    permits: Arc<Permits>,
    calls: Arc<CallsInFlight>,
) {
    let max_idle = lent.max_idle();
    let admit = |depth| async move {
        match lent {
            // It is counted already.
            Lent::Run(permit) => Some((permit, None)),
            Lent::Ahead(ahead) => {
                let admitted = permits.admit(ahead, depth, &calls).await;
                admitted.map(|(permit, call)| (permit, Some(call)))
            }
        }
    };
    let lent = match stream.await {
        Ok(stream) => {
            let lent = workers.lend(TokioIo::new(stream), max_idle, admit).await;
            lent.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = lent {
        tracing::info!(error, "a worker was not lent to the end of its run");
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt as _;

    use super::*;

    /// Each of these runs waits for the next one.
    #[tokio::test]
    async fn v_597_runs_of_each_depth_have_permits_of_their_own() {
        let permits = Permits::new(1);
        let mut in_flight = Vec::new();
        for depth in 0..=MAX_DEPTH {
            let run = permits.run(depth, MAX_WAIT).now_or_never().flatten();
            in_flight.push(run.unwrap_or_else(|| panic!("no permit at depth {depth}")));
        }
        for depth in 0..=MAX_DEPTH {
            assert!(permits.run(depth, MAX_WAIT).now_or_never().is_none(), "another permit at depth {depth}");
        }
        assert!(permits.run(MAX_DEPTH + 1, MAX_WAIT).await.is_none());
    }

    #[tokio::test]
    async fn v_611_a_worker_whose_run_waits_still_counts() {
        let permits = Permits::new(1);
        let run = permits.run(1, MAX_WAIT).await;
        assert!(run.is_some());
        let calls = Arc::<CallsInFlight>::default();
        let mut waiting = pin!(permits.admit(permits.ahead().unwrap(), 1, &calls));
        assert!(waiting.as_mut().now_or_never().is_none(), "two runs have the only permit");
        assert!(permits.ahead().is_none(), "the worker of the run that waits has no permit");
        drop(run);
        assert!(waiting.await.is_some());
        assert!(permits.ahead().is_some());
    }

    /// Threat 676. Other machines keep a worker for their next run for minutes.
    #[tokio::test]
    async fn v_676_a_worker_without_a_run_keeps_no_server_from_ending() {
        let (permits, calls) = (Permits::new(1), Arc::<CallsInFlight>::default());
        let run = Lent::Run(permits.run(0, MAX_WAIT).await.unwrap());
        let counted = run.counted(&calls);
        assert!(counted.is_some() && !calls.is_empty());
        drop((run, counted));
        assert!(Lent::Ahead(permits.ahead().unwrap()).counted(&calls).is_none() && calls.is_empty());
        let admitted = permits.admit(permits.ahead().unwrap(), 0, &calls).await;
        assert!(admitted.is_some() && !calls.is_empty());
        drop(admitted);
        calls.close();
        assert!(permits.admit(permits.ahead().unwrap(), 0, &calls).await.is_none());
        assert!(calls.is_empty());
        // A run that goes on may call others.
        assert!(permits.admit(permits.ahead().unwrap(), 1, &calls).await.is_some());
    }

    #[tokio::test]
    async fn v_640_only_workers_without_the_permit_of_a_run_wait_for_long() {
        let permits = Permits::new(1);
        let run = Lent::Run(permits.run(0, MAX_WAIT).await.unwrap());
        let ahead = Lent::Ahead(permits.ahead().unwrap());
        assert_eq!([run.max_idle(), ahead.max_idle()], [MAX_START_TIME, MAX_IDLE_TIME]);
    }
}
