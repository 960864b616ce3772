//! The older HTTP transport (revision 2024-11-05): the client opens a stream on which the server
//! first sends the URL for messages, and then the answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use url::Url;

use super::connection::HttpConnection;
use super::events::Events;
use super::failure::RequestFailure;
use crate::tools::{ToolError, ToolErrorCode};

/// How long the URL may take to arrive as the first event. A server of the newer transport may open
/// a stream on which nothing is sent.
const ENDPOINT_TIME: Duration = Duration::from_secs(3);

/// Maximum bytes of the URL, which contains a session id.
const MAX_ENDPOINT: usize = 4096;

/// Opens the stream and reads the URL for messages.
///
/// # Errors
///
/// If there is no such stream, or the URL has another origin: credentials are sent to it.
pub(crate) async fn open(
    connection: &Arc<HttpConnection>,
    url: &Url,
) -> Result<(Url, Events), RequestFailure> {
    let opening = async {
        let mut events = connection.open_stream(None).await?;
        let first = events
            .next()
            .await
            .map_err(|error| RequestFailure::from(connection.broken(&error.to_string())))?;
        Ok((first, events))
    };
    let (first, events) = timeout(ENDPOINT_TIME, opening)
        .await
        .map_err(|_elapsed| connection.broken("did not send the URL for messages"))
        .map_err(RequestFailure::from)
        .flatten()?;
    let refused = |problem: &str| {
        let message = format!("server `{}` {problem}", connection.client.server);
        RequestFailure::from(ToolError::new(ToolErrorCode::UpstreamProtocol, message))
    };
    let Some(event) = first.filter(|event| event.name == "endpoint") else {
        return Err(refused("did not send the URL for messages"));
    };
    if event.data.len() > MAX_ENDPOINT {
        return Err(refused("sent a URL for messages that is too long"));
    }
    let address = std::str::from_utf8(&event.data).ok().map(str::trim);
    let Some(endpoint) = address.and_then(|address| url.join(address).ok()) else {
        return Err(refused("sent an invalid URL for messages"));
    };
    if endpoint.origin() != url.origin() {
        return Err(refused("sent a URL for messages at another origin, which is not used"));
    }
    Ok((endpoint, events))
}

/// Reads answers until the stream ends. That ends the connection, because the session is the
/// stream.
pub(crate) async fn read(connection: &Arc<HttpConnection>, mut events: Events) {
    let end = match connection.read_events(&mut events, None).await {
        Ok(()) => "closed the connection".to_owned(),
        Err(error) => format!("closed the connection: {error}"),
    };
    connection.state.end(&end);
}
