//! The engines, and what runs of both have in common: the pool of workers, the watchdog, compute slots, and the
//! functions of the host that a script can call.

pub(crate) mod engines;
pub(crate) mod failure;
pub(crate) mod host_calls;
pub(crate) mod pool;
pub(crate) mod python;
pub(crate) mod resident;
pub(crate) mod typescript;
pub(crate) mod watchdog;
