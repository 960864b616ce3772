//! The older HTTP transport (revision 2024-11-05): a stream that the server opens with the address
//! for messages, and answers on that stream.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use url::Url;

use super::http::{Events, Link, Problem};
use crate::tools::{ToolError, ToolErrorCode};

/// The stream begins with the address. A server of the newer transport may open a stream on which
/// nothing comes.
const ENDPOINT_TIME: Duration = Duration::from_secs(3);

/// An address with a session id in it.
const MAX_ENDPOINT: usize = 4096;

/// Opens the stream and reads where messages go.
///
/// # Errors
///
/// When there is no such stream, or the address is of another origin: credentials go there.
pub(super) async fn open(link: &Arc<Link>, url: &Url) -> Result<(Url, Events), Problem> {
    let opening = async {
        let mut events = link.open_stream(None).await?;
        let first = events.next().await.map_err(|error| Problem::from(link.broken(&error.to_string())))?;
        Ok((first, events))
    };
    let (first, events) = timeout(ENDPOINT_TIME, opening)
        .await
        .map_err(|_elapsed| link.broken("did not say where messages go"))
        .map_err(Problem::from)
        .flatten()?;
    let refused = |problem: &str| {
        let message = format!("server `{}` {problem}", link.client.server);
        Problem::from(ToolError::new(ToolErrorCode::UpstreamProtocol, message))
    };
    let Some(event) = first.filter(|event| event.name == "endpoint") else {
        return Err(refused("did not say where messages go"));
    };
    if event.data.len() > MAX_ENDPOINT {
        return Err(refused("sent an address that is too long"));
    }
    let address = std::str::from_utf8(&event.data).ok().map(str::trim);
    let Some(endpoint) = address.and_then(|address| url.join(address).ok()) else {
        return Err(refused("sent an address that is not one"));
    };
    if endpoint.origin() != url.origin() {
        return Err(refused("wants messages at another origin, which is not followed"));
    }
    Ok((endpoint, events))
}

/// Reads answers until the stream ends, which ends the connection: the session was the stream.
pub(super) async fn read(link: &Arc<Link>, mut events: Events) {
    let end = match link.read_events(&mut events, None).await {
        Ok(()) => "closed the connection".to_owned(),
        Err(error) => format!("closed the connection: {error}"),
    };
    link.state.end(&end);
}
