//! One HTTP request of a script: what it may say, and what becomes of it after a redirect.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use url::{Host, Url};

use super::call::FetchRequest;
use super::head::Head;
use crate::text::visible_preview;
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum length of an address. Servers refuse longer ones, mostly from 8 KiB on.
const MAX_URL_BYTES: usize = 16 << 10;

/// Maximum length of a method. The longest in the registry of methods has 17 letters.
const MAX_METHOD_BYTES: usize = 64;

/// Maximum number of a request's headers, and bytes of all of them. Servers have bounds of this order.
const MAX_HEADERS: usize = 100;
const MAX_HEADER_BYTES: usize = 64 << 10;

/// Maximum characters of a script's text in an error message.
const MAX_SHOWN: usize = 80;

/// Methods that the fetch standard forbids.
const FORBIDDEN_METHODS: [&str; 3] = ["CONNECT", "TRACE", "TRACK"];

/// Headers that say where a message ends, who receives it, or how it is encoded. They are the HTTP client's
/// own: a script that set them could send a second request inside of the first, or to another host.
const FORBIDDEN_HEADERS: [&str; 16] = [
    "accept-charset",
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
    "via",
    "set-cookie",
    "set-cookie2",
];

/// Headers with these beginnings are for proxies and browsers.
const FORBIDDEN_PREFIXES: [&str; 2] = ["proxy-", "sec-"];

/// The ports that browsers do not connect to, because services there may take HTTP for their own protocol
/// (the fetch standard, "bad port").
const BLOCKED_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103,
    104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514,
    515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723,
    2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

/// A request whose method, address, headers and body were checked. Whether it may go to its host
/// was not.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: Method,
    /// Without a fragment and without credentials.
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) is_tls: bool,
    /// A name in lower case without a dot at its end, or an address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl HttpRequest {
    /// Checks what a script asks for.
    ///
    /// # Errors
    ///
    /// `InvalidArguments` says what is wrong with it; `NetDenied` for a port that nothing may connect to.
    pub(crate) fn prepare(request: FetchRequest) -> Result<Self, ToolError> {
        if request.url.len() > MAX_URL_BYTES {
            let length = request.url.len();
            return Err(ToolError::invalid_arguments(format!(
                "the address has {length} bytes, at most {MAX_URL_BYTES} can be sent"
            )));
        }
        let url = Url::parse(&request.url).map_err(|error| {
            ToolError::invalid_arguments(format!(
                "expected an address such as `https://example.com/a`: {error}"
            ))
        })?;
        let method = method(&request.method)?;
        let headers = headers(&request.headers)?;
        let body = match request.body {
            Some(body) => body
                .into_bytes()
                .map_err(|error| ToolError::invalid_arguments(format!("the body: {error}")))?,
            None => Vec::new(),
        };
        if !body.is_empty() && matches!(method, Method::GET | Method::HEAD) {
            return Err(ToolError::invalid_arguments(format!(
                "a request with the method {method} has no body"
            )));
        }
        Ok(Self { url: checked(url)?, method, headers, body })
    }

    pub(crate) fn origin(&self) -> Origin {
        origin(&self.url)
    }

    /// The names of its headers.
    pub(crate) fn header_names(&self) -> Vec<&str> {
        self.headers.keys().map(HeaderName::as_str).collect()
    }

    /// The request that a redirect asks for. Method, body and credentials follow the fetch standard: a `POST` becomes
    /// a `GET`, and what is for one origin is not sent to another.
    ///
    /// # Errors
    ///
    /// `NetFailed` for a target that is no address; as [`prepare`](Self::prepare) for one that no script may ask for.
    pub(crate) fn redirected(&self, head: &Head) -> Result<Self, ToolError> {
        let bad = |problem: &str| {
            ToolError::new(ToolErrorCode::NetFailed, format!("the redirect cannot be followed: {problem}"))
        };
        let location = head.location().ok_or_else(|| bad("it has no target"))?;
        // Servers send what is not ASCII as it is.
        let location = String::from_utf8_lossy(location.as_bytes());
        if location.len() > MAX_URL_BYTES {
            return Err(bad("its target is too long"));
        }
        let target = self.url.join(&location).map_err(|_| bad("its target is not an address"))?;
        let mut next = Self { url: checked(target)?, ..self.clone() };
        let is_post = self.method == Method::POST;
        let becomes_get = match head.status {
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => is_post,
            StatusCode::SEE_OTHER => !matches!(self.method, Method::GET | Method::HEAD),
            _ => false,
        };
        if becomes_get {
            next.method = Method::GET;
            next.body.clear();
            for name in [
                header::CONTENT_ENCODING,
                header::CONTENT_LANGUAGE,
                header::CONTENT_LOCATION,
                header::CONTENT_TYPE,
            ] {
                next.headers.remove(name);
            }
        }
        if next.origin() != self.origin() {
            for name in [header::AUTHORIZATION, header::COOKIE] {
                next.headers.remove(name);
            }
        }
        Ok(next)
    }
}

impl Origin {
    /// As records name it: the host, and the port unless it is that of the scheme.
    pub(crate) fn name(&self) -> String {
        let host = &self.host;
        match (self.is_tls, self.port) {
            (true, 443) | (false, 80) => host.clone(),
            (_, port) if host.contains(':') => format!("[{host}]:{port}"),
            (_, port) => format!("{host}:{port}"),
        }
    }
}

/// The URL parser has turned every spelling of an IPv4 address into the usual one.
fn origin(url: &Url) -> Origin {
    let host = match url.host() {
        Some(Host::Domain(name)) => name.trim_end_matches('.').to_owned(),
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Ipv6(address)) => address.to_canonical().to_string(),
        None => String::new(),
    };
    Origin { is_tls: url.scheme() == "https", host, port: url.port_or_known_default().unwrap_or(0) }
}

/// Refuses what no script may ask for, also by a redirect.
fn checked(mut url: Url) -> Result<Url, ToolError> {
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = visible_preview(url.scheme(), MAX_SHOWN);
        return Err(ToolError::invalid_arguments(format!(
            "`fetch` knows `https:` and `http:` only: `{scheme}:`"
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let problem = "an address with a user name or a password is refused: send the header `Authorization`";
        return Err(ToolError::invalid_arguments(problem.to_owned()));
    }
    let origin = origin(&url);
    if origin.host.is_empty() {
        return Err(ToolError::invalid_arguments("the address has no host".to_owned()));
    }
    if BLOCKED_PORTS.contains(&origin.port) {
        let message = format!("nothing may connect to port {}, which browsers block too", origin.port);
        return Err(ToolError::new(ToolErrorCode::NetDenied, message));
    }
    url.set_fragment(None);
    Ok(url)
}

fn method(text: &str) -> Result<Method, ToolError> {
    if text.len() > MAX_METHOD_BYTES {
        return Err(ToolError::invalid_arguments(format!(
            "the method has {} bytes, at most {MAX_METHOD_BYTES} can be sent",
            text.len()
        )));
    }
    let upper = text.to_ascii_uppercase();
    if FORBIDDEN_METHODS.contains(&&*upper) {
        return Err(ToolError::invalid_arguments(format!("the method {upper} is refused")));
    }
    // The standard makes only the usual methods upper case; servers know none in lower case.
    Method::from_bytes(upper.as_bytes()).map_err(|_| {
        ToolError::invalid_arguments(format!(
            "expected a method such as `GET` or `POST`: `{}`",
            visible_preview(text, MAX_SHOWN)
        ))
    })
}

fn headers(list: &[(String, String)]) -> Result<HeaderMap, ToolError> {
    if list.len() > MAX_HEADERS {
        return Err(ToolError::invalid_arguments(format!(
            "{} headers, at most {MAX_HEADERS} can be sent",
            list.len()
        )));
    }
    let bytes: usize = list.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > MAX_HEADER_BYTES {
        return Err(ToolError::invalid_arguments(format!(
            "the headers have {bytes} bytes, at most {MAX_HEADER_BYTES} can be sent"
        )));
    }
    let mut headers = HeaderMap::with_capacity(list.len());
    for (name, value) in list {
        let lower = name.to_ascii_lowercase();
        let parsed = HeaderName::from_bytes(lower.as_bytes()).map_err(|_| {
            ToolError::invalid_arguments(format!(
                "expected the name of a header: `{}`",
                visible_preview(name, MAX_SHOWN)
            ))
        })?;
        let is_forbidden = FORBIDDEN_HEADERS.contains(&&*lower)
            || FORBIDDEN_PREFIXES.iter().any(|prefix| lower.starts_with(prefix));
        if is_forbidden {
            return Err(ToolError::invalid_arguments(format!(
                "the header `{lower}` is set by cx and not by scripts; leave it out"
            )));
        }
        let value = HeaderValue::from_bytes(&latin1(value).ok_or_else(|| {
            ToolError::invalid_arguments(format!(
                "the value of the header `{lower}` has characters beyond U+00FF"
            ))
        })?)
        .map_err(|_| {
            ToolError::invalid_arguments(format!(
                "the value of the header `{lower}` has a line break or a control character"
            ))
        })?;
        headers.append(parsed, value);
    }
    Ok(headers)
}

/// A header's value has bytes, and in the standard's strings each is one character.
fn latin1(text: &str) -> Option<Vec<u8>> {
    text.trim_matches([' ', '\t', '\r', '\n']).chars().map(|letter| u8::try_from(letter).ok()).collect()
}

#[cfg(test)]
mod tests;
