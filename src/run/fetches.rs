//! The HTTP requests of one run: its granted hosts, its connections, and the responses that are
//! still read.

mod responses;

use std::sync::Arc;

use self::responses::Responses;
pub(super) use self::responses::{Begun, ConnectionPermit};
use crate::net::connections::{Connections, Grant, Granted, Times, system_resolver};
use crate::run::grants::RunGrants;
use crate::run::limits::Limits;

/// The requests of one run.
pub(super) struct Fetches {
    pub(super) connections: Connections,
    pub(super) responses: Responses,
}

impl Fetches {
    /// The requests of a run with these grants and limits.
    pub(super) fn new(grants: &Arc<RunGrants>, limits: &Limits) -> Self {
        Self {
            connections: Connections::new(granted(grants), system_resolver(), Times::default()),
            responses: Responses::new(limits.calls_in_flight as usize),
        }
    }

    /// Ends everything.
    pub(super) fn finish(&self) {
        self.responses.clear();
        self.connections.close();
    }
}

/// What a run may reach. A host counts as granted by itself only if a person has named it.
fn granted(grants: &Arc<RunGrants>) -> Granted {
    let grants = Arc::clone(grants);
    Arc::new(move |host, port| {
        let may = grants.net.iter().any(|pattern| pattern.matches(host, port));
        let mut by_person =
            grants.granted_net.iter().filter(|pattern| pattern.matches(host, port)).peekable();
        match (may, by_person.peek().is_some()) {
            (true, true) if by_person.any(|pattern| pattern.names_one_host()) => Grant::Itself,
            (true, true) => Grant::Among,
            _ => Grant::No,
        }
    })
}
