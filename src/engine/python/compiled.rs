//! The component's machine code, and its cache.
//!
//! The program contains the code, which was compiled at build time for the processors of all users. The first process
//! of a machine that runs Python unpacks it into the cache, with the initial memory image; later ones map the file. If
//! the code cannot be used on a machine, a build with the feature `compile` compiles the component there, once.
//!
//! wasmtime executes what such a file contains, so the file must be as trustworthy as the program
//! itself. Nothing is loaded that another user could have written: `storage::private` checks the
//! directory, every directory above it, and the file. The file that was checked is the file that is
//! mapped, because both use the same descriptor. A file that fails a check leads to a warning and is
//! made again, never to an error.
//!
//! wasmtime also checks that this processor has what the code was compiled for, and that the code was
//! compiled with this engine's settings.

mod code;
mod directory;

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::time::Instant;

use sha2::{Digest as _, Sha256};
use wasmtime::Engine;

pub(crate) use self::code::CompileError;
pub(super) use self::code::Runnable;
use self::code::{Compiled, adopt};
pub(crate) use self::directory::clear;
use self::directory::{Directory, SUFFIX};
use super::image::{self, Parts};
use super::unpack;
use crate::engine::allocator::return_freed_memory;
use crate::engine::compile::CompileProgress;
use crate::machine::probe;

/// Memory in bytes that is mapped to unpack the machine code: the component, the code and the image,
/// and the decoders' buffers.
const UNPACK_MEMORY: usize = 384 << 20;

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
    // Code that was compiled on this machine comes first, because it exists only where the code in
    // the program could not be used.
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

/// Loads code from the caches by its name, or makes it and stores it.
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
            // The file takes 55 MB, and wasmtime does not run it.
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
            // Either the code or the function that makes it is there.
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

#[cfg(test)]
mod tests;
