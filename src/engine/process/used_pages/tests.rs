use std::io;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

use super::{Mapping, PageUse, Part, UsedPages, add, receive, send, usage, used_pages};

#[test]
fn copies_and_mapped_files_are_used() {
    const ANONYMOUS: u64 = super::PRESENT;
    assert_eq!(usage(ANONYMOUS | super::MAPPED_ONCE), Some(PageUse::Write));
    assert_eq!(usage(ANONYMOUS), None, "both processes have it");
    assert_eq!(usage(ANONYMOUS | super::OF_FILE), Some(PageUse::Read));
    assert_eq!(usage(ANONYMOUS | super::OF_FILE | super::MAPPED_ONCE), Some(PageUse::Read));
    for absent in [0, super::OF_FILE, super::MAPPED_ONCE] {
        assert_eq!(usage(absent), None);
    }
}

#[test]
fn neighbours_of_one_use_are_one_part() {
    let mut parts = Vec::new();
    for (page, usage) in
        [(1, PageUse::Write), (2, PageUse::Write), (3, PageUse::Read), (5, PageUse::Read), (6, PageUse::Read)]
    {
        add(&mut parts, page..page + 1, usage);
    }
    let part = |pages, usage| Part { pages, usage };
    assert_eq!(parts, [part(1..3, PageUse::Write), part(3..4, PageUse::Read), part(5..7, PageUse::Read)]);
}

#[test]
fn parts_are_received_as_they_were_sent() {
    let parts = [
        Part { pages: 0x1000..0x4000, usage: PageUse::Write },
        Part { pages: 0x7fff_ffff_e000..0x7fff_ffff_f000, usage: PageUse::Read },
    ];
    let (reading, mut writing) = io::pipe().unwrap();
    send(&parts, &mut writing).unwrap();
    drop(writing);
    assert_eq!(receive(reading).unwrap(), parts);
    let (reading, writing) = io::pipe().unwrap();
    drop(writing);
    assert_eq!(receive(reading).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn pages_are_taken_before_they_are_used() {
    const PAGES: usize = 8;
    let page = rustix::param::page_size();
    #[expect(unsafe_code, reason = "no safe crate maps memory without using it")]
    // SAFETY: the kernel chooses an address that nothing has.
    let start = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            PAGES * page,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
    };
    let start = start.unwrap();
    #[expect(unsafe_code, reason = "no safe crate has this call for memory of others")]
    // SAFETY: nothing else has this memory.
    let _all_at_once_otherwise = unsafe { madvise(start, PAGES * page, Advice::LinuxNoHugepage) };
    let start = start.addr();
    // Where the kernel has the calls of old programs, which is above all memory of a process.
    let of_kernel = Mapping { addresses: usize::MAX - 0x9f_ffff..usize::MAX - 0x9f_efff, is_readable: true };
    let mappings = [of_kernel, Mapping { addresses: start..start + PAGES * page, is_readable: true }];
    assert_eq!(used_pages(&mappings).unwrap(), []);
    let part = Part { pages: start + page..start + 3 * page, usage: PageUse::Write };
    UsedPages(vec![part.clone()]).prefault();
    assert_eq!(used_pages(&mappings).unwrap(), [part]);
}
