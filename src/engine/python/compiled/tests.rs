use std::cell::RefCell;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::sync::Barrier;

use tempfile::TempDir;
use wasmtime::Config;

use super::*;

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

/// A cache directory that nobody else can write to. It is created beside the test program, because
/// `/tmp` is not such a directory.
fn cache() -> TempDir {
    let program = std::env::current_exe().unwrap();
    tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(program.parent().unwrap())
        .unwrap()
}

/// Loads the component and returns how often it was compiled.
fn loads_with(sha256: &str, engine: &Engine, cache: Option<&Path>) -> usize {
    let compressed = compressed();
    let started = RefCell::new(0);
    let source = Source { compressed: &compressed, sha256 };
    let count = |progress| *started.borrow_mut() += usize::from(progress == CompileProgress::Started);
    load(engine, &source, cache, &count).unwrap();
    started.into_inner()
}

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
    let fuel = Engine::new(Config::new().wasm_component_model(true).consume_fuel(true)).unwrap();
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
    fs::rename(file(&cache), &target).unwrap();
    let before = fs::read(&target).unwrap();
    let name = name(&engine(), &Source { compressed: &[], sha256: "abc" });
    symlink(&target, cache.path().join(DIRECTORY).join(name)).unwrap();
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

#[test]
fn a_refusal_says_what_to_do() {
    let cache = cache();
    fs::set_permissions(cache.path(), Permissions::from_mode(0o777)).unwrap();
    let error = Directory::open(cache.path()).err().unwrap().to_string();
    assert!(error.contains(cache.path().canonicalize().unwrap().to_str().unwrap()), "{error}");
    assert!(
        error.contains("can be written by other users") && error.contains("`cache.directory`"),
        "{error}"
    );
    assert!(!error.contains("chmod"), "of /tmp that advice would be dangerous: {error}");
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
    let source = |compressed| Source { compressed, sha256: "abc" };
    let mut cut = compressed();
    cut.truncate(cut.len() - 3);
    let error = load(&engine(), &source(&cut), None, &|_| ()).err().unwrap();
    assert!(matches!(error, CompileError::Decompress(_)), "{error:?}");
    let mut other = compressed();
    *other.last_mut().unwrap() = 7;
    let error = load(&engine(), &source(&other), None, &|_| ()).err().unwrap();
    assert!(matches!(error, CompileError::Compile(_)), "{error:?}");
}
