use std::cell::RefCell;
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::sync::Barrier;
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use tempfile::TempDir;
use wasmtime::Config;

use super::directory::{DIRECTORY, LOCK, MAX_UNUSED, SAMPLE, UNFINISHED};
use super::*;
use crate::engine::compile::CodeForm;
use crate::engine::python::compiler::INCLUDED;
use crate::engine::python::engine::config;
use crate::engine::python::memories::Memories;

/// An empty component, as a zstd frame with one raw block, which is how zstd stores what it cannot
/// compress.
fn compressed() -> Vec<u8> {
    let component = b"\0asm\x0d\0\x01\0";
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, component.len() as u8];
    frame.extend_from_slice(&[((component.len() as u8) << 3) | 1, 0, 0]);
    frame.extend_from_slice(component);
    frame
}

fn engine() -> Engine {
    Engine::new(Config::new().wasm_component_model(true)).unwrap()
}

/// A cache directory that no other user can write to. It is created beside the test program, because
/// `/tmp` is not such a directory.
fn cache() -> TempDir {
    let program = std::env::current_exe().unwrap();
    tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(program.parent().unwrap())
        .unwrap()
}

/// Loads the component, for which the program has no code, and returns how often it was compiled.
fn loads_with(sha256: &str, engine: &Engine, cache: Option<&Path>) -> usize {
    let source = Source { compressed: &compressed(), sha256, code: None };
    compilations(engine, &source, cache)
}

fn compilations(engine: &Engine, source: &Source<'_>, cache: Option<&Path>) -> usize {
    let started = RefCell::new(0);
    let count = |progress| *started.borrow_mut() += usize::from(progress == CompileProgress::Started);
    load(engine, source, INCLUDED, cache.as_slice(), &count).unwrap();
    started.into_inner()
}

/// Machine code of the empty component for an engine, as it is in a program.
fn packed(engine: &Engine) -> Vec<u8> {
    let code = engine.precompile_component(&unpack::component(&compressed()).unwrap()).unwrap();
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&code).unwrap();
    encoder.finish().unwrap()
}

/// An engine whose settings are others than those of [`engine`].
fn engine_with_fuel() -> Engine {
    Engine::new(Config::new().wasm_component_model(true).consume_fuel(true)).unwrap()
}

/// The digest of some code, which is never computed again.
const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn loads(cache: &TempDir) -> usize {
    loads_with("abc", &engine(), Some(cache.path()))
}

/// All compiled code in the cache.
fn files(cache: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache.path().join(DIRECTORY)).unwrap();
    let mut files: Vec<_> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with(LOCK)).collect();
    files.sort();
    files
}

fn file(cache: &TempDir) -> PathBuf {
    let [file] = files(cache).try_into().unwrap();
    file
}

#[test]
fn is_compiled_once_and_then_loaded() {
    let cache = cache();
    assert_eq!((loads(&cache), loads(&cache)), (1, 0));
    assert_eq!(file(&cache).metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(cache.path().join(DIRECTORY).metadata().unwrap().mode() & 0o777, 0o700);
}

#[test]
fn without_a_cache_it_is_compiled_each_time() {
    assert_eq!((loads_with("abc", &engine(), None), loads_with("abc", &engine(), None)), (1, 1));
}

#[test]
fn another_component_is_other_code_and_the_old_stays_until_it_is_unused_for_long() {
    let cache = cache();
    let loads_other = |sha256| loads_with(sha256, &engine(), Some(cache.path()));
    loads(&cache);
    let first = file(&cache);
    assert_eq!(loads_other("def"), 1);
    assert_eq!((loads(&cache), loads_other("def")), (0, 0));
    let old = SystemTime::now() - MAX_UNUSED - Duration::from_secs(60);
    // Loading counts as use.
    File::open(&first).unwrap().set_modified(old).unwrap();
    loads(&cache);
    assert_eq!(loads_other("ghi"), 1);
    assert_eq!(files(&cache).len(), 3);
    File::open(&first).unwrap().set_modified(old).unwrap();
    assert_eq!(loads_other("jkl"), 1);
    assert_eq!(files(&cache).len(), 3);
    assert!(!first.exists());
}

#[test]
fn other_settings_are_other_code_and_stay_beside_it() {
    let cache = cache();
    let fuel = engine_with_fuel();
    let loads_with_fuel = || loads_with("abc", &fuel, Some(cache.path()));
    assert_eq!((loads(&cache), loads_with_fuel()), (1, 1));
    assert_eq!((loads(&cache), loads_with_fuel()), (0, 0));
    assert_eq!(files(&cache).len(), 2);
}

#[test]
fn what_is_cut_emptied_or_foreign_is_compiled_again() {
    let damages: [fn(&mut Vec<u8>); 6] = [
        |code| code.truncate(code.len() / 2),
        |code| code.truncate(code.len() - 1),
        Vec::clear,
        |code| code[..SAMPLE].fill(0),
        |code| *code.last_mut().unwrap() ^= 1,
        |code| *code = b"#!/bin/sh\n".repeat(100),
    ];
    for damage in damages {
        let cache = cache();
        loads(&cache);
        let mut code = fs::read(file(&cache)).unwrap();
        damage(&mut code);
        fs::write(file(&cache), code).unwrap();
        assert_eq!((loads(&cache), loads(&cache)), (1, 0));
    }
}

#[test]
fn code_under_a_true_trailer_that_wasmtime_does_not_know_is_compiled_again() {
    let cache = cache();
    loads(&cache);
    let path = file(&cache);
    let directory = Directory::open(cache.path()).unwrap();
    directory
        .write(
            path.file_name().unwrap().to_str().unwrap(),
            &Compiled { code: b"no code".repeat(1000), image: Vec::new() },
        )
        .unwrap();
    assert_eq!((loads(&cache), loads(&cache)), (1, 0));
}

#[test]
fn a_file_that_others_can_write_is_replaced() {
    for mode in [0o620, 0o602] {
        let cache = cache();
        loads(&cache);
        fs::set_permissions(file(&cache), Permissions::from_mode(mode)).unwrap();
        assert_eq!((loads(&cache), loads(&cache)), (1, 0));
        assert_eq!(file(&cache).metadata().unwrap().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_link_in_place_of_the_file_is_replaced_and_its_target_untouched() {
    let (cache, elsewhere) = (cache(), cache());
    loads(&cache);
    let target = elsewhere.path().join("code");
    let path = file(&cache);
    fs::rename(&path, &target).unwrap();
    let before = fs::read(&target).unwrap();
    symlink(&target, &path).unwrap();
    assert_eq!((loads(&cache), loads(&cache)), (1, 0));
    assert!(!file(&cache).is_symlink());
    assert_eq!(fs::read(&target).unwrap(), before);
}

#[test]
fn a_directory_that_others_can_write_is_not_used() {
    for mode in [0o770, 0o707, 0o1777] {
        // The directory of the code, and the one above it, which may be sticky.
        for is_above in [false, true] {
            if is_above && mode == 0o1777 {
                continue;
            }
            let cache = cache();
            loads(&cache);
            let path = if is_above { cache.path().to_owned() } else { cache.path().join(DIRECTORY) };
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!((loads(&cache), loads(&cache)), (1, 1), "{mode:o} {is_above}");
        }
    }
}

/// Loads the component with several caches. Returns how often it was compiled, and why it is not kept.
fn loads_from(caches: &[&Path]) -> (usize, Vec<String>) {
    let source = Source { compressed: &compressed(), sha256: "abc", code: None };
    let (started, reasons) = (RefCell::new(0), RefCell::new(Vec::new()));
    let note = |progress| match progress {
        CompileProgress::Started => *started.borrow_mut() += 1,
        CompileProgress::NotKept(reason) => reasons.borrow_mut().push(reason),
        _ => {}
    };
    load(&engine(), &source, INCLUDED, caches, &note).unwrap();
    (started.into_inner(), reasons.into_inner())
}

#[test]
fn a_refusal_says_what_to_do() {
    let cache = cache();
    fs::set_permissions(cache.path(), Permissions::from_mode(0o777)).unwrap();
    let (compiled, reasons) = loads_from(&[cache.path()]);
    let [reason] = &reasons[..] else { panic!("one warning: {reasons:?}") };
    assert_eq!(compiled, 1);
    assert!(reason.contains(cache.path().canonicalize().unwrap().to_str().unwrap()), "{reason}");
    for part in ["can be written by other users", "`cache.directory`", "XDG_CACHE_HOME"] {
        assert!(reason.contains(part), "{reason}");
    }
    assert!(!reason.contains("chmod"), "of /tmp that advice would be dangerous: {reason}");
}

#[test]
fn if_one_cache_cannot_be_used_the_next_one_is() {
    let (first, second) = (cache(), cache());
    let both = [first.path(), second.path()];
    // Refused, no directory, and one in which nothing can be created.
    let spoil: [fn(&Path); 3] = [
        |cache| fs::set_permissions(cache, Permissions::from_mode(0o777)).unwrap(),
        |cache| fs::write(cache.join(DIRECTORY), "a file").unwrap(),
        |cache| fs::create_dir_all(cache.join(DIRECTORY).join(UNFINISHED)).unwrap(),
    ];
    for (index, spoil) in spoil.into_iter().enumerate() {
        let (first, second) = (cache(), cache());
        let both = [first.path(), second.path()];
        spoil(first.path());
        fs::set_permissions(first.path().join(DIRECTORY), Permissions::from_mode(0o700)).ok();
        assert_eq!(loads_from(&both), (1, Vec::new()), "{index}");
        assert_eq!(files(&second).len(), 1, "{index}");
        assert_eq!(loads_from(&both), (0, Vec::new()), "{index}");
        // Neither of the two.
        let (compiled, reasons) = loads_from(&[first.path()]);
        assert_eq!((compiled, reasons.len()), (1, 1), "{index}: {reasons:?}");
        assert!(reasons[0].contains(first.path().to_str().unwrap()), "{index}: {reasons:?}");
        assert!(reasons[0].contains("`cache.directory`"), "{index}: {reasons:?}");
    }
    // The first one is used if it can be.
    assert_eq!(loads_from(&both), (1, Vec::new()));
    assert_eq!((files(&first).len(), second.path().join(DIRECTORY).read_dir().unwrap().count()), (1, 0));
}

#[test]
fn v_266_a_cache_below_a_sticky_directory_is_used() {
    let above = cache();
    fs::set_permissions(above.path(), Permissions::from_mode(0o1777)).unwrap();
    let cache =
        tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir_in(above.path()).unwrap();
    assert_eq!((loads(&cache), loads(&cache)), (1, 0));
}

#[test]
fn v_266_what_is_not_ours_in_a_sticky_directory_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        // Only root can create a directory that belongs to another user.
        return;
    }
    let above = cache();
    fs::set_permissions(above.path(), Permissions::from_mode(0o1777)).unwrap();
    let theirs = above.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::set_permissions(&theirs, Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(&theirs, Some(65_534), Some(65_534)).unwrap();
    let error = Directory::open(&theirs).err().unwrap().to_string();
    assert!(error.contains("belongs to another user"), "{error}");
}

#[test]
fn half_a_file_of_a_killed_process_is_overwritten() {
    let cache = cache();
    loads(&cache);
    fs::rename(file(&cache), cache.path().join(DIRECTORY).join(UNFINISHED)).unwrap();
    assert_eq!((loads(&cache), loads(&cache)), (1, 0));
    assert!(file(&cache).extension().is_some());
}

#[test]
fn of_many_at_once_one_compiles() {
    let cache = cache();
    let together = Barrier::new(8);
    let compiled: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    together.wait();
                    loads(&cache)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(compiled, 1);
}

#[test]
fn clearing_removes_the_code_and_is_no_error_without() {
    let cache = cache();
    assert_eq!(clear(cache.path()).unwrap(), 0);
    loads(&cache);
    assert_eq!(clear(cache.path()).unwrap(), 1);
    assert!(cache.path().join(DIRECTORY).join(LOCK).exists());
    assert_eq!(loads(&cache), 1);
}

#[test]
fn a_damaged_component_is_an_error() {
    let load = |compressed: &[u8]| {
        let source = Source { compressed, sha256: "abc", code: None };
        super::load(&engine(), &source, INCLUDED, &[], &|_| ()).err().unwrap()
    };
    let mut cut = compressed();
    cut.truncate(cut.len() - 3);
    let error = load(&cut);
    assert!(matches!(error, CompileError::Decompress(_)), "{error:?}");
    let mut other = compressed();
    *other.last_mut().unwrap() = 7;
    let error = load(&other);
    assert!(matches!(error, CompileError::Compile(_)), "{error:?}");
}

#[test]
fn code_in_the_program_is_unpacked_once_and_not_compiled() {
    let (cache, engine) = (cache(), engine());
    let (component, packed) = (compressed(), packed(&engine));
    let source = |compressed| Source {
        compressed: &component,
        sha256: "abc",
        code: Some(PackedCode { compressed, sha256: DIGEST }),
    };
    assert_eq!(compilations(&engine, &source(&packed), Some(cache.path())), 0);
    let name = file(&cache).file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.ends_with(&format!("-{}.cwasm", &DIGEST[..32])), "{name}");
    assert_eq!(file(&cache).metadata().unwrap().mode() & 0o777, 0o600);
    // What is in the program is not looked at again.
    assert_eq!(compilations(&engine, &source(b"damaged"), Some(cache.path())), 0);
    // The file is checked as that of a compilation.
    fs::set_permissions(file(&cache), Permissions::from_mode(0o602)).unwrap();
    assert_eq!(compilations(&engine, &source(&packed), Some(cache.path())), 0);
    assert_eq!(file(&cache).metadata().unwrap().mode() & 0o777, 0o600);
}

#[test]
fn without_a_cache_code_is_unpacked_into_memory() {
    let engine = engine();
    let (component, packed) = (compressed(), packed(&engine));
    let code = Some(PackedCode { compressed: &packed, sha256: DIGEST });
    let source = Source { compressed: &component, sha256: "abc", code };
    assert_eq!(compilations(&engine, &source, None), 0);
}

#[test]
fn code_that_cannot_be_used_is_compiled_for_this_machine_once() {
    let cache = cache();
    let (component, packed) = (compressed(), packed(&engine_with_fuel()));
    let code = Some(PackedCode { compressed: &packed, sha256: DIGEST });
    let source = Source { compressed: &component, sha256: "abc", code };
    let compilations = || compilations(&engine(), &source, Some(cache.path()));
    assert_eq!((compilations(), compilations()), (1, 0));
    // The code of the program is not kept beside it.
    assert!(!file(&cache).to_str().unwrap().contains(&DIGEST[..32]));
}

#[test]
fn without_a_compiler_the_reason_is_told() {
    let cache = cache();
    let component = compressed();
    let load = |code| {
        let source = Source { compressed: &component, sha256: "abc", code };
        load(&engine(), &source, None, &[cache.path()], &|_| ()).err().unwrap()
    };
    let none = load(None).to_string();
    assert!(none.contains("none for this kind of processor") && none.contains("`compile`"), "{none}");
    let packed = packed(&engine_with_fuel());
    let other = load(Some(PackedCode { compressed: &packed, sha256: DIGEST })).to_string();
    assert!(other.contains("fuel") && other.contains("`compile`"), "{other}");
    let damaged = load(Some(PackedCode { compressed: &packed[..packed.len() / 2], sha256: DIGEST }));
    assert!(matches!(damaged, CompileError::Decompress(_)), "{damaged:?}");
    assert_eq!(files(&cache), Vec::<PathBuf>::new());
}

/// Loads the real code into an engine that is told that its processor has only these features.
fn load_real(has: fn(&str) -> Option<bool>) -> Result<Runnable, CompileError> {
    let mut config = config(u64::MAX, Memories::default(), CodeForm::Plain);
    // As in the product: a compiler would want all that this machine's processor has.
    config.enable_compiler(false);
    #[expect(unsafe_code, reason = "it decides which code is run")]
    // SAFETY: nothing of the code is run here.
    unsafe {
        config.detect_host_feature(has)
    };
    let code = PackedCode { compressed: cx_python_component::CODE, sha256: cx_python_component::CODE_SHA256 };
    let component = (cx_python_component::COMPRESSED, cx_python_component::SHA256);
    let source = Source { compressed: component.0, sha256: component.1, code: Some(code) };
    load(&Engine::new(&config).unwrap(), &source, None, &[], &|_| ())
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_code_of_the_program_needs_what_processors_of_2009_have_and_says_so() {
    const BASELINE: &[&str] = &["sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cmpxchg16b"];
    let runnable = load_real(|feature| Some(BASELINE.contains(&feature)));
    assert!(runnable.unwrap().image.is_some());
    let error = load_real(|feature| Some(feature != "sse4.2")).err().unwrap().to_string();
    assert!(error.contains("has_sse42") && error.contains("`compile`"), "{error}");
}
