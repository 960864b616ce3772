//! A process that stands for a worker on another machine. Its executor uses it like a worker of its
//! own, and it forwards the bytes to a server that lends the real one
//! (`src/server/http/workers.rs`).
//!
//! It is a process, and not a task of the executor, because the executor must be able to end a
//! worker by killing it, also when the network hangs.

use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use http::header::{AUTHORIZATION, CONNECTION, UPGRADE};
use http::{HeaderValue, StatusCode};
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::time::timeout;
use url::{Host, Url};

use crate::engine::process::lost::LostWorker;
use crate::engine::process::refusal::failed;
use crate::engine::process::{adopt, end_process_with};
use crate::error::{Error, OptionName, last_source};
use crate::mcp::web::{check_clock, upgrading_client};

/// The argument with which a program is started as such a process. The address follows, then the token's file.
pub(super) const ARGUMENT: &str = "cx-remote-worker";

/// The protocol to which the connection is upgraded.
const PROTOCOL: HeaderValue = HeaderValue::from_static("cx-worker");

/// Path of the lent workers, below the address.
const PATH: &str = "v1/workers";

/// How long the server may take to answer. It answers before it starts a worker.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(15);

/// Maximum bytes read of a token's file. Tokens are shorter.
const MAX_TOKEN: u64 = 4_096;

/// Reads and checks the address of a server.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if it is none, or the token would be sent unencrypted to another machine.
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
            "expected the address of a server, such as https://cx.example.com: `{text}`"
        )));
    };
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical().is_loopback(),
        None => false,
    };
    if has_token && url.scheme() == "http" && !is_local {
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
            let passed = match connect(&url, token_file.as_deref()).await {
                Ok(mut worker) => copy_bidirectional(&mut executor, &mut worker).await.map(drop),
                Err(problem) => executor.write_all(&failed(&problem)).await,
            };
            // The remaining side sees the end of the connection. The server ends it when the worker
            // has ended.
            if passed.is_ok() {
                lost = LostWorker::Ended;
            }
        });
    }
    end_process_with(lost.code())
}

/// Asks a server for a worker. The error is the rest of a sentence, for the run's author.
async fn connect(url: &str, token_file: Option<&Path>) -> Result<reqwest::Upgraded, String> {
    let url = parse_url(url, token_file.is_some()).map_err(|error| error.to_string())?;
    check_clock(&url, SystemTime::now()).map_err(str::to_owned)?;
    let address = url.join(PATH).map_err(|error| format!("the address cannot be used: {error}"))?;
    let client = upgrading_client(MAX_ANSWER_TIME).map_err(|error| error.message)?;
    let mut request = client.get(address).header(CONNECTION, "upgrade").header(UPGRADE, PROTOCOL);
    if let Some(path) = token_file {
        request = request.header(AUTHORIZATION, authorization(path)?);
    }
    let unreached = |error: reqwest::Error| {
        let cause = last_source(&error).unwrap_or_else(|| error.to_string());
        format!("`{url}` cannot be reached: {cause}")
    };
    let response = timeout(MAX_ANSWER_TIME, request.send()).await;
    let response = response.map_err(|_late| format!("`{url}` does not answer"))?.map_err(unreached)?;
    match response.status() {
        StatusCode::SWITCHING_PROTOCOLS if response.headers().get(UPGRADE) == Some(&PROTOCOL) => {
            response.upgrade().await.map_err(unreached)
        }
        StatusCode::UNAUTHORIZED => Err(format!("`{url}` does not accept the token")),
        StatusCode::NOT_FOUND => Err(format!("`{url}` lends no workers: its `cx serve` needs `--compute`")),
        StatusCode::SERVICE_UNAVAILABLE => Err(format!("`{url}` has lent all of its workers")),
        status => Err(format!("`{url}` answers with status {status}")),
    }
}

fn authorization(path: &Path) -> Result<HeaderValue, String> {
    let mut token = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_TOKEN).read_to_string(&mut token));
    read.map_err(|error| format!("the token file `{}` cannot be read: {error}", path.display()))?;
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
        .map_err(|_invalid| format!("the token file `{}` has no token", path.display()))?;
    value.set_sensitive(true);
    Ok(value)
}
