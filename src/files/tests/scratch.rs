//! The scratch directory.

use super::*;

#[tokio::test]
async fn scratch_is_counted_before_it_is_allocated() {
    let files = files(&[]);
    let file = files.open(&path("/tmp/sparse"), writing()).await.unwrap();
    for offset in [1 << 60, u64::MAX - 1, u64::MAX, 1 << 21] {
        // One byte after the largest offset has no offset.
        let expected = if offset == u64::MAX { "EFBIG" } else { "ENOSPC" };
        assert_eq!(file.write(offset, vec![1]).await.unwrap_err().code.as_str(), expected, "{offset}");
        assert_eq!(file.set_size(offset).await.unwrap_err().code.as_str(), "ENOSPC", "{offset}");
    }
    assert!(files.budget().used() < 2_000, "{}", files.budget().used());
    file.write(500_000, vec![1]).await.unwrap();
    assert_eq!(file.metadata().await.unwrap().size, 500_001);
    assert_eq!(file.write(0, vec![1; 2 << 20]).await.unwrap_err().code.as_str(), "ENOSPC");
    // What is deleted and not open any more is free again.
    files.remove_file(&path("/tmp/sparse")).await.unwrap();
    assert!(files.budget().used() > 400_000);
    drop(file);
    assert_eq!(files.budget().used(), 0);
    // Empty files have a price as well.
    let mut made = 0;
    while write(&files, format!("/tmp/{made}"), "").await.is_ok() {
        made += 1;
    }
    assert!((1_000..1_850).contains(&made), "{made}");
    assert_eq!(write(&files, "/tmp/more", "").await, Err("ENOSPC"));
    files.remove_file(&path("/tmp/0")).await.unwrap();
    assert_eq!(write(&files, "/tmp/more", "").await, Ok(()));
}

#[tokio::test]
async fn the_memory_of_the_engine_counts_too() {
    let files = files(&[]);
    files.budget().attach_engine(|| 750_000);
    assert_eq!(write(&files, "/tmp/x", &"x".repeat(100_000)).await, Ok(()));
    assert_eq!(write(&files, "/tmp/y", &"x".repeat(100_000)).await, Err("ENOSPC"));
}

/// The engine has taken the rest of the memory: a rename that replaces a file needs none, and one that is refused
/// changes nothing.
#[tokio::test]
async fn a_rename_loses_no_file_when_the_memory_is_full() {
    let files = files(&[]);
    let is_full = Arc::new(AtomicBool::new(false));
    let engine = Arc::clone(&is_full);
    files.budget().attach_engine(move || if engine.load(Ordering::Relaxed) { 1 << 20 } else { 0 });
    assert_eq!(write(&files, "/tmp/old", "old").await, Ok(()));
    assert_eq!(write(&files, "/tmp/new", "new").await, Ok(()));
    let before = files.budget().used();
    is_full.store(true, Ordering::Relaxed);
    let refused = files.rename(&path("/tmp/new"), &path("/tmp/other")).await.unwrap_err();
    assert_eq!((refused.code.as_str(), files.budget().used()), ("ENOSPC", before));
    files.rename(&path("/tmp/new"), &path("/tmp/old")).await.unwrap();
    assert_eq!(read(&files, "/tmp/old").await, Ok("new".to_owned()));
    assert_eq!(read(&files, "/tmp/new").await, Err("ENOENT"));
    files.remove_file(&path("/tmp/old")).await.unwrap();
    assert_eq!(files.budget().used(), 0);
}

/// A tree that is deeper than any path is dropped without recursion.
#[tokio::test]
async fn a_tree_deeper_than_paths() {
    let files = files(&[]);
    let deep = "/d".repeat(100);
    let create = |base: String| {
        let files = &files;
        async move {
            let mut current = base;
            for _ in 0..100 {
                current.push_str("/d");
                files.create_directory(&path(&current)).await.unwrap();
            }
        }
    };
    for _ in 0..8 {
        files.create_directory(&path("/tmp/new")).await.unwrap();
        create("/tmp/new".to_owned()).await;
        if files.metadata(&path("/tmp/old"), true).await.is_ok() {
            files.rename(&path("/tmp/old"), &path(format!("/tmp/new{deep}/old"))).await.unwrap();
        }
        files.rename(&path("/tmp/new"), &path("/tmp/old")).await.unwrap();
    }
    assert_eq!(
        files.rename(&path("/tmp/old"), &path("/tmp/old/d/x")).await.unwrap_err().code.as_str(),
        "EINVAL"
    );
}

#[tokio::test]
async fn renames_replace_as_posix_says() {
    let files = files(&[]);
    write(&files, "/tmp/a", "a").await.unwrap();
    write(&files, "/tmp/b", "b").await.unwrap();
    let open = files.open(&path("/tmp/b"), reading()).await.unwrap();
    files.rename(&path("/tmp/a"), &path("/tmp/b")).await.unwrap();
    // The file that is open has lost its name only.
    assert_eq!(open.read(0, 10).await.unwrap(), b"b");
    assert_eq!(read(&files, "/tmp/b").await.unwrap(), "a");
    files.create_directory(&path("/tmp/d")).await.unwrap();
    write(&files, "/tmp/d/x", "x").await.unwrap();
    files.create_directory(&path("/tmp/e")).await.unwrap();
    for (from, to, code) in [
        ("/tmp/b", "/tmp/d", "EISDIR"),
        ("/tmp/d", "/tmp/b", "ENOTDIR"),
        ("/tmp/e", "/tmp/d", "ENOTEMPTY"),
        ("/tmp/no", "/tmp/d", "ENOENT"),
        ("/tmp/b", "/tmp/b/c", "EINVAL"),
        ("/tmp/b", "/tmp/no/c", "ENOENT"),
        ("/tmp/b/", "/tmp/c", "ENOTDIR"),
        ("/tmp", "/tmp/x", "EBUSY"),
        ("/tmp/b", "/etc", "EACCES"),
    ] {
        let refused = files.rename(&path(from), &path(to)).await.unwrap_err();
        assert_eq!(refused.code.as_str(), code, "{from} {to}");
    }
    files.rename(&path("/tmp/d"), &path("/tmp/e")).await.unwrap();
    assert_eq!(read(&files, "/tmp/e/x").await.unwrap(), "x");
}

/// Each entry that is there all the time is listed once, whatever else happens to the directory.
#[tokio::test]
async fn a_directory_changes_while_it_is_listed() {
    let files = files(&[]);
    for number in 0..10 {
        write(&files, format!("/tmp/keep{number}"), "").await.unwrap();
        write(&files, format!("/tmp/drop{number}"), "").await.unwrap();
    }
    let (directory, mut after, mut seen) = (path("/tmp"), None::<String>, Vec::new());
    while let NextInScratch::Entry(entry) = files.next_in_scratch(&directory, after.as_deref()).unwrap() {
        let _gone = files.remove_file(&path(format!("/tmp/drop{}", seen.len()))).await;
        write(&files, format!("/tmp/a{}", seen.len()), "").await.unwrap();
        after = Some(entry.name.clone());
        seen.push(entry.name);
    }
    assert_eq!(seen.iter().filter(|name| name.starts_with("keep")).count(), 10, "{seen:?}");
}

#[tokio::test]
async fn handles_are_bounded() {
    let files = files(&[]);
    write(&files, "/tmp/x", "").await.unwrap();
    let mut open = Vec::new();
    let refused = loop {
        match files.open(&path("/tmp/x"), reading()).await {
            Ok(file) => open.push(file),
            Err(error) => break error,
        }
    };
    assert_eq!((open.len(), refused.code.as_str()), (256, "EMFILE"));
    open.pop();
    assert!(files.open(&path("/tmp/x"), reading()).await.is_ok());
}
