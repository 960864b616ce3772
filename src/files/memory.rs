//! A tree of files in memory.
//!
//! Nodes are in a table, not in each other: a tree can be deeper than any path, and dropping it needs no
//! stack. Every node and every byte is counted before it is allocated.
//!
//! In-memory file systems of crates, such as `MemoryFS` of `vfs`, are meant for tests and allocate
//! whatever is written. A budget around one would not know what its nodes and names take.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;

use super::budget::MemoryBudget;
use super::clock::Clock;
use super::error::{FileError, FileErrorCode};
use super::metadata::{Entry, EntryKind, Metadata};

/// Bytes that are counted for a file or directory in addition to its name and content: the node, its entry
/// in its directory, and what allocators add.
const NODE_BYTES: usize = 512;

/// Smallest capacity of a file that has content.
const MIN_CAPACITY: usize = 64;

/// The number of the root.
const ROOT: u64 = 1;

const FULL: &str = "the scratch directory counts as memory of the run";

/// A tree of directories and files.
pub(super) struct MemoryTree {
    nodes: HashMap<u64, Node>,
    next: u64,
    budget: Arc<MemoryBudget>,
    clock: Arc<Clock>,
}

enum Node {
    Directory(Directory),
    File(Arc<MemoryFile>),
}

struct Directory {
    entries: BTreeMap<String, u64>,
    modified: u64,
}

/// A file. It exists as long as it has a name or is open.
pub(crate) struct MemoryFile {
    id: u64,
    content: Mutex<Content>,
    budget: Arc<MemoryBudget>,
    clock: Arc<Clock>,
}

struct Content {
    bytes: Vec<u8>,
    /// Bytes that are counted for it.
    counted: usize,
    modified: u64,
}

impl MemoryTree {
    pub(super) fn new(budget: Arc<MemoryBudget>, clock: Arc<Clock>) -> Self {
        let root = Directory { entries: BTreeMap::new(), modified: clock.now() };
        Self { nodes: HashMap::from([(ROOT, Node::Directory(root))]), next: ROOT + 1, budget, clock }
    }

    pub(super) fn metadata(&self, names: &[String]) -> Result<Metadata, FileError> {
        let id = self.find(names)?;
        match self.node(id)? {
            Node::File(file) => Ok(file.metadata()),
            Node::Directory(directory) => Ok(Metadata {
                kind: EntryKind::Directory,
                size: 0,
                modified: directory.modified,
                id: (1, id),
            }),
        }
    }

    /// The first entry after `after` in the order of names. What is created or deleted between two calls is
    /// seen or not; every other entry is seen once.
    pub(super) fn next_entry(
        &self,
        names: &[String],
        after: Option<&str>,
    ) -> Result<Option<Entry>, FileError> {
        let directory = self.directory(self.find(names)?)?;
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let Some((name, &id)) = directory.entries.range::<str, _>((start, Bound::Unbounded)).next() else {
            return Ok(None);
        };
        Ok(Some(Entry { name: name.clone(), kind: self.kind(id) }))
    }

    pub(super) fn entries(&self, names: &[String]) -> Result<Vec<Entry>, FileError> {
        let directory = self.directory(self.find(names)?)?;
        let entry = |(name, &id): (&String, &u64)| Entry { name: name.clone(), kind: self.kind(id) };
        Ok(directory.entries.iter().map(entry).collect())
    }

    pub(super) fn create_directory(&mut self, names: &[String]) -> Result<(), FileError> {
        let now = self.clock.now();
        let directory = |_id| Node::Directory(Directory { entries: BTreeMap::new(), modified: now });
        self.add(names, directory).map(|_id| ())
    }

    /// Opens a file. With `create` it need not exist, with `exclusive` it must not.
    pub(super) fn open(
        &mut self,
        names: &[String],
        create: bool,
        exclusive: bool,
    ) -> Result<Arc<MemoryFile>, FileError> {
        match self.find(names) {
            Ok(_) if create && exclusive => Err(FileErrorCode::Exists.into()),
            Ok(id) => match self.node(id)? {
                Node::File(file) => Ok(Arc::clone(file)),
                Node::Directory(_) => Err(FileErrorCode::IsDirectory.into()),
            },
            Err(error) if error.code == FileErrorCode::NoEntry && create => {
                let (budget, clock) = (Arc::clone(&self.budget), Arc::clone(&self.clock));
                let file = |id| Node::File(Arc::new(MemoryFile::new(id, budget, clock)));
                let id = self.add(names, file)?;
                match self.node(id)? {
                    Node::File(file) => Ok(Arc::clone(file)),
                    Node::Directory(_) => Err(FileErrorCode::IsDirectory.into()),
                }
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn remove_file(&mut self, names: &[String]) -> Result<(), FileError> {
        match self.node(self.find(names)?)? {
            Node::Directory(_) => Err(FileErrorCode::IsDirectory.into()),
            Node::File(_) => self.remove(names),
        }
    }

    pub(super) fn remove_directory(&mut self, names: &[String]) -> Result<(), FileError> {
        let directory = self.directory(self.find(names)?)?;
        if !directory.entries.is_empty() {
            return Err(FileErrorCode::NotEmpty.into());
        }
        self.remove(names)
    }

    /// Moves a file or directory. A file or directory that has the new name already is replaced as
    /// POSIX prescribes.
    pub(super) fn rename(&mut self, from: &[String], to: &[String]) -> Result<(), FileError> {
        let id = self.find(from)?;
        let (Some((from_name, from_parent)), Some((to_name, to_parent))) =
            (from.split_last(), to.split_last())
        else {
            return Err(FileErrorCode::Busy.into());
        };
        if to.len() > from.len() && to.starts_with(from) {
            return Err(FileErrorCode::Invalid.into());
        }
        let (from_parent, to_parent) = (self.find(from_parent)?, self.find(to_parent)?);
        let replaced = self.directory(to_parent)?.entries.get(to_name).copied();
        if replaced == Some(id) {
            return Ok(());
        }
        if let Some(replaced) = replaced {
            match (self.node(id)?, self.node(replaced)?) {
                (Node::Directory(_), Node::Directory(old)) if !old.entries.is_empty() => {
                    return Err(FileErrorCode::NotEmpty.into());
                }
                (Node::Directory(_), Node::File(_)) => return Err(FileErrorCode::NotDirectory.into()),
                (Node::File(_), Node::Directory(_)) => return Err(FileErrorCode::IsDirectory.into()),
                _ => {}
            }
        }
        match replaced {
            // Its name is counted already, so that nothing can fail from here on, and it is never lost for nothing.
            Some(replaced) => {
                self.nodes.remove(&replaced);
                self.budget.give_back(NODE_BYTES);
            }
            // The old name is counted until the new one is.
            None => self.count(to_name.len())?,
        }
        self.budget.give_back(from_name.len());
        let now = self.clock.now();
        if let Node::Directory(parent) = self.node_mut(from_parent)? {
            parent.entries.remove(from_name);
            parent.modified = now;
        }
        if let Node::Directory(parent) = self.node_mut(to_parent)? {
            parent.entries.insert(to_name.clone(), id);
            parent.modified = now;
        }
        Ok(())
    }

    pub(super) fn set_modified(&mut self, names: &[String], time: u64) -> Result<(), FileError> {
        let id = self.find(names)?;
        match self.node_mut(id)? {
            Node::File(file) => file.content.lock().modified = time,
            Node::Directory(directory) => directory.modified = time,
        }
        Ok(())
    }

    fn find(&self, names: &[String]) -> Result<u64, FileError> {
        names.iter().try_fold(ROOT, |id, name| {
            let found = self.directory(id)?.entries.get(name);
            found.copied().ok_or_else(|| FileErrorCode::NoEntry.into())
        })
    }

    fn node(&self, id: u64) -> Result<&Node, FileError> {
        self.nodes.get(&id).ok_or_else(|| FileErrorCode::NoEntry.into())
    }

    fn node_mut(&mut self, id: u64) -> Result<&mut Node, FileError> {
        self.nodes.get_mut(&id).ok_or_else(|| FileErrorCode::NoEntry.into())
    }

    fn directory(&self, id: u64) -> Result<&Directory, FileError> {
        match self.node(id)? {
            Node::Directory(directory) => Ok(directory),
            Node::File(_) => Err(FileErrorCode::NotDirectory.into()),
        }
    }

    fn kind(&self, id: u64) -> EntryKind {
        match self.nodes.get(&id) {
            Some(Node::Directory(_)) => EntryKind::Directory,
            _ => EntryKind::File,
        }
    }

    /// Adds a node, which must not exist.
    fn add(&mut self, names: &[String], make: impl FnOnce(u64) -> Node) -> Result<u64, FileError> {
        // The root exists.
        let Some((name, parent)) = names.split_last() else { return Err(FileErrorCode::Exists.into()) };
        let parent = self.find(parent)?;
        if self.directory(parent)?.entries.contains_key(name) {
            return Err(FileErrorCode::Exists.into());
        }
        self.count(NODE_BYTES + name.len())?;
        let id = self.next;
        self.next += 1;
        self.nodes.insert(id, make(id));
        let now = self.clock.now();
        if let Node::Directory(parent) = self.node_mut(parent)? {
            parent.entries.insert(name.clone(), id);
            parent.modified = now;
        }
        Ok(id)
    }

    fn remove(&mut self, names: &[String]) -> Result<(), FileError> {
        let Some((name, parent)) = names.split_last() else { return Err(FileErrorCode::Busy.into()) };
        let parent = self.find(parent)?;
        let now = self.clock.now();
        let Node::Directory(parent) = self.node_mut(parent)? else {
            return Err(FileErrorCode::NotDirectory.into());
        };
        if let Some(id) = parent.entries.remove(name) {
            parent.modified = now;
            self.nodes.remove(&id);
            self.budget.give_back(NODE_BYTES + name.len());
        }
        Ok(())
    }

    fn count(&self, bytes: usize) -> Result<(), FileError> {
        if self.budget.reserve(bytes) { Ok(()) } else { Err(full()) }
    }
}

impl MemoryFile {
    fn new(id: u64, budget: Arc<MemoryBudget>, clock: Arc<Clock>) -> Self {
        let content = Content { bytes: Vec::new(), counted: 0, modified: clock.now() };
        Self { id, content: Mutex::new(content), budget, clock }
    }

    pub(super) fn metadata(&self) -> Metadata {
        let content = self.content.lock();
        let size = content.bytes.len() as u64;
        Metadata { kind: EntryKind::File, size, modified: content.modified, id: (1, self.id) }
    }

    /// At most `length` bytes from `offset` on. None at the end of the file.
    pub(super) fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        let content = self.content.lock();
        let Ok(start) = usize::try_from(offset) else { return Vec::new() };
        let Some(rest) = content.bytes.get(start..) else { return Vec::new() };
        rest[..rest.len().min(length)].to_vec()
    }

    /// Writes at `offset`, or at the end. What is between the end and the offset becomes zero.
    pub(super) fn write(&self, offset: Option<u64>, bytes: &[u8]) -> Result<(), FileError> {
        let mut content = self.content.lock();
        let start = match offset {
            None => content.bytes.len(),
            Some(offset) => usize::try_from(offset).map_err(|_| too_large())?,
        };
        let end = start.checked_add(bytes.len()).ok_or_else(too_large)?;
        if !bytes.is_empty() {
            self.grow(&mut content, end)?;
            content.bytes[start..end].copy_from_slice(bytes);
        }
        content.modified = self.clock.now();
        Ok(())
    }

    pub(super) fn set_size(&self, size: u64) -> Result<(), FileError> {
        let size = usize::try_from(size).map_err(|_| too_large())?;
        let mut content = self.content.lock();
        if size > content.bytes.len() {
            self.grow(&mut content, size)?;
        } else {
            content.bytes.truncate(size);
            if size < content.counted / 2 {
                content.bytes.shrink_to_fit();
                self.budget.give_back(content.counted - size);
                content.counted = size;
            }
        }
        content.modified = self.clock.now();
        Ok(())
    }

    pub(super) fn set_modified(&self, time: u64) {
        self.content.lock().modified = time;
    }

    /// Makes the file at least `size` bytes long.
    fn grow(&self, content: &mut Content, size: usize) -> Result<(), FileError> {
        if size <= content.bytes.len() {
            return Ok(());
        }
        if size > content.counted {
            // Twice as much each time, so that appending takes linear time; exactly as much where that does
            // not fit.
            let doubled = content.counted.saturating_mul(2).max(size).max(MIN_CAPACITY);
            let counted =
                [doubled, size].into_iter().find(|wanted| self.budget.reserve(wanted - content.counted));
            let counted = counted.ok_or_else(full)?;
            let more = counted - content.bytes.len();
            if content.bytes.try_reserve_exact(more).is_err() {
                self.budget.give_back(counted - content.counted);
                return Err(full());
            }
            content.counted = counted;
        }
        content.bytes.resize(size, 0);
        Ok(())
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        self.budget.give_back(self.content.get_mut().counted);
    }
}

fn full() -> FileError {
    FileError::with_hint(FileErrorCode::NoSpace, FULL)
}

fn too_large() -> FileError {
    FileErrorCode::FileTooLarge.into()
}
