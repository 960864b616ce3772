//! Arguments about the queue of runs on a NATS server: those of front ends, and those of `cx worker`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cx::NatsWorkers;

use super::address::parse_address;
use super::log_format::LogFormat;
use super::size::parse_memory;
use super::time::parse_time;

/// The queue of runs on a NATS server.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NatsArguments {
    /// Run scripts in worker processes of the machines that have joined the queue of this NATS
    /// server (`cx worker`); their tools, approvals and state stay here. Several addresses of a
    /// cluster are separated by commas
    #[arg(long, value_name = "URL", requires = "nats_key_file", conflicts_with = "isolation")]
    pub(crate) nats: Option<String>,

    #[command(flatten)]
    pub(crate) access: NatsAccess,

    /// Share `state` and records of runs with the other front ends of this tenant, over the NATS server, encrypted
    #[arg(long, value_name = "NAME", requires_all = ["nats", "nats_tenant_key_file"])]
    pub(crate) nats_tenant: Option<String>,

    /// Read the key that all front ends of the tenant share, and no worker has, from this file, at least 32 characters
    #[arg(long, value_name = "FILE", requires = "nats_tenant")]
    pub(crate) nats_tenant_key_file: Option<PathBuf>,
}

/// The files for the queue of `--nats`. A struct that flattens them has an argument of that name.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NatsAccess {
    /// Read the key that all machines of the queue share from this file, at least 32 characters
    #[arg(long, value_name = "FILE", requires = "nats")]
    nats_key_file: Option<PathBuf>,

    /// Read the credentials for the NATS server from this file
    #[arg(long, value_name = "FILE", requires = "nats")]
    nats_credentials: Option<PathBuf>,

    /// Also trust the certificate authorities in this file (PEM) for the NATS server
    #[arg(long, value_name = "FILE", requires = "nats")]
    nats_ca: Option<PathBuf>,
}

impl NatsArguments {
    /// An option that was given without `--nats`, which it needs. clap does not check `requires` beside an option that
    /// conflicts with the required one, as `--isolation` does with `--nats`.
    pub(crate) fn without_queue(&self) -> Option<&'static str> {
        let NatsAccess { nats_key_file, nats_credentials, nats_ca } = &self.access;
        let given = [
            ("--nats-key-file", nats_key_file.is_some()),
            ("--nats-credentials", nats_credentials.is_some()),
            ("--nats-ca", nats_ca.is_some()),
            ("--nats-tenant", self.nats_tenant.is_some()),
            ("--nats-tenant-key-file", self.nats_tenant_key_file.is_some()),
        ];
        let first = given.iter().find(|(_, is_given)| *is_given);
        first.map(|(option, _)| *option).filter(|_| self.nats.is_none())
    }
}

impl NatsAccess {
    /// The queue on the server at `url`; `None` without an address, or without the key.
    pub(crate) fn queue_at(&self, url: Option<&str>) -> Option<NatsWorkers> {
        let mut workers = NatsWorkers::new(url?, self.nats_key_file.as_ref()?);
        workers.credentials_file.clone_from(&self.nats_credentials);
        workers.ca_file.clone_from(&self.nats_ca);
        Some(workers)
    }
}

/// Arguments of `cx worker`.
#[derive(Args, Debug)]
pub(crate) struct WorkerArguments {
    /// Address of the NATS server, such as tls://nats.example.com:4222; several addresses of a
    /// cluster are separated by commas [default: that of `isolation` in the configuration]
    #[arg(long, value_name = "URL", requires = "nats_key_file")]
    pub(crate) nats: Option<String>,

    #[command(flatten)]
    pub(crate) access: NatsAccess,

    /// Maximum number of scripts that run at the same time [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) concurrency: Option<u16>,

    /// Maximum number of scripts that wait in the queue, if this machine creates it
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_queued: u32,

    /// Maximum wall-clock time of a script, whatever its own machine permits [default: as configured, else 10m]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) timeout: Option<Duration>,

    /// Maximum CPU time of a script, whatever its own machine permits [default: as configured, else 10m]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) cpu_time: Option<Duration>,

    /// Maximum memory of a script, whatever its own machine permits [default: as configured, else 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub(crate) memory: Option<usize>,

    /// Format of what is written to stderr: notes of the worker, and the logs that CX_LOG enables
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    /// Serve metrics in the Prometheus format at `/metrics` of this address, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    pub(crate) metrics: Option<SocketAddr>,

    /// Read the token that readers of the metrics must send from this file, which only you may
    /// read; changes take effect without a restart [default: CX_HTTP_TOKEN]
    #[arg(long, value_name = "FILE", requires = "metrics")]
    pub(crate) token_file: Option<PathBuf>,
}
