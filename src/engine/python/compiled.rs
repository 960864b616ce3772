//! The component's machine code, and its cache.
//!
//! The code travels in the program, compiled when that was built for the processors of all users.
//! The first process of a machine that runs Python unpacks it into the cache, with the initial memory
//! image; later ones map the file. If the code cannot be used on a machine, a build with the feature
//! `compile` compiles the component there, once.
//!
//! wasmtime executes what such a file contains, so the file must be as trustworthy as the program
//! itself. Nothing is loaded that another user could have written: `storage::private` checks the
//! directory, every directory above it, and the file. The file that was checked is the file that is
//! mapped, because both use the same descriptor. A file that fails a check leads to a warning and is
//! made again, never to an error.
//!
//! wasmtime also checks that this processor has what the code was compiled for, and that the code was
//! compiled with this engine's settings.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::image::{self, Parts};
use super::memory::Image;
use super::unpack;
use crate::engine::allocator::return_freed_memory;
use crate::engine::compile::CompileProgress;
use crate::machine::probe;
use crate::storage::private::{self, PrivateDirectory};

/// Subdirectory of the cache directory, of mode 0700.
const DIRECTORY: &str = "python";

const SUFFIX: &str = ".cwasm";
const LOCK: &str = "compile.lock";

/// Name of the temporary file, the same for all processes. Only the holder of the lock uses it, so
/// a file left by a killed process is overwritten by the next one.
const UNFINISHED: &str = ".unfinished";

/// Code is removed when no process has loaded it for this long. If two versions on one machine, or two
/// processes of which one has less address space, removed each other's code at once, both would make
/// it again at every start.
const MAX_UNUSED: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// How long to wait for another process that makes the code. Unpacking takes less than a second,
/// compiling takes seconds, or a minute on a slow machine. After this, the process makes it for
/// itself.
const MAX_WAIT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(20);

/// Memory in bytes that is mapped to unpack the machine code: the component, the code and the image,
/// and the decoders' buffers.
const UNPACK_MEMORY: usize = 384 << 20;

/// Size in bytes of the trailer, which follows the code and the image: a magic number, the length
/// of the code with its padding, the length of the image, and a digest of samples of both.
const TRAILER: usize = 8 + 8 + 8 + 32;
const MAGIC: &[u8; 8] = b"cx-code2";

/// Alignment of the image in the file, in bytes: the largest page size of the systems that wasmtime
/// supports.
const PAGE: usize = 64 * 1024;

/// Distance in bytes between the sampled pages that the digest covers. Hashing all of a 36 MB file
/// took 33 ms at every start, and everything else together 10 ms. Samples detect truncated and
/// zeroed files, but not a single flipped bit, which is left to the file system.
const SAMPLE_DISTANCE: u64 = 256 * 1024;
const SAMPLE: usize = 4096;

/// The component as embedded in the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// The component, compressed with zstd.
    pub(crate) compressed: &'a [u8],
    /// Output of `sha256sum` for `compressed`: the hexadecimal digest and a file name. Computed at
    /// build time, because hashing 10 MB would take milliseconds at every start.
    pub(crate) sha256: &'a str,
    /// Its machine code, if the program has any for its target.
    pub(crate) code: Option<PackedCode<'a>>,
}

/// Machine code that was compiled when the program was built, without the memory image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedCode<'a> {
    /// Compressed with zlib.
    pub(crate) compressed: &'a [u8],
    /// Digest of `compressed` in hexadecimal digits.
    pub(crate) sha256: &'a str,
}

/// A compiler of components.
#[derive(Clone, Copy)]
pub(super) struct Compiler {
    /// Digest of all that the code depends on besides the component.
    pub(super) fingerprint: fn(&Engine) -> [u8; 32],
    pub(super) compile: fn(&Engine, &[u8]) -> wasmtime::Result<Vec<u8>>,
}

/// Why there is no machine code at all. A failure to store it is only logged as a warning.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompileError {
    #[error("cannot set up WebAssembly on this system")]
    Engine(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("cannot decompress the Python component; this build of cx is damaged")]
    Decompress(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("cannot compile the Python component for this machine")]
    Compile(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(
        "this program's machine code for Python cannot be used here: {reason}; a build of cx with the \
         feature `compile` compiles it for this machine"
    )]
    NoCompiler { reason: String },
}

impl From<CompileError> for io::Error {
    /// For an engine that cannot be started: an error of the system keeps its kind.
    fn from(error: CompileError) -> Self {
        let kind = match &error {
            CompileError::Engine(source) => {
                source.downcast_ref::<Self>().map_or(ErrorKind::Unsupported, Self::kind)
            }
            CompileError::Decompress(_) => ErrorKind::InvalidData,
            CompileError::Compile(_) | CompileError::NoCompiler { .. } => ErrorKind::Unsupported,
        };
        Self::new(kind, error)
    }
}

impl CompileError {
    pub(super) fn engine(error: wasmtime::Error) -> Self {
        Self::Engine(error.into_boxed_dyn_error())
    }
}

/// Why code in a cache is not used.
#[derive(Debug, thiserror::Error)]
enum NotLoaded {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Engine(#[from] CompileError),
    #[error("wasmtime does not run it: {0:#}")]
    Refused(wasmtime::Error),
}

/// A component that is ready to be instantiated.
pub(super) struct Runnable {
    pub(super) component: Component,
    /// The initial memory image, if it is not part of the component.
    pub(super) image: Option<Image>,
}

/// Machine code and memory image, the content of a cache file.
struct Compiled {
    code: Vec<u8>,
    /// May be empty.
    image: Vec<u8>,
}

/// Loads the code of `source` from one of `caches`, or makes it and stores it in the first of them that
/// can be used: unpacks what is in the program, or else compiles.
///
/// # Errors
///
/// If the code in the program cannot be used and there is no compiler, or its compilation fails, or
/// the program is damaged.
pub(super) fn load(
    engine: &Engine,
    source: &Source<'_>,
    compiler: Option<Compiler>,
    caches: &[&Path],
    on_progress: &dyn Fn(CompileProgress),
) -> Result<Runnable, CompileError> {
    let mut loader = Loader {
        engine,
        directories: Vec::new(),
        problems: RefCell::default(),
        version: version(source),
        on_progress,
    };
    for cache in caches {
        match Directory::open(cache) {
            Ok(directory) => loader.directories.push(directory),
            Err(error) => loader.problem(cache, &error),
        }
    }
    let compiled_here = compiler.map(|compiler| {
        let name = loader.name(&hex::encode((compiler.fingerprint)(engine)));
        (compiler, name)
    });
    // Looked for first, because it exists only where the code in the program could not be used.
    if let Some((_, name)) = &compiled_here
        && let Some(runnable) = loader.stored(name)
    {
        count_request("hit");
        return Ok(runnable);
    }
    let refusal = match &source.code {
        Some(code) => match loader.load_or_make(&loader.name(code.sha256), || unpack(source, code))? {
            Ok(runnable) => return Ok(runnable),
            Err(refusal) => format!("{refusal:#}"),
        },
        None => "it has none for this kind of processor, or none that counts fuel".to_owned(),
    };
    let Some((compiler, name)) = compiled_here else {
        return Err(CompileError::NoCompiler { reason: refusal });
    };
    tracing::info!(reason = refusal, "Python is compiled for this machine");
    loader
        .load_or_make(&name, || compile(engine, source, compiler, on_progress))?
        .map_err(|refusal| CompileError::Compile(refusal.into_boxed_dyn_error()))
}

/// Counts a request to the cache, which was a `hit` or a `miss`.
fn count_request(result: &'static str) {
    metrics::counter!("cx_cache_requests_total", "cache" => "python_code", "result" => result).increment(1);
}

/// What loads code under one name or another.
struct Loader<'a> {
    engine: &'a Engine,
    /// The caches that exist and that only this user can write to, best first.
    directories: Vec<Directory>,
    /// Why code could not be stored in a cache.
    problems: RefCell<Vec<String>>,
    version: String,
    on_progress: &'a dyn Fn(CompileProgress),
}

impl Loader<'_> {
    /// File name of the code with this digest.
    fn name(&self, digest: &str) -> String {
        // 128 bits are enough to tell apart what one user has built.
        let digest = digest.get(..32).unwrap_or(digest);
        format!("{}{digest}{SUFFIX}", self.version)
    }

    /// Loads the code from a cache.
    fn stored(&self, name: &str) -> Option<Runnable> {
        self.directories.iter().find_map(|directory| directory.load(self.engine, name))
    }

    /// Loads the code from a cache, or makes it and stores it. The inner error is wasmtime's reason why
    /// it does not run this code, although it is whole.
    fn load_or_make(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Compiled, CompileError>,
    ) -> Result<wasmtime::Result<Runnable>, CompileError> {
        if let Some(runnable) = self.stored(name) {
            count_request("hit");
            return Ok(Ok(runnable));
        }
        count_request("miss");
        let mut made = None;
        let mut make = Some(make);
        for directory in &self.directories {
            let lock = directory.lock(self.on_progress);
            let Ok(_lock) = lock.inspect_err(|error| self.problem(&directory.path, error)) else { continue };
            // Another process that held the lock may have just written it.
            if let Some(runnable) = directory.load(self.engine, name) {
                return Ok(Ok(runnable));
            }
            if let Some(make) = make.take() {
                made = Some(make()?);
            }
            let Some(made) = &made else { break };
            if let Err(error) = directory.write(name, made) {
                self.problem(&directory.path, &error);
                continue;
            }
            directory.remove_unused(name);
            if let Some(runnable) = directory.load(self.engine, name) {
                return Ok(Ok(runnable));
            }
            // wasmtime does not run it, and it takes 55 MB.
            let _ = directory.directory.remove(name);
            return adopt(self.engine, made);
        }
        let problems = self.problems.take();
        if !problems.is_empty() {
            (self.on_progress)(CompileProgress::NotKept(format!("{}: {ADVICE}", problems.join("; "))));
        }
        match (made, make) {
            (Some(made), _) => adopt(self.engine, &made),
            (None, Some(make)) => adopt(self.engine, &make()?),
            // One of the two is there.
            (None, None) => Err(CompileError::Engine("the code was made and lost".into())),
        }
    }

    fn problem(&self, cache: &Path, error: &io::Error) {
        let cache = cache.display();
        tracing::warn!(%error, %cache, "Python's machine code cannot be kept; {ADVICE}");
        let text = error.to_string();
        // Most errors of the system name no path.
        let named = text.contains(&*cache.to_string());
        self.problems.borrow_mut().push(if named { text } else { format!("{cache}: {text}") });
    }
}

/// What a user can do about a cache that cannot be used.
const ADVICE: &str = "set `cache.directory` in cx's configuration, or XDG_CACHE_HOME, to a directory \
    that only you can write to, with 100 MB of space";

/// Removes all compiled code from `cache` and returns the number of files removed. Processes that
/// have mapped the code keep it.
///
/// # Errors
///
/// If a file cannot be removed.
pub(crate) fn clear(cache: &Path) -> io::Result<usize> {
    let directory = cache.join(DIRECTORY);
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut count = 0;
    for entry in entries {
        let entry = entry?;
        // The lock file and the unfinished file stay, because another process may be compiling.
        if entry.file_name().to_string_lossy().ends_with(SUFFIX) {
            fs::remove_file(entry.path())?;
            count += 1;
        }
    }
    Ok(count)
}

/// Prefix of the name, which identifies the version.
fn version(source: &Source<'_>) -> String {
    let version = [env!("CARGO_PKG_VERSION"), source.sha256.trim()].join(" ");
    format!("{}-", hex::encode(&Sha256::digest(version)[..16]))
}

/// Decompresses the code and the component that are in the program, and takes the memory image out of
/// the component.
fn unpack(source: &Source<'_>, code: &PackedCode<'_>) -> Result<Compiled, CompileError> {
    probe::private_memory(UNPACK_MEMORY).map_err(|error| CompileError::Engine(error.into()))?;
    let started = Instant::now();
    let unpacked = unpack::component_and_code(source.compressed, code.compressed);
    let (component, code) = unpacked.map_err(|error| CompileError::Decompress(error.into()))?;
    let parts = image::take_apart(component).map_err(|error| CompileError::Decompress(error.into()))?;
    let compiled = Compiled { code, image: parts.image.unwrap_or_default() };
    drop(parts.component);
    return_freed_memory();
    tracing::debug!(took = ?started.elapsed(), "Python's machine code is unpacked");
    Ok(compiled)
}

fn compile(
    engine: &Engine,
    source: &Source<'_>,
    compiler: Compiler,
    on_progress: &dyn Fn(CompileProgress),
) -> Result<Compiled, CompileError> {
    on_progress(CompileProgress::Started);
    let started = Instant::now();
    let component =
        unpack::component(source.compressed).map_err(|error| CompileError::Decompress(error.into()))?;
    let Parts { component, image } =
        image::take_apart(component).map_err(|error| CompileError::Compile(error.into()))?;
    let code = (compiler.compile)(engine, &component)
        .map_err(|error| CompileError::Compile(error.into_boxed_dyn_error()))?;
    drop(component);
    // Frees the compiler's memory, about 270 MB.
    return_freed_memory();
    on_progress(CompileProgress::Done(started.elapsed()));
    Ok(Compiled { code, image: image.unwrap_or_default() })
}

/// Makes code runnable that this process has made or verified. The code stays in this process's
/// memory. The inner error is wasmtime's reason why it does not run this code.
fn adopt(engine: &Engine, compiled: &Compiled) -> Result<wasmtime::Result<Runnable>, CompileError> {
    #[expect(unsafe_code, reason = "compiled code has no safe way in")]
    // SAFETY: every caller has the code from the compiler, from the program itself, whose build script
    // compiled it, or from a file that passed `Directory::open` and `check_file`: `Directory::write`
    // wrote it, and only this user can write there.
    let component = unsafe { Component::deserialize(engine, &compiled.code) };
    let component = match component {
        Ok(component) => component,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let in_memory =
        || probe::file_size(compiled.image.len()).and_then(|()| Image::in_memory(&compiled.image));
    let image = (!compiled.image.is_empty()).then(in_memory).transpose();
    let image = image.map_err(|error| CompileError::Engine(error.into()))?;
    Ok(Ok(Runnable { component, image }))
}

/// The directory of compiled code.
struct Directory {
    directory: PrivateDirectory,
    /// For messages.
    path: PathBuf,
}

impl Directory {
    /// Creates the directory if it is missing, and checks it and every directory above it.
    fn open(cache: &Path) -> io::Result<Self> {
        let path = cache.join(DIRECTORY);
        Ok(Self { directory: PrivateDirectory::create_below_trusted(&path)?, path })
    }

    /// Loads the code with this name. Returns `None` if there is none, or none that can be used.
    fn load(&self, engine: &Engine, name: &str) -> Option<Runnable> {
        match self.try_load(engine, name) {
            Ok(runnable) => Some(runnable),
            Err(NotLoaded::File(error)) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(file = name, %error, "Python's machine code is not used and will be made again");
                None
            }
        }
    }

    fn try_load(&self, engine: &Engine, name: &str) -> Result<Runnable, NotLoaded> {
        let file = self.directory.open(name, OFlags::RDONLY)?;
        let lengths = check_file(&file, name)?;
        // Marks the file as used. On a read-only disk this fails, but nothing is removed there
        // either.
        let _ = file.set_modified(SystemTime::now());
        // The path refers to the descriptor, so that this file is mapped even if the name now
        // refers to another one.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        if Path::new(&path).exists() {
            #[expect(unsafe_code, reason = "compiled code has no safe way in")]
            // SAFETY: the file is what `Directory::write` wrote, because `check_file` has found our
            // trailer, and only this user could have written it: `Directory::open` has checked
            // every directory on the way, and `check_file` the owner and mode. The file is not
            // changed while it is mapped: `Directory::write` replaces it and never writes to it.
            let component = unsafe { Component::deserialize_file(engine, &path) };
            let component = component.map_err(NotLoaded::Refused)?;
            let Lengths { code, image } = lengths;
            let image = (image > 0).then_some(Image { file, offset: code as u64, length: image });
            return Ok(Runnable { component, image });
        }
        // Without `/proc` the file is read instead of mapped.
        let mut compiled = Compiled { code: vec![0; lengths.code], image: vec![0; lengths.image] };
        file.read_exact_at(&mut compiled.code, 0)?;
        file.read_exact_at(&mut compiled.image, lengths.code as u64)?;
        adopt(engine, &compiled)?.map_err(NotLoaded::Refused)
    }

    /// Writes the complete file or nothing. Only the holder of the lock may call it.
    fn write(&self, name: &str, compiled: &Compiled) -> io::Result<()> {
        let Compiled { code, image } = compiled;
        let padding = vec![0; code.len().next_multiple_of(PAGE) - code.len()];
        self.directory.replace(name, UNFINISHED, |file| {
            for part in [code, &padding, image] {
                file.write_all(part)?;
            }
            let code = (code.len() + padding.len()) as u64;
            let image = image.len() as u64;
            let digest = digest_of_samples(file, code + image)?;
            file.write_all(MAGIC)?;
            file.write_all(&code.to_le_bytes())?;
            file.write_all(&image.to_le_bytes())?;
            file.write_all(&digest)
        })?;
        // If the new name is not durable, the code may have to be made again.
        let _ = self.directory.sync();
        Ok(())
    }

    /// Removes all code, except this, that no process has loaded for [`MAX_UNUSED`]. Processes that
    /// have mapped it keep it.
    fn remove_unused(&self, except: &str) {
        let is_other = |name: &String| name.ends_with(SUFFIX) && name != except;
        let removed = self.directory.names().and_then(|names| {
            for name in names.iter().filter(|name| is_other(name)) {
                if self.age(name)? > MAX_UNUSED {
                    self.directory.remove(name)?;
                }
            }
            Ok(())
        });
        if let Err(error) = removed {
            tracing::debug!(%error, "unused machine code stays");
        }
    }

    /// Time since the file was last loaded or written.
    fn age(&self, name: &str) -> io::Result<Duration> {
        let modified = self.directory.open(name, OFlags::RDONLY)?.metadata()?.modified()?;
        // A modification time in the future counts as now.
        Ok(modified.elapsed().unwrap_or_default())
    }

    /// Acquires the lock for making code; the kernel releases it when its holder dies. Fails after
    /// [`MAX_WAIT`], or if the file system has no locks or cannot be written to.
    fn lock(&self, on_progress: &dyn Fn(CompileProgress)) -> io::Result<File> {
        let file = self.directory.open(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        let on_wait = || on_progress(CompileProgress::Waiting);
        private::acquire(file, MAX_WAIT, PAUSE, on_wait).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => {
                io::Error::new(error.kind(), "another process has made Python's code for too long")
            }
            _ => error,
        })
    }
}

/// Lengths of the parts of a file, in bytes.
struct Lengths {
    /// Includes the padding.
    code: usize,
    image: usize,
}

/// Checks that only this user can write to the file, and that the samples match the digest.
fn check_file(file: &File, name: &str) -> io::Result<Lengths> {
    let metadata = private::check_file(file, Path::new(name))?;
    let damaged = || io::Error::new(ErrorKind::InvalidData, "it is damaged");
    let length = metadata.len().checked_sub(TRAILER as u64).ok_or_else(damaged)?;
    let mut trailer = [0; TRAILER];
    file.read_exact_at(&mut trailer, length)?;
    let (magic, rest) = trailer.split_first_chunk::<8>().ok_or_else(damaged)?;
    let (code, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
    let (image, digest) = rest.split_first_chunk().ok_or_else(damaged)?;
    let (code, image) = (u64::from_le_bytes(*code), u64::from_le_bytes(*image));
    let is_whole = magic == MAGIC && code.checked_add(image) == Some(length);
    if !is_whole || digest != digest_of_samples(file, length)? {
        return Err(damaged());
    }
    let bytes = |length| usize::try_from(length).map_err(|_| damaged());
    Ok(Lengths { code: bytes(code)?, image: bytes(image)? })
}

/// Digest of one page in each [`SAMPLE_DISTANCE`] of the first `length` bytes, and of the last
/// page.
fn digest_of_samples(file: &File, length: u64) -> io::Result<[u8; 32]> {
    let mut digest = Sha256::new();
    let mut page = [0; SAMPLE];
    let last = length.saturating_sub(SAMPLE as u64);
    let mut offset = 0;
    while offset < last {
        file.read_exact_at(&mut page, offset)?;
        digest.update(page);
        offset += SAMPLE_DISTANCE;
    }
    let rest = usize::try_from(length - last).unwrap_or(SAMPLE);
    file.read_exact_at(&mut page[..rest], last)?;
    digest.update(&page[..rest]);
    Ok(digest.finalize().into())
}

#[cfg(test)]
mod tests;
