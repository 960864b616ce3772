//! Common setup of commands: the configuration, and an executor made from it.

use std::env;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use cx::audit::AuditOptions;
use cx::text::one_line;
use cx::{
    AuditSettings, Config, Directories, Discovery, Executor, ExecutorBuilder, Grants, Isolation, LoadOptions,
    OptionName, ScriptLibrary, SharedTenant, StateStore, ToolError,
};

use crate::args::{NatsArguments, ScriptArguments, ToolsSource, TrailArguments};
use crate::diagnostic::{self, invalid};
use crate::progress::ProgressLine;
use crate::text::shown_path;

/// The name of the server of saved scripts.
const SCRIPTS_SERVER: &str = "scripts";

/// Loads the configuration: the files found from the working directory. Named files replace the servers of all other
/// files, but not the restrictions of the user's own file.
///
/// # Errors
///
/// Mistakes in it.
pub(crate) fn load(files: Vec<PathBuf>) -> anyhow::Result<Config> {
    Ok(Config::load(&load_options(files)?)?)
}

/// The options of [`load`].
///
/// # Errors
///
/// If there is no working directory.
pub(crate) fn load_options(files: Vec<PathBuf>) -> anyhow::Result<LoadOptions> {
    let workspace = env::current_dir().context("failed to find the working directory")?;
    let discover = if files.is_empty() { Discovery::All } else { Discovery::UserRules };
    Ok(LoadOptions { workspace, files, discover })
}

/// The cache directory; `None` if caches are disabled.
pub(crate) fn cache_directory(config: &Config) -> Option<PathBuf> {
    let cache = config.cache_directory.clone().or_else(|| Some(Directories::from_environment()?.cache));
    cache.filter(|_| config.cache_enabled)
}

/// The directory of tool lists; `None` if they are not stored.
pub(crate) fn lists_directory(config: &Config) -> Option<PathBuf> {
    cache_directory(config).map(|cache| cache.join("servers"))
}

/// An executor builder with that configuration, which stores its data in the user's directories. Scripts
/// can call saved scripts, and save some.
pub(crate) fn builder_for_runs(config: Config) -> ExecutorBuilder {
    let library = script_library(&config);
    with_scripts(builder(config), library)
}

/// An executor builder with that configuration, which stores its data in the user's directories, for
/// commands about tools: saved scripts are among those if there are any.
pub(crate) fn builder_for_tools(config: Config) -> ExecutorBuilder {
    let library = script_library(&config).filter(|library| !library.list().is_empty());
    with_scripts(builder(config), library)
}

fn with_scripts(builder: ExecutorBuilder, library: Option<ScriptLibrary>) -> ExecutorBuilder {
    match library {
        Some(library) => builder.scripts(library),
        None => builder,
    }
}

/// An executor builder with that configuration, which stores its data in the user's directories. Scripts cannot call
/// saved scripts.
pub(crate) fn builder(config: Config) -> ExecutorBuilder {
    let mut builder = Executor::builder();
    if let Some(lists) = lists_directory(&config) {
        builder = builder.cache_directory(lists);
    }
    if config.cache_enabled {
        builder = builder.fallback_cache_directory(temporary_cache());
    }
    if let Some(directories) = Directories::from_environment() {
        if let Ok(workspace) = env::current_dir() {
            builder = builder.state(state_store(&directories), workspace);
        }
        builder = builder.state_directory(directories.state);
    }
    builder.config(config)
}

/// The saved scripts that can be called here; `None` if the configuration has a server with the same name.
fn script_library(config: &Config) -> Option<ScriptLibrary> {
    let (directories, workspace) = (Directories::from_environment()?, env::current_dir().ok()?);
    if config.servers.iter().any(|server| server.name == SCRIPTS_SERVER) {
        diagnostic::print_warning(
            "scripts cannot call saved scripts, because a configured server has the name `scripts`; rename it",
        );
        return None;
    }
    Some(ScriptLibrary::new(&directories, &workspace))
}

/// The user's saved scripts, and those of the working directory.
///
/// # Errors
///
/// If there are no directories for data.
pub(crate) fn saved_scripts() -> anyhow::Result<ScriptLibrary> {
    let workspace = env::current_dir().context("failed to find the working directory")?;
    Ok(ScriptLibrary::new(&directories()?, &workspace))
}

/// The grants of the arguments.
///
/// # Errors
///
/// If a directory does not exist, or is not a directory.
pub(crate) fn grants(arguments: &ScriptArguments) -> anyhow::Result<Grants> {
    let directories = |flag: &str, paths: &[PathBuf]| -> anyhow::Result<Vec<PathBuf>> {
        paths
            .iter()
            .map(|path| directory(path).with_context(|| format!("{flag} {}", shown_path(path))))
            .collect()
    };
    let grants = Grants {
        read: directories("--allow-read", &arguments.allow_read).map_err(invalid)?,
        write: directories("--allow-write", &arguments.allow_write).map_err(invalid)?,
        net: arguments.allow_net.clone(),
    };
    grants.validate()?;
    Ok(grants)
}

/// The absolute path of a directory. Links are kept as written, because scripts name files as the user does.
fn directory(path: &Path) -> anyhow::Result<PathBuf> {
    let mut absolute = std::path::absolute(path).context("is not a path")?;
    if absolute.components().any(|component| component == Component::ParentDir) {
        absolute = absolute.canonicalize().context("cannot be opened")?;
    }
    let metadata = std::fs::metadata(&absolute).context("cannot be opened")?;
    anyhow::ensure!(metadata.is_dir(), "is not a directory");
    Ok(absolute)
}

/// Adds the audit trail that the argument or the configuration requests.
///
/// # Errors
///
/// If the trail has no directory.
pub(crate) fn with_audit(
    builder: ExecutorBuilder,
    settings: Option<&AuditSettings>,
    directory: Option<PathBuf>,
) -> anyhow::Result<ExecutorBuilder> {
    if settings.is_none() && directory.is_none() {
        return Ok(builder);
    }
    Ok(builder.audit(audit_options(settings, directory)?))
}

/// The options of the audit trail. The argument has precedence over the configured directory.
///
/// # Errors
///
/// If it has no directory.
pub(crate) fn audit_options(
    settings: Option<&AuditSettings>,
    directory: Option<PathBuf>,
) -> anyhow::Result<AuditOptions> {
    let configured = settings.and_then(|settings| settings.directory.clone());
    let directory = match directory.or(configured) {
        Some(directory) => directory,
        None => directories()?.state.join("audit"),
    };
    let mut options = AuditOptions::new(directory);
    if let Some(settings) = settings {
        options.required = settings.required;
        options.contents = settings.contents;
        options.retention_days = settings.retention_days;
    }
    Ok(options)
}

/// The directory of the audit trail that commands read.
///
/// # Errors
///
/// What is wrong with the configuration.
pub(crate) fn audit_directory(arguments: &TrailArguments) -> anyhow::Result<PathBuf> {
    if let Some(directory) = &arguments.audit {
        return Ok(directory.clone());
    }
    let config = load(Vec::new())?;
    Ok(audit_options(config.audit.as_ref(), None)?.directory)
}

/// The directory for Python's machine code if the cache directory cannot be used, or if there is none because `HOME` is
/// not set. Its name contains the user, because all users share the parent directory.
fn temporary_cache() -> PathBuf {
    env::temp_dir().join(format!("cx-{}", rustix::process::geteuid().as_raw()))
}

/// The store of the state that scripts keep between runs.
pub(crate) fn state_store(directories: &Directories) -> StateStore {
    StateStore::new(directories.state.join("scripts.sqlite3"))
}

/// The user's directories.
///
/// # Errors
///
/// If the environment has none.
pub(crate) fn directories() -> anyhow::Result<Directories> {
    Directories::from_environment().context(
        "there are no directories for data: set HOME, or XDG_CACHE_HOME, XDG_CONFIG_HOME and XDG_STATE_HOME",
    )
}

/// An executor for commands about tools, and how asking the servers went.
pub(crate) struct Tools {
    pub(crate) executor: Executor,
    /// The result of each server that was asked, without its tools. Empty without `--refresh`.
    pub(crate) refreshed: Vec<(String, Result<(), ToolError>)>,
}

/// An executor for commands about tools: with the configuration and, with `--refresh`, the current tool lists of the
/// servers. A failure is a warning.
///
/// # Errors
///
/// What is wrong with the configuration.
pub(crate) fn tools(source: &ToolsSource) -> anyhow::Result<Tools> {
    tools_with(source, false)
}

/// As [`tools`]; with `is_audited`, changes of definitions are written to the audit trail, and the caller closes the
/// executor: a closed one writes nothing.
fn tools_with(source: &ToolsSource, is_audited: bool) -> anyhow::Result<Tools> {
    let config = load(source.mcp_config.clone())?;
    if !source.json {
        diagnostic::print_warnings(&config.warnings);
    }
    let audit = config.audit.clone().filter(|_| is_audited);
    // Without a server of that name, saved scripts are listed as one, which is not asked.
    let has_own = config.servers.iter().any(|server| server.name == SCRIPTS_SERVER);
    let builder = with_audit(builder_for_tools(config), audit.as_ref(), None)?;
    let executor = builder.warm_instances(0).build()?;
    let mut refreshed = Vec::new();
    if source.refresh {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let line = ProgressLine::asking(&executor.server_names());
        refreshed = runtime.block_on(async {
            let refreshed = executor.refresh_tools().await;
            if !is_audited {
                executor.close().await;
            }
            refreshed
        });
        // Removed before anything is printed in its place.
        drop(line);
        refreshed.retain(|(server, _)| has_own || server != SCRIPTS_SERVER);
        for (server, result) in &refreshed {
            if let Err(error) = result {
                let server = one_line(server);
                diagnostic::print_warning(&format!("`{server}`: {}: {}", error.code, error.message));
            }
        }
    }
    Ok(Tools { executor, refreshed })
}

/// The executor of [`tools`].
///
/// # Errors
///
/// What is wrong with the configuration.
pub(crate) fn tools_executor(source: &ToolsSource) -> anyhow::Result<Executor> {
    Ok(tools(source)?.executor)
}

/// The executor of [`tools`], whose changes of definitions are in the audit trail. The caller [closes](close) it.
///
/// # Errors
///
/// What is wrong with the configuration.
pub(crate) fn audited_tools_executor(source: &ToolsSource) -> anyhow::Result<Executor> {
    Ok(tools_with(source, true)?.executor)
}

/// Ends the servers of an executor, and its audit trail.
///
/// # Errors
///
/// If the system refuses what waiting for that needs.
pub(crate) fn close(executor: &Executor) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(executor.close());
    Ok(())
}

/// The queue that the arguments name.
///
/// # Errors
///
/// If there is an option for a queue, and none is named.
pub(crate) fn nats(arguments: &NatsArguments) -> anyhow::Result<Option<Isolation>> {
    if let Some(option) = arguments.without_queue() {
        return Err(invalid(anyhow::anyhow!("`{option}` is for `--nats`, which is not given")));
    }
    let Some(mut workers) = arguments.access.queue_at(arguments.nats.as_deref()) else { return Ok(None) };
    let tenant = arguments.nats_tenant.clone().zip(arguments.nats_tenant_key_file.clone());
    workers.shared = tenant.map(|(name, key_file)| SharedTenant { name, key_file });
    Ok(Some(Isolation::Nats(workers)))
}

/// The executor, or why it cannot be built. Reports a problem with where scripts are executed under the name of
/// `argument`, if that has chosen it, or under `--isolation`.
pub(crate) fn built(
    built: Result<Executor, cx::Error>,
    argument: Option<&'static str>,
) -> anyhow::Result<Executor> {
    match (built, argument) {
        (Err(cx::Error::InvalidOptions { option: OptionName::Isolation, problem }), Some(argument)) => {
            Err(invalid(anyhow::anyhow!("invalid `{argument}`: {problem}")))
        }
        (built, _) => Ok(built?),
    }
}

/// Where scripts are executed: the argument selects the mode, and the configuration its options.
pub(crate) fn isolation(argument: Option<&Isolation>, configured: Option<Isolation>) -> Option<Isolation> {
    match (argument, configured) {
        (Some(Isolation::Process(_)), configured @ Some(Isolation::Process(_))) => configured,
        (Some(argument), _) => Some(argument.clone()),
        (None, configured) => configured,
    }
}
