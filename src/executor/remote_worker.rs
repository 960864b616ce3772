//! A process that stands for a worker on another machine. Its executor uses it like a worker of its
//! own, and it forwards the bytes to a server that lends the real one
//! (`src/server/http/workers.rs`).
//!
//! It is a process, and not a task of the executor, because the executor must be able to end a
//! worker by killing it, also when the network hangs.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use http::header::{AUTHORIZATION, CONNECTION, UPGRADE};
use http::{HeaderValue, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::UnixStream;
use tokio::time::timeout;
use url::Url;

use super::worker_upgrade::{AHEAD, DEPTH, PROTOCOL};
use crate::engine::process::lost::LostWorker;
use crate::engine::process::refusal::failed;
use crate::engine::process::{adopt, depth_of_run, end_process_with};
use crate::error::{Error, OptionName};
use crate::mcp::address::is_private;
use crate::mcp::web::upgrading_client;
use crate::net::response::cause;
use crate::net::tls::check_clock;
use crate::storage::named::NamedFile;
use crate::text::secrets::masked_address;

/// The argument with which a program is started as such a process. The address follows, then the token's file.
pub(super) const ARGUMENT: &str = "cx-remote-worker";

/// Path of the lent workers, below the address.
const PATH: &str = "v1/workers";

/// How long the server may take to answer. It answers before it starts a worker.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(15);

/// Maximum number of requests for a nested run to a server that has lent all of its workers. It answers each after some
/// seconds, and its runs go on meanwhile.
const MAX_REQUESTS: u32 = 4;

/// Maximum bytes that are read from the executor before the depth of its run is known: the first message, which has
/// paths of caches, and the beginning of the second.
const MAX_FIRST: usize = 256 << 10;

/// Bytes that are read at once.
const CHUNK: usize = 16 << 10;

/// Maximum bytes of a token's file. Tokens are shorter.
const MAX_TOKEN_FILE: u64 = 4_096;

/// Reads and checks the address of a server.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if the text is not such an address, or the token would be sent unencrypted to another
/// machine.
pub(super) fn parse_url(text: &str, has_token: bool) -> Result<Url, Error> {
    let invalid = |problem: String| Error::InvalidOptions { option: OptionName::Isolation, problem };
    let url = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none()
    });
    let Some(mut url) = url.filter(|url| url.username().is_empty() && url.password().is_none()) else {
        return Err(invalid(format!(
            "expected the address of a server, such as https://cx.example.com: `{}`",
            masked_address(text)
        )));
    };
    if has_token && !is_private(&url) {
        let problem = "the token would be sent to another machine without TLS: use an address with `https`";
        return Err(invalid(problem.to_owned()));
    }
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

/// Forwards bytes between the executor at `socket` and a server, until one of them ends.
pub(super) fn run(socket: OwnedFd, mut arguments: impl Iterator<Item = String>) -> ! {
    let (url, token_file) = (arguments.next().unwrap_or_default(), arguments.next().map(PathBuf::from));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let mut lost = LostWorker::Unreachable;
    if let Ok(runtime) = runtime {
        runtime.block_on(async {
            let Ok(mut executor) = adopt(socket) else { return };
            let passed = serve(&mut executor, &url, token_file.as_deref()).await;
            // The remaining side sees the end of the connection. The server ends it when the worker
            // has ended.
            if passed.is_ok() {
                lost = LostWorker::Ended;
            }
        });
    }
    end_process_with(lost.code())
}

/// Gets a worker, and forwards bytes until it or the executor ends. If there is no worker, tells the executor why.
///
/// # Errors
///
/// If a connection breaks.
async fn serve(executor: &mut UnixStream, url: &str, token_file: Option<&Path>) -> io::Result<()> {
    let mut first = Vec::new();
    // It is started ahead of time, so that its run is not known yet.
    let mut connected = connect(url, token_file, None).await;
    if matches!(connected, Err(NotLent::Busy(_))) {
        // The runs that have the workers may wait for this one. The server has others for nested
        // runs.
        let depth = read_depth(executor, &mut first).await?;
        let requests = if depth == 0 { 1 } else { MAX_REQUESTS };
        for _ in 0..requests {
            connected = connect(url, token_file, Some(depth)).await;
            if !matches!(connected, Err(NotLent::Busy(_))) {
                break;
            }
        }
    }
    match connected {
        Ok(mut worker) => {
            worker.write_all(&first).await?;
            worker.flush().await?;
            copy_bidirectional(executor, &mut worker).await.map(drop)
        }
        Err(NotLent::Busy(problem) | NotLent::Failed(problem)) => executor.write_all(&failed(&problem)).await,
    }
}

/// Waits for the executor's run, and returns how many runs it is nested in. What was read is appended to `first`.
///
/// # Errors
///
/// If the executor has gone, or sends something else.
async fn read_depth(executor: &mut UnixStream, first: &mut Vec<u8>) -> io::Result<usize> {
    let mut buffer = vec![0; CHUNK];
    loop {
        if let Some(depth) = depth_of_run(first) {
            return Ok(depth);
        }
        let count = executor.read(&mut buffer).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if first.len() > MAX_FIRST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        first.extend_from_slice(&buffer[..count]);
    }
}

/// Why a server lends no worker: the rest of a sentence, for the run's author.
enum NotLent {
    /// All are lent.
    Busy(String),
    /// Any other reason, for which asking again does not help.
    Failed(String),
}

impl From<String> for NotLent {
    fn from(problem: String) -> Self {
        Self::Failed(problem)
    }
}

/// Asks a server for a worker for a run with `depth` runs above it; `None` before there is a run.
///
/// # Errors
///
/// Why there is none.
async fn connect(
    url: &str,
    token_file: Option<&Path>,
    depth: Option<usize>,
) -> Result<reqwest::Upgraded, NotLent> {
    let url = parse_url(url, token_file.is_some()).map_err(|error| error.to_string())?;
    check_clock(&url, SystemTime::now()).map_err(str::to_owned)?;
    let address = url.join(PATH).map_err(|error| format!("the address cannot be used: {error}"))?;
    let client = upgrading_client(MAX_ANSWER_TIME).map_err(|error| error.message)?;
    let mut request = client.get(address).header(CONNECTION, "upgrade").header(UPGRADE, PROTOCOL);
    if let Some(path) = token_file {
        request = request.header(AUTHORIZATION, authorization(path)?);
    }
    request = match depth {
        None => request.header(AHEAD, "1"),
        Some(0) => request,
        Some(depth) => request.header(DEPTH, depth),
    };
    let unreached = |error: reqwest::Error| format!("`{url}` cannot be reached: {}", cause(&error));
    let response = timeout(MAX_ANSWER_TIME, request.send()).await;
    let response = response.map_err(|_late| format!("`{url}` does not answer"))?.map_err(unreached)?;
    match response.status() {
        StatusCode::SWITCHING_PROTOCOLS if response.headers().get(UPGRADE) == Some(&PROTOCOL) => {
            Ok(response.upgrade().await.map_err(unreached)?)
        }
        StatusCode::UNAUTHORIZED if token_file.is_none() => Err(format!(
            "`{url}` needs a token: `--remote-token-file`, or `tokenFile` of `isolation`, names its file"
        )
        .into()),
        StatusCode::UNAUTHORIZED => Err(format!("`{url}` does not accept the token").into()),
        StatusCode::FORBIDDEN => {
            Err(format!("`{url}` refuses the request: with tenants it needs the token of one").into())
        }
        StatusCode::NOT_FOUND => {
            Err(format!("`{url}` lends no workers: its `cx serve` needs `--compute`").into())
        }
        StatusCode::SERVICE_UNAVAILABLE => Err(NotLent::Busy(format!("`{url}` has lent all of its workers"))),
        status => Err(format!("`{url}` answers with status {status}").into()),
    }
}

/// Returns the header with the token in a file.
///
/// # Errors
///
/// If the file cannot be read, is longer than [`MAX_TOKEN_FILE`], or has no token.
fn authorization(path: &Path) -> Result<HeaderValue, String> {
    let mut token = String::new();
    let read = NamedFile::open_secret(path)
        .and_then(|file| file.take(MAX_TOKEN_FILE + 1).read_to_string(&mut token));
    read.map_err(|error| format!("the token file `{}` cannot be read: {error}", path.display()))?;
    // A part of a token would be refused without the reason.
    if token.len() as u64 > MAX_TOKEN_FILE {
        return Err(format!("the token file `{}` is longer than {MAX_TOKEN_FILE} bytes", path.display()));
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
        .map_err(|_invalid| format!("the token file `{}` has no token", path.display()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
