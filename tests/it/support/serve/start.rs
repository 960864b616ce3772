//! How a server is started.

use std::io::PipeWriter;

use super::*;

/// How to start a [`Client`].
pub(crate) struct Start {
    servers: Value,
    config: Value,
    arguments: Vec<String>,
    variables: Vec<(&'static str, &'static str)>,
    reads: bool,
    has_empty_cache: bool,
    keeps_stderr: bool,
    stderr: Option<PipeWriter>,
    directory: Option<Arc<TempDir>>,
    /// A program and its arguments, which executes the command after them.
    wrapper: Vec<String>,
}

impl Start {
    pub(crate) fn new() -> Self {
        Self {
            servers: json!({}),
            config: json!({}),
            arguments: Vec::new(),
            variables: Vec::new(),
            reads: true,
            has_empty_cache: false,
            keeps_stderr: false,
            stderr: None,
            directory: None,
            wrapper: Vec::new(),
        }
    }

    /// Executed by another program, which gets the command as its last arguments.
    pub(crate) fn wrapped(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// In the same workspace, and with the same files of the person, as another client.
    pub(crate) fn beside(mut self, other: &Client) -> Self {
        self.directory = Some(Arc::clone(&other.directory));
        self
    }

    /// In this workspace, with its existing files.
    pub(crate) fn within(mut self, directory: Arc<TempDir>) -> Self {
        self.directory = Some(directory);
        self
    }

    /// Adds a server of `tests/chaos`, whose notes are in the file with its name.
    pub(crate) fn server(mut self, name: &str, arguments: &[&str]) -> Self {
        self.servers[name] = json!({ "mode": arguments });
        self
    }

    /// As [`server`](Self::server), with more keys of its entry.
    pub(crate) fn server_with(mut self, name: &str, arguments: &[&str], more: Value) -> Self {
        self.servers[name] = json!({ "mode": arguments, "more": more });
        self
    }

    /// Adds to the person's own configuration.
    pub(crate) fn config(mut self, name: &str, value: Value) -> Self {
        self.config[name] = value;
        self
    }

    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    pub(crate) fn variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.push((name, value));
        self
    }

    /// On a machine that has never run Python: with its own cache.
    pub(crate) fn with_empty_cache(mut self) -> Self {
        self.has_empty_cache = true;
        self
    }

    /// Keeps the server's stderr: [`Client::stderr`].
    pub(crate) fn with_stderr(mut self) -> Self {
        self.keeps_stderr = true;
        self
    }

    /// The server's stderr is this pipe.
    pub(crate) fn with_stderr_to(mut self, pipe: PipeWriter) -> Self {
        self.stderr = Some(pipe);
        self
    }

    /// The client reads nothing before [`Client::read`].
    pub(crate) fn without_reading(mut self) -> Self {
        self.reads = false;
        self
    }

    /// The command that starts it, with pipes for a client, and the directory of its files.
    pub(crate) fn command(&self) -> (Command, Arc<TempDir>) {
        let directory = self.directory.clone().unwrap_or_else(|| Arc::new(tempfile::tempdir().unwrap()));
        let cache = if self.has_empty_cache {
            directory.path().join("cache")
        } else {
            crate::support::python_cache()
        };
        let mut servers = serde_json::Map::new();
        for (name, server) in self.servers.as_object().unwrap() {
            let notes = directory.path().join(name);
            let mut arguments = vec!["stdio".to_owned(), "--notes".to_owned(), notes.display().to_string()];
            let mode = server["mode"].as_array().unwrap();
            arguments.extend(mode.iter().map(|word| word.as_str().unwrap().to_owned()));
            let mut entry = json!({ "command": chaos::program(), "args": arguments });
            for (key, value) in server["more"].as_object().into_iter().flatten() {
                entry[key] = value.clone();
            }
            servers.insert(name.clone(), entry);
        }
        let mut config = self.config.clone();
        config["mcpServers"] = servers.into();
        let words: Vec<&str> =
            self.wrapper.iter().map(String::as_str).chain([env!("CARGO_BIN_EXE_cx")]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("serve");
        if config.as_object().unwrap().len() == 1 {
            let file = directory.path().join("mcp.json");
            std::fs::write(&file, config.to_string()).unwrap();
            command.arg("--mcp-config").arg(&file);
        } else {
            // A file that is named on the command line can have only servers.
            std::fs::create_dir_all(directory.path().join("cx")).unwrap();
            std::fs::write(directory.path().join("cx/config.json"), config.to_string()).unwrap();
        }
        command
            .args(&self.arguments)
            .current_dir(directory.path())
            .env("HOME", directory.path())
            .env("XDG_STATE_HOME", directory.path())
            .env("XDG_CONFIG_HOME", directory.path())
            .env("XDG_CACHE_HOME", cache)
            .env_remove("CX_LOG")
            .env_remove("CX_HTTP_TOKEN")
            .env_remove("CX_HTTP_TOKENS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        if self.keeps_stderr {
            command.stderr(std::fs::File::create(directory.path().join("stderr")).unwrap());
        }
        if let Some(pipe) = &self.stderr {
            command.stderr(pipe.try_clone().unwrap());
        }
        (command, directory)
    }

    pub(crate) fn spawn(self) -> Client {
        let (mut command, directory) = self.command();
        let mut child = command.spawn().unwrap();
        let mut client = Client {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            lines: None,
            seen: VecDeque::new(),
            last_id: 0,
            directory,
            child,
        };
        if self.reads {
            client.read();
        }
        client
    }
}
