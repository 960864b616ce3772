//! Reads the files of other programs, whose mistakes are only warnings.

use std::path::PathBuf;

use super::{Loader, status};
use crate::config::clients::{Client, ClientFile, Layout};
use crate::config::environment::canonical;
use crate::config::file::{Provenance, read, text};
use crate::config::formats::MAX_SERVERS;
use crate::config::mcpproxy;
use crate::config::merge::{Layer, LayerSource};
use crate::config::own::read_foreign;
use crate::config::parsed::Settings;
use crate::config::resolved::{ConfigFileStatus, ConfigWarningCode};
use crate::config::settings::apply_imported;

impl Loader<'_> {
    /// Adds the servers of the file that `mcpConfigPath` names. The user has named the file and not
    /// its content, so one in the workspace must still be trusted. A link cannot take it out of
    /// the workspace.
    pub(super) fn import_servers_file(&mut self, path: PathBuf) {
        let is_inside = path.starts_with(self.workspace) || canonical(&path).starts_with(self.workspace);
        let provenance = if is_inside { Provenance::Workspace } else { Provenance::User };
        if self.config.files.iter().all(|known| known.path != path) {
            self.import_file(&ClientFile {
                client: &Client::MCP_JSON,
                path,
                provenance,
                role: "mcpConfigPath",
            });
        }
    }

    /// Adds the servers of a client's files. Mistakes in them are only warnings.
    pub(super) fn import(&mut self, client: &'static Client) {
        for file in client.files(self.workspace, self.environment) {
            if self.config.files.iter().any(|known| known.path == file.path) {
                continue;
            }
            if client.layout == Layout::Directory {
                self.import_directory(&file);
            } else {
                self.import_file(&file);
            }
        }
    }

    /// Reads a directory with one file per server.
    fn import_directory(&mut self, directory: &ClientFile) {
        let Ok(entries) = std::fs::read_dir(&directory.path) else {
            let role = directory.client.name;
            return self.config.add_file(&directory.path, role, ConfigFileStatus::Missing);
        };
        self.config.directories.push(directory.path.clone());
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .take(MAX_SERVERS)
            .collect();
        paths.sort();
        for path in paths {
            self.import_file(&ClientFile { path, ..directory.clone() });
        }
    }

    /// Adds the servers of one file.
    pub(super) fn import_file(&mut self, file: &ClientFile) {
        let (path, role) = (&file.path, file.role);
        let parsed = match read(path, file.provenance) {
            Ok(None) => return self.config.add_file(path, role, ConfigFileStatus::Missing),
            Ok(Some(bytes)) => text(&bytes)
                .map_err(|finding| vec![finding])
                .and_then(|text| file.client.parse(text))
                .map(|root| (root, bytes)),
            Err(finding) => Err(vec![finding]),
        };
        let (root, bytes) = match parsed {
            Ok(parsed) => parsed,
            Err(findings) => {
                self.config.add_file(path, role, ConfigFileStatus::Unusable);
                return self.config.warn_ignored(ConfigWarningCode::Unreadable, path, findings);
            }
        };
        let is_trusted = file.provenance != Provenance::Workspace || self.is_trusted(path, &bytes);
        self.config.add_file(path, role, status(is_trusted));
        let (mut servers, findings) = file.client.servers(&root, path, self.workspace);
        if file.client.is_mcpproxy() {
            let mut settings = Settings::default();
            let mut foreign = read_foreign(&mcpproxy::FILE, &root, &mut settings);
            servers.iter_mut().for_each(|entry| settings.server_defaults.fill(entry));
            apply_imported(&mut self.config, path, &settings);
            self.report_foreign(path, &mcpproxy::FILE, &mut foreign);
        }
        self.config.warn_ignored(ConfigWarningCode::ServerSkipped, path, findings);
        let source = if is_trusted { LayerSource::Foreign } else { LayerSource::UntrustedForeign };
        self.layers.push(Layer { file: path.clone(), servers, source });
    }
}
