//! Files of scripts as an embedder and an attacker see them: the scratch directory and granted directories in both
//! languages. The rules themselves are tested in `src/files/tests.rs`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use cx::{
    Difference, ErrorCode, ExecuteResult, Executor, Grants, Isolation, Limits, Permissions, Recording,
    Script, WorkerProcesses,
};
use serde_json::{Value, json};

use crate::support::{executor, python, python_cache};

/// A program in both languages, with the same value.
struct Twin {
    typescript: &'static str,
    python: &'static str,
}

impl Twin {
    fn scripts(&self) -> [Script; 2] {
        [Script::typescript(self.typescript), Script::python(self.python)]
    }
}

/// Executors that execute scripts in this process and in worker processes, which can open no file.
async fn granting(read: &[&Path], write: &[&Path]) -> [Executor; 2] {
    // Compiled once for all tests.
    python().await;
    let paths = |paths: &[&Path]| paths.iter().map(|path| path.to_path_buf()).collect();
    let grants = Grants { read: paths(read), write: paths(write), ..Grants::default() };
    let processes = Isolation::Process(WorkerProcesses {
        program: Some(env!("CARGO_BIN_EXE_cx").into()),
        require: true,
        ..WorkerProcesses::default()
    });
    // Scripts with many files are slow in a debug build.
    let limits = Limits { wall_time: Duration::from_secs(300), ..Limits::default() };
    let builder =
        || Executor::builder().grants(grants.clone()).limits(limits).cache_directory(python_cache());
    [builder().build().unwrap(), builder().isolation(processes).build().unwrap()]
}

/// Each program on each executor.
fn each<'a>(executors: &'a [Executor; 2], twin: &Twin) -> Vec<(&'a Executor, Script)> {
    executors.iter().flat_map(|executor| twin.scripts().map(|script| (executor, script))).collect()
}

async fn run(executor: &Executor, script: Script) -> ExecuteResult {
    executor.run(script).await.unwrap()
}

fn value(result: &ExecuteResult) -> &Value {
    result.value().unwrap_or_else(|| panic!("{:?}", result.error()))
}

#[tokio::test]
async fn each_run_has_a_scratch_directory_of_its_own() {
    python().await;
    let (executor, _mock) = executor();
    let twin = Twin {
        typescript: r#"const before = await fs.readdir("/tmp"); await fs.writeFile("/tmp/left", "x"); return before"#,
        python: "import os\nbefore = os.listdir('/tmp')\nopen('/tmp/left', 'w').write('x')\nreturn before",
    };
    for _ in 0..3 {
        for script in twin.scripts() {
            assert_eq!(value(&run(&executor, script).await), &json!([]));
        }
    }
    assert!(!Path::new("/tmp/left").exists());
}

#[tokio::test]
async fn granted_directories_are_used_as_granted() {
    let (input, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(input.path().join("a.txt"), "hello").unwrap();
    let executors = granting(&[input.path()], &[output.path()]).await;
    let twin = Twin {
        typescript: r#"
            const text = await fs.readFile(input.in + "/a.txt", "utf8");
            const make = (name) => fs.mkdir(`${input.out}/deep/${name}`, { recursive: true });
            await Promise.all(["er", "er", "or"].map(make));
            await fs.writeFile(input.out + "/deep/er/b.txt", text + "!");
            const refused = [];
            for (const attempt of [
                () => fs.writeFile(input.in + "/new", ""), () => fs.readFile(input.out + "/deep/er/b.txt"),
                () => fs.readdir(input.out), () => fs.rm(input.in + "/a.txt"), () => fs.readFile(input.in + "/../x"),
            ]) try { await attempt(); refused.push("done") } catch (error) { refused.push(error.code) }
            return [text, refused]"#,
        python: "
import os, errno
text = open(inputs['in'] + '/a.txt').read()
os.makedirs(inputs['out'] + '/deep/er')
open(inputs['out'] + '/deep/er/b.txt', 'w').write(text + '!')
refused = []
for attempt in (
    lambda: open(inputs['in'] + '/new', 'w'), lambda: open(inputs['out'] + '/deep/er/b.txt'),
    lambda: os.listdir(inputs['out']), lambda: os.remove(inputs['in'] + '/a.txt'),
    lambda: open(inputs['in'] + '/../x'),
):
    try: attempt(); refused.append('done')
    except OSError as error: refused.append(errno.errorcode[error.errno])
return [text, refused]",
    };
    for (executor, script) in each(&executors, &twin) {
        let result = run(executor, script.input(json!({ "in": input.path(), "out": output.path() }))).await;
        let refused = ["EACCES", "EACCES", "EACCES", "EACCES", "ENOENT"];
        assert_eq!(value(&result), &json!(["hello", refused]));
        assert_eq!(fs::read_to_string(output.path().join("deep/er/b.txt")).unwrap(), "hello!");
        fs::remove_dir_all(output.path().join("deep")).unwrap();
    }
}

#[tokio::test]
async fn a_run_asks_for_less_and_never_for_more() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("inner")).unwrap();
    fs::write(place.path().join("a"), "a").unwrap();
    fs::write(place.path().join("inner/b"), "b").unwrap();
    // A link that leaves the directory that a run asks for.
    std::os::unix::fs::symlink("../a", place.path().join("inner/link")).unwrap();
    let executors = granting(&[place.path()], &[]).await;
    let twin = Twin {
        typescript: r#"
            const found = [];
            for (const name of ["a", "inner/b", "inner/link"]) {
                try { found.push(await fs.readFile(input + "/" + name, "utf8")) } catch { found.push("refused") }
            }
            return found"#,
        python: "
found = []
for name in ('a', 'inner/b', 'inner/link'):
    try: found.append(open(inputs + '/' + name).read())
    except OSError: found.append('refused')
return found",
    };
    let less = |read: &[&str]| Permissions {
        read: Some(read.iter().map(|name| place.path().join(name)).collect()),
        ..Permissions::default()
    };
    for (permissions, expected) in [
        (Permissions::default(), ["a", "b", "a"]),
        (less(&["inner"]), ["refused", "b", "refused"]),
        (less(&[]), ["refused", "refused", "refused"]),
    ] {
        for (executor, script) in each(&executors, &twin) {
            let script = script.input(json!(place.path())).permissions(permissions.clone());
            assert_eq!(value(&run(executor, script).await), &json!(expected), "{permissions:?}");
        }
    }
    for more in [
        less(&[".."]),
        less(&["/etc"]),
        Permissions { write: less(&["/srv"]).read, ..Permissions::default() },
    ] {
        let refused = executors[0].run(Script::typescript("return 1").permissions(more)).await.unwrap_err();
        assert!(refused.to_string().starts_with("invalid option `permissions`"), "{refused}");
    }
}

/// docs/threats.md, group PM: sizes that a script chooses are bounded before anything is allocated, and the run goes
/// on.
#[tokio::test]
async fn scratch_counts_as_memory() {
    python().await;
    let (executor, _mock) = executor();
    let twin = Twin {
        typescript: r#"
            const found = {};
            const attempt = async (name, action) => {
                try { await action(); found[name] = "done" } catch (error) { found[name] = error.code }
            };
            await attempt("truncate", async () => { await fs.writeFile("/tmp/a", ""); await fs.truncate("/tmp/a", 2 ** 50) });
            await attempt("large", async () => { await fs.writeFile("/tmp/a", ""); await fs.truncate("/tmp/a", 2 ** 27) });
            await attempt("long name", () => fs.writeFile("/tmp/" + "x".repeat(256), ""));
            await attempt("long path", () => fs.writeFile("/tmp" + "/x".repeat(2_040), ""));
            await attempt("deep", async () => { for (let path = "/tmp"; ; ) await fs.mkdir(path += "/" + "y".repeat(200)) });
            await attempt("fill", async () => {
                const megabyte = new Uint8Array(1 << 20);
                for (let index = 0; index < 200; index++) await fs.appendFile("/tmp/fill", megabyte);
            });
            await fs.rm("/tmp/fill");
            await attempt("after", () => fs.writeFile("/tmp/after", new Uint8Array(1 << 20)));
            return found"#,
        python: "
import os, errno
found = {}
def attempt(name, action):
    try: action(); found[name] = 'done'
    except OSError as error: found[name] = errno.errorcode[error.errno]
def fill():
    with open('/tmp/fill', 'wb', buffering=0) as file:
        for _ in range(200): file.write(bytes(1 << 20))
def deep():
    path = '/tmp'
    while True:
        path += '/' + 'y' * 200
        os.mkdir(path)
def truncate(size):
    with open('/tmp/a', 'wb') as file: file.truncate(size)
attempt('truncate', lambda: truncate(2**50))
attempt('large', lambda: truncate(2**27))
attempt('long name', lambda: open('/tmp/' + 'x' * 256, 'w'))
attempt('long path', lambda: open('/tmp' + '/x' * 2040, 'w'))
attempt('deep', deep)
attempt('fill', fill)
os.remove('/tmp/fill')
attempt('after', lambda: open('/tmp/after', 'wb').write(bytes(1 << 20)))
return found",
    };
    for script in twin.scripts() {
        let result =
            run(&executor, script.limits(Limits { memory_bytes: 100 << 20, ..Limits::default() })).await;
        let found = value(&result).to_string().replace("EIO", "ENOSPC");
        assert_eq!(
            serde_json::from_str::<Value>(&found).unwrap(),
            json!({
                "truncate": "ENOSPC", "large": "ENOSPC", "long name": "ENAMETOOLONG", "long path": "ENOENT",
                "deep": "ENAMETOOLONG", "fill": "ENOSPC", "after": "done",
            })
        );
    }
}

/// Handles, and names that change while they are listed or open, in Python, which has such functions.
#[tokio::test]
async fn floods_of_handles_and_files_are_refused() {
    python().await;
    let (executor, _mock) = executor();
    let source = "
import os
held, refused = [], None
open('/tmp/x', 'w').close()
for kind in (lambda: open('/tmp/x', 'rb', buffering=0), lambda: os.open('/tmp', os.O_RDONLY), lambda: os.scandir('/tmp')):
    try:
        for _ in range(3_000): held.append(kind())
    except OSError as error: refused = len(held)
for one in held:
    os.close(one) if isinstance(one, int) else one.close()
again = open('/tmp/x').read()
made = 0
try:
    while made < 1_000_000:
        open(f'/tmp/{made}', 'w').close()
        made += 1
except OSError as error: full = type(error).__name__
entries = 0
for entry in os.scandir('/tmp'):
    os.remove(entry.path)
    entries += 1
return [refused, again, full, entries == made + 1, os.listdir('/tmp')]";
    // Memory ends the flood, and no clock, however busy the machine is.
    let long = Duration::from_secs(600);
    let limits = Limits { memory_bytes: 64 << 20, wall_time: long, cpu_time: long, ..Limits::default() };
    let result = run(&executor, Script::python(source).limits(limits)).await;
    let found = value(&result);
    assert!((200..=256).contains(&found[0].as_u64().unwrap()), "{found}");
    assert_eq!(
        (&found[1], &found[2], &found[3], &found[4]),
        (&json!(""), &json!("OSError"), &json!(true), &json!([]))
    );
}

/// A fifo without a reader or a writer, and a device in place of a directory: each gives an error and nothing worse.
#[tokio::test]
async fn special_files_do_not_hold_a_run() {
    let place = tempfile::tempdir().unwrap();
    let fifo = place.path().join("fifo");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, rustix::fs::Mode::RWXU, 0).unwrap();
    let executors = granting(&[place.path(), Path::new("/proc")], &[place.path()]).await;
    let twin = Twin {
        typescript: r#"
            const found = [];
            for (const action of [
                () => fs.readFile(input), () => fs.writeFile(input, "x"), () => fs.readFile("/proc/self/environ"),
                () => fs.readdir("/proc/self"),
            ]) try { await action(); found.push("done") } catch (error) { found.push(error.code) }
            return found"#,
        python: "
import os, errno
found = []
for action in (
    lambda: open(inputs), lambda: open(inputs, 'w'), lambda: open('/proc/self/environ'), lambda: os.listdir('/proc/self'),
):
    try: action(); found.append('done')
    except OSError as error: found.append(errno.errorcode[error.errno])
return found",
    };
    for (executor, script) in each(&executors, &twin) {
        let result = run(executor, script.input(json!(fifo))).await;
        assert_eq!(value(&result), &json!(["EACCES", "EACCES", "EACCES", "EACCES"]));
    }
}

#[tokio::test]
async fn quotas_are_limits_of_a_run() {
    let place = tempfile::tempdir().unwrap();
    let executors = granting(&[], &[place.path()]).await;
    let twin = Twin {
        typescript: r#"
            const found = [];
            for (const action of [
                () => fs.writeFile(input + "/large", "x".repeat(1_001)), () => fs.writeFile(input + "/a", "x".repeat(900)),
                () => fs.writeFile(input + "/b", "x".repeat(900)), () => fs.mkdir(input + "/c"),
            ]) try { await action(); found.push("done") } catch (error) { found.push(error.code) }
            return found"#,
        python: "
import os, errno
def write(name, length):
    with open(inputs + name, 'w') as file: file.write('x' * length)
found = []
for action in (
    lambda: write('/large', 1_001), lambda: write('/a', 900), lambda: write('/b', 900), lambda: os.mkdir(inputs + '/c'),
):
    try: action(); found.append('done')
    except OSError as error: found.append(errno.errorcode[error.errno])
return found",
    };
    let limits = Limits { written_bytes: 1_500, created_files: 3, file_bytes: 1_000, ..Limits::default() };
    for ((executor, script), is_python) in each(&executors, &twin).into_iter().zip([false, true].repeat(2)) {
        let result = run(executor, script.input(json!(place.path())).limits(limits)).await;
        // WASI's streams report only that a write has failed.
        let expected = if is_python {
            json!(["EIO", "done", "EIO", "EDQUOT"])
        } else {
            json!(["EFBIG", "done", "EDQUOT", "EDQUOT"])
        };
        assert_eq!(value(&result), &expected);
        for name in ["large", "a", "b"] {
            fs::remove_file(place.path().join(name)).unwrap();
        }
    }
}

#[tokio::test]
async fn a_dry_run_writes_to_the_scratch_directory_only() {
    let place = tempfile::tempdir().unwrap();
    let executors = granting(&[place.path()], &[place.path()]).await;
    let twin = Twin {
        typescript: r#"
            await fs.writeFile("/tmp/x", "x");
            try { await fs.writeFile(input + "/x", "x") } catch (error) { return error.code }"#,
        python: "
import errno
open('/tmp/x', 'w').write('x')
try: open(inputs + '/x', 'w')
except OSError as error: return errno.errorcode[error.errno]",
    };
    for (executor, script) in each(&executors, &twin) {
        let result = run(executor, script.input(json!(place.path())).dry_run()).await;
        assert_eq!(value(&result), "EROFS");
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

/// A replay has the answers of granted directories and does the same in the scratch directory.
#[tokio::test]
async fn a_replay_reads_no_granted_directory() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("a"), "recorded").unwrap();
    let [executor, in_workers] = granting(&[place.path()], &[]).await;
    let source = r#"
        const text = await fs.readFile(input + "/a", "utf8");
        await fs.writeFile("/tmp/copy", text);
        emit({ file: "/tmp/copy" });
        return [await fs.readFile("/tmp/copy", "utf8"), (await fs.stat("/tmp/copy")).mtimeMs]"#;
    let script = Script::typescript(source).input(json!(place.path()));
    let (result, recording) = executor.record(script).await.unwrap();
    assert_eq!(value(&result)[0], "recorded");
    fs::write(place.path().join("a"), "changed").unwrap();
    let recording = recording.unwrap();
    assert!(!recording.has_unrecorded_files());
    let replay = executor.replay(&recording).await.unwrap();
    assert!(replay.difference.is_none(), "{:?}", replay.difference);
    assert_eq!(value(&replay.result), value(&result));
    // In Python nothing of a granted directory is recorded, and the replay says so.
    let source =
        "try: return open(inputs + '/a').read()\nexcept OSError as error: return type(error).__name__";
    let elsewhere = "open('/tmp/a', 'w').write('x')\ntry: open('/etc/passwd')\nexcept OSError: return 1";
    for executor in [&executor, &in_workers] {
        let script = Script::python(source).input(json!(place.path()));
        let (result, recording) = executor.record(script).await.unwrap();
        assert_eq!(value(&result), "changed");
        // The recording is marked accordingly, also in its file.
        let recording = Recording::parse(&recording.unwrap().to_text()).unwrap();
        assert!(recording.has_unrecorded_files());
        assert!(recording.explain().contains("Not recorded: "), "{}", recording.explain());
        let replay = executor.replay(&recording).await.unwrap();
        let difference: Option<Difference> = replay.difference;
        assert!(difference.is_some(), "{:?}", replay.result.value());
        let (result, recording) = executor.record(Script::python(elsewhere)).await.unwrap();
        assert_eq!(value(&result), 1);
        let recording = recording.unwrap();
        assert!(!recording.has_unrecorded_files());
        assert!(!recording.explain().contains("Not recorded"), "{}", recording.explain());
        assert!(executor.replay(&recording).await.unwrap().difference.is_none());
    }
}

/// Python's other operations on files, in a worker process, which can open none.
#[tokio::test]
async fn python_in_a_worker_process_has_all_of_its_files() {
    let (input, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let large: Vec<u8> = (0..5_000_000_u32).map(|index| (index % 251) as u8).collect();
    fs::write(input.path().join("large"), &large).unwrap();
    let both = [input.path(), output.path()];
    let [here, in_worker] = granting(&both, &[output.path()]).await;
    let source = r#"
import os, pathlib, sqlite3, hashlib, shutil
source, target = pathlib.Path(inputs['in']), pathlib.Path(inputs['out'])
found = {'names': sorted(os.listdir(source)), 'size': os.stat(source / 'large').st_size}
with open(source / 'large', 'rb') as file:
    file.seek(4_999_990)
    found['end'] = list(file.read(100))
    file.seek(0)
    found['hash'] = hashlib.sha256(file.read()).hexdigest()
shutil.copyfile(source / 'large', target / 'copy')
shutil.copyfile(source / 'large', '/tmp/scratch')
found['same'] = (target / 'copy').read_bytes() == open('/tmp/scratch', 'rb').read()
with open(target / 'copy', 'r+b') as file:
    file.truncate(10)
with open(target / 'copy', 'ab') as file:
    file.write(b'end')
found['copy'] = list((target / 'copy').read_bytes())
os.rename(target / 'copy', target / 'renamed')
os.utime(target / 'renamed', (1, 2))
found['time'] = os.stat(target / 'renamed').st_mtime
(target / 'd' / 'e').mkdir(parents=True)
with sqlite3.connect(target / 'd' / 'data.db') as database:
    database.execute('create table t (x)')
    database.executemany('insert into t values (?)', [(n,) for n in range(1000)])
    found['sum'] = database.execute('select sum(x) from t').fetchone()[0]
database.close()
found['walk'] = sorted(str(path.relative_to(target)) for path in target.rglob('*'))
emit({'file': str(target / 'renamed')})
shutil.rmtree(target / 'd')
os.remove(target / 'renamed')
found['left'] = os.listdir(target)
return found"#;
    let mut found = Vec::new();
    for executor in [&here, &in_worker] {
        let script = Script::python(source).input(json!({ "in": input.path(), "out": output.path() }));
        let report = run(executor, script).await;
        found.push((value(&report).clone(), report.to_json()["emitted"].clone()));
    }
    assert_eq!(found[0], found[1]);
    let (seen, emitted) = &found[1];
    assert_eq!(
        (&seen["size"], &seen["sum"], &seen["same"]),
        (&json!(5_000_000), &json!(499_500), &json!(true))
    );
    assert_eq!((&seen["time"], &seen["left"]), (&json!(2.0), &json!([])));
    assert_eq!(seen["walk"], json!(["d", "d/data.db", "d/e", "renamed"]));
    assert!(emitted.is_array(), "{emitted}");
}

/// WASI has no code for a quota, so the hint says why a write has failed.
#[tokio::test]
async fn a_failed_write_says_why() {
    python().await;
    let (executor, _mock) = executor();
    let source = "with open('/tmp/x', 'wb') as file:\n    for _ in range(200): file.write(bytes(1 << 20))";
    let result = run(&executor, Script::python(source)).await;
    let hint = result.error().unwrap().hint.as_deref().unwrap_or_default();
    assert!(hint.contains("no space left") && hint.contains("memory of the run"), "{hint}");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_not_emitted() {
    let (executor, _mock) = executor();
    let source = "await fs.mkdir('/tmp/d'); emit({ file: input }); return 1";
    for (path, expected) in [("/etc/passwd", "ENOENT"), ("/tmp/d", "EISDIR"), ("/tmp/x", "ENOENT")] {
        let result = run(&executor, Script::typescript(source).input(json!(path))).await;
        let error = result.error().unwrap();
        assert_eq!(error.code, ErrorCode::RuntimeError);
        assert!(error.message.contains(expected), "{}", error.message);
        assert!(result.to_json().get("emitted").is_none());
    }
}

#[tokio::test]
async fn an_operation_that_is_refused_says_what_to_do() {
    let (executor, _mock) = executor();
    let refused = async |source: &str| {
        let result = run(&executor, Script::typescript(source)).await;
        result.error().unwrap().message.clone()
    };
    let message = refused("await fs.writeFile('a', '', { flag: 'q' })").await;
    assert!(message.contains("expected the flag w, wx, a, ax or r+"), "{message}");
    let message = refused("await fs.writeFile('a', ''); await fs.copyFile('a', '/tmp/a')").await;
    assert!(message.contains("both paths are the same file"), "{message}");
    let nested =
        "await fs.mkdir('d/'.repeat(260), { recursive: true }); await fs.readdir('d', { recursive: true })";
    let message = refused(nested).await;
    assert!(message.contains("begin further down"), "{message}");
}
