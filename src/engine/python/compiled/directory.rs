//! The cache: a directory of machine code, and its files.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::code::{CompileError, Compiled, Runnable, adopt};
use crate::engine::compile::CompileProgress;
use crate::engine::python::memory::Image;
use crate::storage::private::{self, PrivateDirectory};

/// Subdirectory of the cache directory, of mode 0700.
pub(super) const DIRECTORY: &str = "python";

pub(super) const SUFFIX: &str = ".cwasm";
pub(super) const LOCK: &str = "compile.lock";

/// Name of the temporary file, the same for all processes. Only the holder of the lock uses it, so
/// a file left by a killed process is overwritten by the next one.
pub(super) const UNFINISHED: &str = ".unfinished";

/// Code is removed when no process has loaded it for this long. If two versions on one machine, or two
/// processes of which one has less address space, removed each other's code at once, both would make
/// it again at every start.
pub(super) const MAX_UNUSED: Duration = Duration::from_hours(14 * 24);

/// How long to wait for another process that makes the code. Unpacking takes less than a second,
/// compiling takes seconds, or a minute on a slow machine. After this, the process makes it for
/// itself.
const MAX_WAIT: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_millis(20);

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
pub(super) const SAMPLE: usize = 4096;

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

/// The directory of compiled code.
pub(super) struct Directory {
    pub(super) directory: PrivateDirectory,
    /// For messages.
    pub(super) path: PathBuf,
}

impl Directory {
    /// Creates the directory if it is missing, and checks it and every directory above it.
    pub(super) fn open(cache: &Path) -> io::Result<Self> {
        let path = cache.join(DIRECTORY);
        Ok(Self { directory: PrivateDirectory::create_below_trusted(&path)?, path })
    }

    /// Loads the code with this name. Returns `None` if there is none, or none that can be used.
    pub(super) fn load(&self, engine: &Engine, name: &str) -> Option<Runnable> {
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
    pub(super) fn write(&self, name: &str, compiled: &Compiled) -> io::Result<()> {
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
    pub(super) fn remove_unused(&self, except: &str) {
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
    pub(super) fn lock(&self, on_progress: &dyn Fn(CompileProgress)) -> io::Result<File> {
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
