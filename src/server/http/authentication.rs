//! Authentication of HTTP requests: the allowed hosts, the allowed origins, and the tokens.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Uri};
use parking_lot::{Mutex, RwLock};
use url::{Host, Url};

use super::accepted::{AcceptedToken, TokenChanges};
use super::tenants::{HttpTenant, check_all};
use super::token::{HttpToken, MIN_TOKEN};
use crate::error::{Error, OptionName};
use crate::run::observer::TokenOwner;

/// Checks each request before its body is read.
pub(crate) struct Authentication {
    address: IpAddr,
    origins: Vec<url::Origin>,
    has_token: bool,
    has_tenants: bool,
    /// The token of all clients or, if there are tenants, of the operator.
    token: RwLock<Option<Arc<AcceptedToken>>>,
    /// The tokens of the tenants.
    tenants: RwLock<Vec<Arc<AcceptedToken>>>,
    /// Held while tokens are checked and replaced, because each must differ from all others.
    replacing: Mutex<()>,
}

/// The sender of a request, by its token.
pub(crate) enum Caller {
    /// A client of a server without tenants, with this token if it has one.
    Client(Option<Arc<AcceptedToken>>),
    /// A client with this token of a tenant.
    Tenant(Arc<AcceptedToken>),
    /// The operator of a server with tenants, who reads metrics and the page and runs nothing.
    Operator(Arc<AcceptedToken>),
}

/// Why a request is refused.
pub(crate) enum AccessRefusal {
    /// The host is not allowed, or the page's origin is not.
    Forbidden(&'static str),
    /// The token is missing or wrong.
    Unauthorized,
}

impl Authentication {
    /// The authentication of a server at `address`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if other machines can reach the address and there is no token or
    /// only a short one, if the tenants and the token are not all different, or if an entry of `origins` is not an
    /// origin.
    pub(crate) fn new(
        address: IpAddr,
        origins: &[String],
        token: Option<HttpToken>,
        tenants: Vec<HttpTenant>,
    ) -> Result<Self, Error> {
        let authentication = Self {
            address,
            origins: origins.iter().map(|text| allowed_origin(text)).collect::<Result<_, _>>()?,
            has_token: token.is_some(),
            has_tenants: !tenants.is_empty(),
            token: RwLock::default(),
            tenants: RwLock::default(),
            replacing: Mutex::default(),
        };
        authentication.check_tokens(token.as_ref(), &tenants)?;
        *authentication.token.write() = token.map(AcceptedToken::of_server);
        *authentication.tenants.write() = tenants.into_iter().map(AcceptedToken::of_tenant).collect();
        Ok(authentication)
    }

    fn check_tokens(&self, token: Option<&HttpToken>, tenants: &[HttpTenant]) -> Result<(), Error> {
        check_all(tenants, token)?;
        let mut tokens = token.into_iter().chain(tenants.iter().map(HttpTenant::token));
        let has_none = token.is_none() && tenants.is_empty();
        if !self.is_loopback() && (has_none || !tokens.all(HttpToken::is_long_enough)) {
            let problem = format!(
                "other machines can reach {}: expected a token of at least {MIN_TOKEN} characters, or \
                 an address such as 127.0.0.1",
                self.address
            );
            return Err(Error::InvalidOptions { option: OptionName::Token, problem });
        }
        Ok(())
    }

    /// Checks whether the tenants can be replaced by others, by the rules of [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`], also if only one of both lists is empty: whether a server has tenants is fixed at its
    /// start.
    pub(crate) fn check_tenants(&self, tenants: &[HttpTenant]) -> Result<(), Error> {
        if tenants.is_empty() || !self.has_tenants {
            let problem = "a server has tenants from its start to its end, or never".to_owned();
            return Err(Error::InvalidOptions { option: OptionName::Tenants, problem });
        }
        let token = self.token.read().clone();
        self.check_tokens(token.as_deref().map(AcceptedToken::token), tenants)
    }

    /// Checks whether the token of all clients, or of the operator, can be replaced by another one, by the rules of
    /// [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`], also if the server has no token: whether it has one is fixed at its start.
    pub(crate) fn check_token(&self, token: &HttpToken) -> Result<(), Error> {
        if !self.has_token {
            let problem = "a server has a token from its start to its end, or never".to_owned();
            return Err(Error::InvalidOptions { option: OptionName::Token, problem });
        }
        let tenants: Vec<HttpTenant> =
            self.tenants.read().iter().filter_map(|token| token.tenant().cloned()).collect();
        self.check_tokens(Some(token), &tenants)
    }

    /// Replaces the token of all clients, or of the operator. From then on the previous token is refused.
    ///
    /// # Errors
    ///
    /// As [`check_token`](Self::check_token). The previous token then stays in force.
    pub(crate) fn replace_token(&self, token: HttpToken) -> Result<TokenChanges, Error> {
        let _alone = self.replacing.lock();
        self.check_token(&token)?;
        let mut in_force = self.token.write();
        if in_force.as_ref().is_some_and(|last| *last.token() == token) {
            return Ok(TokenChanges { in_force: 1, ..TokenChanges::default() });
        }
        let revoked = in_force.replace(AcceptedToken::of_server(token));
        Ok(TokenChanges { added: 1, revoked: revoked.into_iter().collect(), in_force: 1 })
    }

    /// The owner of the token that the server has in addition to those of its tenants.
    pub(crate) const fn token_owner(&self) -> TokenOwner {
        if self.has_tenants { TokenOwner::Operator } else { TokenOwner::Clients }
    }

    /// Replaces the tenants. From then on tokens that are not in the list are refused. `make_states` makes the states
    /// of new tenants. It is called when the list has been checked, and before a token of it is accepted.
    ///
    /// # Errors
    ///
    /// As [`check_tenants`](Self::check_tenants). The previous tenants then stay in force, and no state is made.
    pub(crate) fn replace_tenants(
        &self,
        tenants: Vec<HttpTenant>,
        make_states: impl FnOnce(&[HttpTenant]),
    ) -> Result<TokenChanges, Error> {
        let _alone = self.replacing.lock();
        self.check_tenants(&tenants)?;
        make_states(&tenants);
        let mut in_force = self.tenants.write();
        let is_kept = |token: &AcceptedToken| token.tenant().is_some_and(|tenant| tenants.contains(tenant));
        let revoked = in_force.iter().filter(|token| !is_kept(token)).cloned().collect();
        let mut added = 0;
        let replaced = tenants
            .into_iter()
            .map(|tenant| match in_force.iter().find(|token| token.tenant() == Some(&tenant)) {
                Some(token) => Arc::clone(token),
                None => {
                    added += 1;
                    AcceptedToken::of_tenant(tenant)
                }
            })
            .collect();
        *in_force = replaced;
        Ok(TokenChanges { added, revoked, in_force: in_force.len() })
    }

    /// Whether only processes of this machine can reach the server.
    pub(crate) fn is_loopback(&self) -> bool {
        self.address.to_canonical().is_loopback()
    }

    /// Whether there is a token that clients must send.
    pub(crate) const fn has_token(&self) -> bool {
        self.has_token || self.has_tenants
    }

    /// Checks the host and the origin of a request to the server's own page. Only that page may send such requests:
    /// other pages of this machine may use MCP, but may not answer approvals.
    pub(crate) fn check_own_page(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), AccessRefusal> {
        self.check_host(uri, headers)?;
        let mut origins = headers.get_all(ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(()) };
        let origin = origin.to_str().ok().and_then(|text| Url::parse(text).ok());
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        // A proxy may speak HTTPS to the browser.
        let is_own = |origin: &Url| {
            let own = host.and_then(|host| Url::parse(&format!("{}://{host}/", origin.scheme())).ok());
            matches!(origin.scheme(), "http" | "https")
                && own.is_some_and(|own| own.origin() == origin.origin())
        };
        if origins.next().is_none() && origin.as_ref().is_some_and(is_own) {
            return Ok(());
        }
        Err(AccessRefusal::Forbidden("only this server's own page may send requests here"))
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), AccessRefusal> {
        if !names_one_host(uri, headers) {
            let problem = "the request is for another host than its `Host` header says";
            return Err(AccessRefusal::Forbidden(problem));
        }
        if self.is_loopback() && !is_local_host(uri, headers) {
            // DNS rebinding: a name of the attacker resolves to this server, so the browser treats the server as the
            // attacker's own.
            return Err(AccessRefusal::Forbidden(
                "the `Host` header is not of this machine: use 127.0.0.1 or localhost",
            ));
        }
        Ok(())
    }

    /// Checks the host and the origin of a request. Returns the origin if a page sent the request.
    pub(crate) fn check_source(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Option<HeaderValue>, AccessRefusal> {
        self.check_host(uri, headers)?;
        let mut origins = headers.get_all(ORIGIN).iter();
        let Some(header) = origins.next() else { return Ok(None) };
        let origin = header.to_str().ok().and_then(|text| Url::parse(text).ok());
        let is_allowed = origins.next().is_none()
            && origin.is_some_and(|page| is_local(page.host()) || self.origins.contains(&page.origin()));
        if !is_allowed {
            let problem = "requests from pages of this `Origin` are not allowed: see `--allow-origin`";
            return Err(AccessRefusal::Forbidden(problem));
        }
        Ok(Some(header.clone()))
    }

    /// Identifies the caller by the token of its request. If the server has neither a token nor tenants, every request
    /// is a client's.
    ///
    /// # Errors
    ///
    /// If the token is missing or wrong.
    pub(crate) fn identify(&self, headers: &HeaderMap) -> Result<Caller, AccessRefusal> {
        if !self.has_token() {
            return Ok(Caller::Client(None));
        }
        let sent = bearer(headers).map(HttpToken::fingerprint_of).ok_or(AccessRefusal::Unauthorized)?;
        let own =
            |token| if self.has_tenants { Caller::Operator(token) } else { Caller::Client(Some(token)) };
        let token = self.token.read().clone();
        let mut caller = token.filter(|token| token.token().has_fingerprint(&sent)).map(own);
        // All tokens are compared, so that the duration does not reveal which exist.
        for token in self.tenants.read().iter() {
            if token.token().has_fingerprint(&sent) {
                caller = Some(Caller::Tenant(Arc::clone(token)));
            }
        }
        caller.ok_or(AccessRefusal::Unauthorized)
    }

    /// Checks whether the caller may read what concerns all tenants: the metrics, and the page of runs.
    ///
    /// # Errors
    ///
    /// If the caller is a tenant, or has no token.
    pub(crate) fn check_operator(&self, headers: &HeaderMap) -> Result<(), AccessRefusal> {
        match self.identify(headers)? {
            Caller::Client(_) | Caller::Operator(_) => Ok(()),
            Caller::Tenant(_) => Err(AccessRefusal::Forbidden(
                "this is of all tenants: it needs the operator's token (`--token-file`, CX_HTTP_TOKEN)",
            )),
        }
    }

    /// The token of a request, if it is the token of all clients or of the operator.
    pub(crate) fn server_token(&self, headers: &HeaderMap) -> Option<Arc<AcceptedToken>> {
        match self.identify(headers).ok()? {
            Caller::Client(token) => token,
            Caller::Operator(token) => Some(token),
            Caller::Tenant(_) => None,
        }
    }
}

/// The token that a request sends, if it sends one.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (scheme, credentials) = values.next()?.as_bytes().split_at_checked("Bearer ".len())?;
    let is_bearer = scheme.eq_ignore_ascii_case(b"Bearer ") && values.next().is_none();
    is_bearer.then_some(credentials.trim_ascii())
}

fn allowed_origin(text: &str) -> Result<url::Origin, Error> {
    let page = Url::parse(text).ok().filter(|page| {
        page.origin().is_tuple() && page.path() == "/" && page.query().is_none() && page.fragment().is_none()
    });
    page.map(|page| page.origin()).ok_or_else(|| Error::InvalidOptions {
        option: OptionName::AllowOrigins,
        problem: format!("expected an origin such as https://app.example.com: `{text}`"),
    })
}

/// Whether a request with an absolute URL as its target, as sent to proxies, has the same host there and in its `Host`
/// header. This server is not a proxy, and one of two different hosts would not be checked.
fn names_one_host(uri: &Uri, headers: &HeaderMap) -> bool {
    let Some(authority) = uri.authority() else { return true };
    headers
        .get_all(HOST)
        .iter()
        .all(|host| host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes()))
}

fn is_local_host(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let host = match hosts.next() {
        Some(host) if hosts.next().is_none() => host.to_str().ok(),
        Some(_) => None,
        None => uri.authority().map(axum::http::uri::Authority::as_str),
    };
    // Parsed as a browser parses it.
    let url = host.filter(|host| !host.contains(['/', '@', '?', '#', '\\']));
    let url = url.and_then(|host| Url::parse(&format!("http://{host}/")).ok());
    url.is_some_and(|url| is_local(url.host()))
}

fn is_local(host: Option<Host<&str>>) -> bool {
    match host {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical().is_loopback(),
        None => false,
    }
}
