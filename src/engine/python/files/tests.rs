use tokio_util::bytes::Bytes;
use wasmtime_wasi::p2::{InputStream as _, OutputStream as _, StreamError};

use super::listing::ENTRY_BYTES;
use super::*;
use crate::files::{Access, Clock, FileOptions, FileQuota, GrantedDirectory, OpenMode};

const FILES: usize = 500;
const NAME_BYTES: usize = 200;

/// A guest whose memory may have `limit` bytes, and has none yet.
fn guest<'a>(table: &'a mut ResourceTable, files: &'a Arc<RunFiles>, limit: usize) -> FileSystem<'a> {
    FileSystem { table, files: Some(files), memory: Arc::new(GuestMemory::new(limit)) }
}

/// Files of a run whose directories are these.
fn files_of(directories: Vec<GrantedDirectory>, memory_bytes: usize) -> Arc<RunFiles> {
    Arc::new(RunFiles::new(FileOptions {
        directories,
        memory_bytes,
        quota: Box::new(|| FileQuota { written_bytes: 0, files: 0, file_bytes: 0 }),
        caller: None,
        clock: Clock::counting(),
        runtime: tokio::runtime::Handle::current(),
        is_dry_run: false,
    }))
}

/// A descriptor of `path`, from the root.
async fn open(
    guest: &mut FileSystem<'_>,
    path: &str,
    open: types::OpenFlags,
    flags: types::DescriptorFlags,
) -> Result<Resource<types::Descriptor>, FsError> {
    let (root, _) = preopens::Host::get_directories(guest).unwrap().remove(0);
    let follow = types::PathFlags::empty();
    types::HostDescriptor::open_at(guest, root, follow, path.to_owned(), open, flags).await
}

/// The C library of Python asks for less than the interface has.
#[tokio::test]
async fn what_a_descriptor_says_of_itself() {
    use types::DescriptorFlags as Flags;
    use types::HostDescriptor as Of;
    let files = files_of(Vec::new(), 1 << 20);
    let mut table = ResourceTable::new();
    let guest = &mut guest(&mut table, &files, 1 << 20);
    let again = |descriptor: &Resource<types::Descriptor>| Resource::new_borrow(descriptor.rep());
    let both = Flags::READ | Flags::WRITE;
    let file = open(guest, "tmp/a", types::OpenFlags::CREATE, both).await.unwrap();
    let read = open(guest, "tmp/a", types::OpenFlags::empty(), Flags::READ).await.unwrap();
    let other = open(guest, "tmp/b", types::OpenFlags::CREATE, Flags::WRITE).await.unwrap();
    let directory = open(guest, "tmp", types::OpenFlags::DIRECTORY, Flags::READ).await.unwrap();
    for (descriptor, flags, kind) in [
        (&file, both, types::DescriptorType::RegularFile),
        (&read, Flags::READ, types::DescriptorType::RegularFile),
        (&other, Flags::WRITE, types::DescriptorType::RegularFile),
        (&directory, Flags::READ, types::DescriptorType::Directory),
    ] {
        assert_eq!(Of::get_flags(guest, again(descriptor)).await.unwrap(), flags);
        assert_eq!(Of::get_type(guest, again(descriptor)).await.unwrap(), kind);
    }
    for (one, is_same) in [(&read, true), (&other, false), (&directory, false)] {
        assert_eq!(Of::is_same_object(guest, again(&file), again(one)).await.unwrap(), is_same);
    }
    let (seconds, nanoseconds) = (7, 8);
    let then = types::NewTimestamp::Timestamp(types::Datetime { seconds, nanoseconds });
    Of::set_times(guest, again(&file), types::NewTimestamp::Now, then).await.unwrap();
    Of::set_times(guest, again(&file), then, types::NewTimestamp::NoChange).await.unwrap();
    let modified = Of::stat(guest, again(&read)).await.unwrap().data_modification_timestamp.unwrap();
    assert_eq!((modified.seconds, modified.nanoseconds), (seconds, nanoseconds));
    Of::advise(guest, again(&file), 0, 0, types::Advice::WillNeed).await.unwrap();
    Of::sync_data(guest, again(&file)).await.unwrap();
    for not_a_file in [
        Of::advise(guest, again(&directory), 0, 0, types::Advice::WillNeed).await,
        Of::sync_data(guest, again(&directory)).await,
        Of::set_times(guest, again(&directory), then, then).await,
    ] {
        assert_eq!(not_a_file.unwrap_err().downcast().unwrap(), types::ErrorCode::IsDirectory);
    }
    assert_eq!(Of::write(guest, again(&file), b"abcd".to_vec(), 2).await.unwrap(), 4);
    assert_eq!(Of::read(guest, again(&read), 3, 1).await.unwrap(), (b"\0ab".to_vec(), false));
    assert_eq!(Of::read(guest, again(&read), 3, 6).await.unwrap(), (Vec::new(), true));
    for refused in [
        Of::write(guest, again(&read), b"x".to_vec(), 0).await.map(drop),
        Of::read(guest, again(&other), 1, 0).await.map(drop),
    ] {
        assert_eq!(refused.unwrap_err().downcast().unwrap(), types::ErrorCode::BadDescriptor);
    }
}

/// A guest may wait for a read and a write as a whole; Python's C library waits for the stream first.
#[tokio::test]
async fn a_stream_that_waits_reads_and_writes_at_its_place() {
    let files = files_of(Vec::new(), 1 << 20);
    let mut table = ResourceTable::new();
    let guest = &mut guest(&mut table, &files, 1 << 20);
    let both = types::DescriptorFlags::READ | types::DescriptorFlags::WRITE;
    let file = open(guest, "tmp/a", types::OpenFlags::CREATE, both).await.unwrap();
    let mut written = guest.stream(&file, 0).unwrap();
    for text in ["one ", "two "] {
        written.blocking_write_and_flush(Bytes::from(text)).await.unwrap();
    }
    let mut appended = guest.stream(&file, u64::MAX).unwrap();
    for text in ["three ", "four"] {
        appended.blocking_write_and_flush(Bytes::from(text)).await.unwrap();
    }
    let mut read = guest.stream(&file, 4).unwrap();
    assert_eq!(read.blocking_read(10).await.unwrap(), "two three ");
    assert_eq!(read.blocking_read(100).await.unwrap(), "four");
    assert_eq!(read.blocking_read(0).await.unwrap(), "");
    let end = read.blocking_read(100).await;
    assert!(matches!(end, Err(StreamError::Closed)), "{end:?}");
    let only_read =
        open(guest, "tmp/a", types::OpenFlags::empty(), types::DescriptorFlags::READ).await.unwrap();
    let refused = guest.stream(&only_read, 0).unwrap().blocking_write_and_flush(Bytes::from("x")).await;
    assert!(matches!(refused, Err(StreamError::LastOperationFailed(_))), "{refused:?}");
}

/// The lists of a granted directory are memory of the run, however often it is listed.
#[tokio::test]
async fn v_477_lists_of_directories_are_charged() {
    let place = tempfile::tempdir().unwrap();
    for number in 0..FILES {
        std::fs::write(place.path().join(format!("{number:0NAME_BYTES$}")), "").unwrap();
    }
    let path = place.path().to_owned();
    let granted = GrantedDirectory { root: path.clone(), path: path.clone(), access: Access::Read };
    let files = files_of(vec![granted], 1 << 20);
    let mut table = ResourceTable::new();
    let mut guest = guest(&mut table, &files, 1 << 20);
    let descriptor = |handle: &Resource<types::Descriptor>| Resource::new_borrow(handle.rep());
    let (root, _) = preopens::Host::get_directories(&mut guest).unwrap().remove(0);
    let directory = types::HostDescriptor::open_at(
        &mut guest,
        root,
        types::PathFlags::empty(),
        path.to_str().unwrap().to_owned(),
        types::OpenFlags::DIRECTORY,
        types::DescriptorFlags::READ,
    );
    let directory = directory.await.unwrap();
    let list = FILES * (NAME_BYTES + ENTRY_BYTES);
    let mut listings = Vec::new();
    let error = loop {
        match types::HostDescriptor::read_directory(&mut guest, descriptor(&directory)).await {
            Ok(listing) => listings.push(listing),
            Err(error) => break error.downcast().unwrap(),
        }
        assert_eq!(files.budget().used(), listings.len() * list);
    };
    assert_eq!(error, types::ErrorCode::InsufficientSpace);
    // An eighth of the memory stays free.
    assert_eq!(listings.len(), (1 << 20) / 8 * 7 / list);
    for listing in listings {
        types::HostDirectoryEntryStream::drop(&mut guest, listing).unwrap();
    }
    assert_eq!(files.budget().used(), 0);
}

/// The guest allocates what it gets, and its C library ends the run where there is no memory for that.
#[tokio::test]
async fn v_816_a_read_has_no_more_bytes_than_the_guest_may_allocate() {
    const PAGE: usize = 64 << 10;
    const SIZE: usize = 2 << 20;
    let files = files_of(Vec::new(), 2 * SIZE);
    let mode = OpenMode { write: true, create: true, ..OpenMode::default() };
    let file = files.open(&GuestPath::parse("/tmp/x").unwrap(), mode).await.unwrap();
    file.write(0, vec![1; SIZE]).await.unwrap();
    assert_eq!(files.budget().used() / PAGE, SIZE / PAGE, "and its name");
    // The file counts as memory of the guest, and a page of what is left stays for the allocator.
    for (limit, expected) in
        [(64 << 20, 1 << 20), (SIZE + 4 * PAGE, 2 * PAGE), (SIZE + PAGE, 4 << 10), (SIZE / 2, 4 << 10)]
    {
        let mut table = ResourceTable::new();
        let mut guest = guest(&mut table, &files, limit);
        let (root, _) = preopens::Host::get_directories(&mut guest).unwrap().remove(0);
        let opened = types::HostDescriptor::open_at(
            &mut guest,
            root,
            types::PathFlags::empty(),
            "tmp/x".to_owned(),
            types::OpenFlags::empty(),
            types::DescriptorFlags::READ,
        );
        let file = opened.await.unwrap();
        let mut stream = guest.stream(&file, 0).unwrap();
        assert_eq!(stream.blocking_read(8 << 20).await.unwrap().len(), expected, "{limit}");
        let read = types::HostDescriptor::read(&mut guest, file, 8 << 20, 0).await;
        let (bytes, is_end) = read.unwrap();
        assert_eq!((bytes.len(), is_end), (expected, false), "{limit}");
    }
}

#[cfg(all(feature = "process", target_os = "linux"))]
mod elsewhere {
    use std::future::{pending, ready};
    use std::path::PathBuf;

    use futures::FutureExt as _;
    use futures::future::BoxFuture;

    use super::*;
    use crate::engine::python::file_stream::MAX_WRITE;
    use crate::files::{FileAnswer, FileHost, FileOperation};

    /// Files in which no write ever ends.
    struct NeverWritten;

    impl FileHost for NeverWritten {
        fn perform(&self, operation: FileOperation) -> BoxFuture<'static, Result<FileAnswer, FileError>> {
            match operation {
                FileOperation::Open { .. } => ready(Ok(FileAnswer::Opened(1))).boxed(),
                _ => pending().boxed(),
            }
        }

        fn close(&self, _file: u64) {}
    }

    /// What a guest writes to streams without waiting for any of them is bounded for all together.
    #[tokio::test]
    async fn v_760_writes_that_are_not_waited_for_are_bounded() {
        let path = PathBuf::from("/granted");
        let options = FileOptions {
            directories: vec![GrantedDirectory { root: path.clone(), path, access: Access::Write }],
            memory_bytes: 4 * MAX_WRITE,
            quota: Box::new(|| FileQuota { written_bytes: 0, files: 0, file_bytes: 0 }),
            caller: None,
            clock: Clock::counting(),
            runtime: tokio::runtime::Handle::current(),
            is_dry_run: false,
        };
        let files = Arc::new(RunFiles::elsewhere(options, Arc::new(NeverWritten)));
        let mut table = ResourceTable::new();
        let mut guest = guest(&mut table, &files, 1 << 20);
        let (root, _) = preopens::Host::get_directories(&mut guest).unwrap().remove(0);
        let opened = types::HostDescriptor::open_at(
            &mut guest,
            root,
            types::PathFlags::empty(),
            "granted/file".to_owned(),
            types::OpenFlags::CREATE,
            types::DescriptorFlags::WRITE,
        );
        let file = opened.await.unwrap();
        let open_stream = || guest.stream(&file, 0).unwrap();
        let bytes = |length| Bytes::from(vec![0_u8; length]);
        let mut streams = Vec::new();
        for _ in 0..4 {
            let mut stream = open_stream();
            stream.write(bytes(MAX_WRITE)).unwrap();
            assert_eq!(stream.check_write().unwrap(), 0, "its write has not ended");
            streams.push(stream);
        }
        let refused = open_stream().write(bytes(1));
        assert!(matches!(refused, Err(StreamError::LastOperationFailed(_))), "{refused:?}");
        // Each stream has one write at a time, of the size that it permits.
        let second = streams[0].write(bytes(1));
        assert!(matches!(second, Err(StreamError::Trap(_))), "{second:?}");
        streams.clear();
        let longer = open_stream().write(bytes(MAX_WRITE + 1));
        assert!(matches!(longer, Err(StreamError::Trap(_))), "{longer:?}");
        open_stream().write(bytes(MAX_WRITE)).unwrap();
    }
}
