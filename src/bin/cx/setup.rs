//! What commands start with: the configuration, and an executor made of it.

use std::env;
use std::path::PathBuf;

use anyhow::Context as _;
use cx::text::one_line;
use cx::{Config, Directories, Discovery, Executor, ExecutorBuilder, LoadOptions, StateStore, ToolError};

use crate::args::ToolsSource;
use crate::diagnostic;

/// Loads the configuration: the files found from the working directory. Files that are named
/// replace the servers of all of them, and not what the user's own file allows.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn load(files: Vec<PathBuf>) -> anyhow::Result<Config> {
    Ok(Config::load(&load_options(files)?)?)
}

/// What [`load`] loads.
///
/// # Errors
///
/// If there is no working directory.
pub(crate) fn load_options(files: Vec<PathBuf>) -> anyhow::Result<LoadOptions> {
    let workspace = env::current_dir().context("failed to find the working directory")?;
    let discover = if files.is_empty() { Discovery::All } else { Discovery::UserRules };
    Ok(LoadOptions { workspace, files, discover })
}

/// An executor builder with that configuration, which stores its data in the user's directories.
pub(crate) fn builder(config: Config) -> ExecutorBuilder {
    let directories = Directories::from_environment();
    let mut builder = Executor::builder();
    let cache = config.cache_directory.clone().or_else(|| Some(directories.as_ref()?.cache.clone()));
    if config.cache_enabled {
        if let Some(cache) = cache {
            builder = builder.cache_directory(cache.join("servers"));
        }
        builder = builder.fallback_cache_directory(temporary_cache());
    }
    if let Some(directories) = directories {
        if let Ok(workspace) = env::current_dir() {
            builder = builder.state(state_store(&directories), workspace);
        }
        builder = builder.state_directory(directories.state);
    }
    builder.config(config)
}

/// Where Python's machine code is kept if the cache directory cannot be used, or if there is none
/// because `HOME` is not set. The name has the user, because all users share the directory.
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
    /// What each server that was asked answered, without its tools. Empty without `--refresh`.
    pub(crate) refreshed: Vec<(String, Result<(), ToolError>)>,
}

/// An executor for commands about tools: with the configuration and, with `--refresh`, the current
/// tool lists of the servers. What fails is a warning.
///
/// # Errors
///
/// What is wrong with the configuration.
pub(crate) fn tools(source: &ToolsSource) -> anyhow::Result<Tools> {
    let config = load(source.mcp_config.clone())?;
    if !source.json {
        diagnostic::print_warnings(&config.warnings);
    }
    let executor = builder(config).warm_instances(0).build()?;
    let mut refreshed = Vec::new();
    if source.refresh {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        refreshed = runtime.block_on(async {
            let refreshed = executor.refresh_tools().await;
            executor.close().await;
            refreshed
        });
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
