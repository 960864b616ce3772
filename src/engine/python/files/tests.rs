use super::listing::ENTRY_BYTES;
use super::*;
use crate::files::{Access, Clock, FileOptions, FileQuota, GrantedDirectory};

const FILES: usize = 500;
const NAME_BYTES: usize = 200;

/// The lists of a granted directory are memory of the run, however often it is listed.
#[tokio::test]
async fn v_477_lists_of_directories_are_charged() {
    let place = tempfile::tempdir().unwrap();
    for number in 0..FILES {
        std::fs::write(place.path().join(format!("{number:0NAME_BYTES$}")), "").unwrap();
    }
    let path = place.path().to_owned();
    let files = Arc::new(RunFiles::new(FileOptions {
        directories: vec![GrantedDirectory { root: path.clone(), path: path.clone(), access: Access::Read }],
        memory_bytes: 1 << 20,
        quota: Box::new(|| FileQuota { written_bytes: 0, files: 0, file_bytes: 0 }),
        caller: None,
        clock: Clock::counting(),
        runtime: tokio::runtime::Handle::current(),
        is_dry_run: false,
    }));
    let mut table = ResourceTable::new();
    let mut guest = FileSystem { table: &mut table, files: Some(&files) };
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
