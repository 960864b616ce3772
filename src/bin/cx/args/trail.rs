//! Arguments of the commands that show what runs have done and do: `audit`, `runs`, `ui`, `top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};

use super::time::parse_time;

/// Default number of runs that `cx runs` lists.
pub(crate) const LISTED_RUNS: usize = 20;

/// Maximum number of runs that it lists.
pub(crate) const MAX_LISTED_RUNS: usize = 10_000;

/// Where the audit trail is.
#[derive(Args, Debug)]
pub(crate) struct TrailArguments {
    /// The directory of the trail [default: as configured, else below the state directory]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) audit: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct AuditArguments {
    #[command(flatten)]
    pub(crate) trail: TrailArguments,

    #[command(subcommand)]
    pub(crate) command: AuditCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Check the chain of hashes and the checkpoints
    Verify {
        /// Compare with a checkpoint that was kept elsewhere; can be repeated
        #[arg(long, value_name = "FILE")]
        checkpoint: Vec<PathBuf>,

        /// Use the public key in this file instead of the one beside the trail
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,

        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print events
    Show {
        #[command(flatten)]
        filter: LineFilter,

        /// Print what is appended, until interrupted
        #[arg(long)]
        follow: bool,

        /// Print the lines as they are in the files
        #[arg(long)]
        json: bool,
    },
    /// Sign the end of the trail, to keep the signature elsewhere
    Checkpoint {
        /// Write the checkpoint to this file
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Print events in a format of other programs
    Export {
        /// The format
        #[arg(long, value_enum, value_name = "FORMAT")]
        format: AuditFormat,

        #[command(flatten)]
        filter: LineFilter,
    },
}

/// Which lines of a trail are meant.
#[derive(Args, Debug)]
pub(crate) struct LineFilter {
    /// Only the lines of this run: its id, or its beginning
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,

    /// Only the lines of the last TIME, such as 1h or 2days
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) since: Option<Duration>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum AuditFormat {
    /// Log records of OpenTelemetry, as lines of JSON
    OtlpLogs,
    /// A table with a line for each event
    Csv,
}

#[derive(Args, Debug)]
pub(crate) struct RunsArguments {
    #[command(flatten)]
    pub(crate) trail: TrailArguments,

    // Without one the last runs are listed.
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, the latest last
    List {
        /// Maximum number of runs, up to 10000
        #[arg(
            long,
            value_name = "N",
            default_value_t = LISTED_RUNS,
            value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_LISTED_RUNS as u64)
        )]
        limit: usize,

        /// Only the runs of the last TIME, such as 1h or 2days
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        since: Option<Duration>,

        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a run did
    Show {
        /// The run's id as `cx runs list` prints it, or its beginning [default: the latest run]
        id: Option<String>,

        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Open the waterfall of a run in the browser
    ///
    /// The trace that `cx serve --traces` has kept, with source and output, else what the audit trail knows.
    /// Prints the name of the page's file.
    Open {
        /// The run's id as `cx runs list` prints it, or its beginning [default: the latest run]
        id: Option<String>,

        /// Look for the trace in this directory too [default: those of running servers]
        #[arg(long, value_name = "DIR")]
        traces: Option<PathBuf>,

        /// Only print the name of the file
        #[arg(long)]
        no_browser: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct UiArguments {
    #[command(flatten)]
    pub(crate) trail: TrailArguments,

    /// Only print the address
    #[arg(long)]
    pub(crate) no_browser: bool,

    /// Serve the page at this port; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
}

#[derive(Args, Debug)]
pub(crate) struct TopArguments {
    /// Print one frame as text and end, for scripts
    #[arg(long)]
    pub(crate) once: bool,
}
