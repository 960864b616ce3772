//! Lends worker processes to executors of other machines: `GET /v1/workers`, which becomes a stream of bytes in both
//! directions.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use hyper::upgrade::{OnUpgrade, on};
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::responses::{plain, try_again};
use super::state::HttpState;
use super::tenant_state::Requester;
use crate::engine::process::lent::LentWorkers;
use crate::error::Error;
use crate::executor::Executor;

/// Path of the workers.
pub(super) const WORKERS: &str = "/v1/workers";

/// The protocol to which the connection is upgraded.
const PROTOCOL: HeaderValue = HeaderValue::from_static("cx-worker");

/// The workers that a server lends.
pub(crate) struct Lending {
    workers: Arc<LentWorkers>,
    /// One permit for each worker that may be lent at the same time.
    permits: Arc<Semaphore>,
}

impl Lending {
    /// Lends `max` workers at the same time; `None` if that is none.
    ///
    /// # Errors
    ///
    /// If this machine or this build has no worker processes.
    pub(super) fn new(executor: &Executor, max: usize) -> Result<Option<Self>, Error> {
        if max == 0 {
            return Ok(None);
        }
        let workers = Arc::new(executor.lend_workers(1)?);
        Ok(Some(Self { workers, permits: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))) }))
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
    let Ok(permit) = Arc::clone(&lending.permits).try_acquire_owned() else {
        return try_again("all workers are lent");
    };
    let stream = on(&mut request);
    let workers = Arc::clone(&lending.workers);
    let ended = requester.tenant.session.cancellation_with(requester.revoked());
    tokio::spawn(async move {
        let _ends_with_this = ended.clone().drop_guard();
        ended.run_until_cancelled(serve(workers, stream, permit)).await;
    });
    let headers = [(CONNECTION, HeaderValue::from_static("upgrade")), (UPGRADE, PROTOCOL)];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// Lends a worker over a connection, from its upgrade to its end.
async fn serve(workers: Arc<LentWorkers>, stream: OnUpgrade, _permit: OwnedSemaphorePermit) {
    let lent = match stream.await {
        Ok(stream) => workers.lend(TokioIo::new(stream)).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = lent {
        tracing::info!(error, "a worker was not lent to the end of its run");
    }
}
