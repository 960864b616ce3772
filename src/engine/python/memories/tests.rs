use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::slice;

use super::super::memory::{ENTRY, MAX_KEPT, PRESENT, written};
use super::*;

const PAGE: usize = 64 * 1024;
const IMAGE: usize = 4 * PAGE;
const RESERVED: usize = 1 << 30;
const GUARD: usize = 1 << 20;

/// Memories whose initial image has no zero byte.
fn memories() -> (Memories, Vec<u8>) {
    let bytes: Vec<u8> = (0..IMAGE).map(|at| (at % 251) as u8 + 1).collect();
    let memories = Memories::default();
    memories.set_image(Image::in_memory(&bytes).unwrap());
    (memories, bytes)
}

fn make(memories: &Memories) -> Memory {
    memories.make(IMAGE, RESERVED, GUARD).unwrap()
}

#[expect(unsafe_code, reason = "what a guest does")]
fn bytes(memory: &mut Memory) -> &mut [u8] {
    // SAFETY: this many bytes can be accessed, and the memory is borrowed.
    unsafe { slice::from_raw_parts_mut(memory.as_ptr(), memory.byte_size()) }
}

fn idle(memories: &Memories) -> usize {
    memories.shared.idle.lock().len()
}

/// The permissions of the mapping that contains this address, such as `rw-p`; `None` if there is
/// none.
fn permissions(address: usize) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).unwrap();
        (number(start) <= address && address < number(end)).then(|| rest[..4].to_owned())
    })
}

#[test]
fn begins_as_the_image_and_is_the_image_again_for_the_next() {
    let (memories, image) = memories();
    let mut memory = make(&memories);
    assert_eq!(bytes(&mut memory), image);
    let address = memory.as_ptr();
    for at in [0, 1, 4095, 4096, 3 * PAGE, IMAGE - 1] {
        bytes(&mut memory)[at] = 0;
    }
    memory.grow_to(IMAGE + 3 * PAGE).unwrap();
    assert!(bytes(&mut memory)[IMAGE..].iter().all(|byte| *byte == 0));
    bytes(&mut memory)[IMAGE..].fill(7);
    drop(memory);
    assert_eq!(idle(&memories), 1);

    let mut again = make(&memories);
    assert_eq!((again.as_ptr(), again.byte_size()), (address, IMAGE));
    assert_eq!(bytes(&mut again), image);
    // The part by which the first had grown cannot be accessed, and is zero when this one grows.
    assert_eq!(permissions(again.as_ptr() as usize + IMAGE).as_deref(), Some("---p"));
    again.grow_to(IMAGE + 3 * PAGE).unwrap();
    assert!(bytes(&mut again)[IMAGE..].iter().all(|byte| *byte == 0));
}

#[test]
fn pages_that_were_written_are_kept_and_too_many_are_given_back() {
    // Larger than what may be kept.
    let image = vec![1; MAX_KEPT + 16 * PAGE];
    let memories = Memories::default();
    memories.set_image(Image::in_memory(&image).unwrap());
    let own = |memories: &Memories| {
        let idle = memories.shared.idle.lock();
        written(idle[0].base(), image.len()).unwrap().iter().map(Range::len).sum::<usize>()
    };
    let write = |count: usize| {
        let mut memory = memories.make(image.len(), RESERVED, GUARD).unwrap();
        assert_eq!(bytes(&mut memory), image);
        bytes(&mut memory)[..count].fill(2);
    };
    write(2 * PAGE);
    assert_eq!(own(&memories), 2 * PAGE);
    write(PAGE);
    assert_eq!(own(&memories), 2 * PAGE);
    write(MAX_KEPT + PAGE);
    assert_eq!(own(&memories), 0);
    write(0);
}

/// Processes that are forked share its file, and a script may have taken one of them over.
#[cfg(target_os = "linux")]
#[test]
fn v_695_the_image_in_memory_cannot_be_changed() {
    use rustix::mm::{MapFlags, ProtFlags, mmap};

    let bytes = vec![7; PAGE];
    let image = Image::in_memory(&bytes).unwrap();
    #[expect(unsafe_code, reason = "what a script does that has taken its process over")]
    // SAFETY: the kernel chooses the address, and nothing is done with the mapping.
    let mapped = unsafe {
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        mmap(std::ptr::null_mut(), PAGE, writable, MapFlags::SHARED, &image.file, 0)
    };
    let tried = [mapped.is_ok(), image.file.write_all_at(&[1], 0).is_ok(), image.file.set_len(0).is_ok()];
    assert_eq!(tried, [false; 3]);
    let mut kept = vec![0; PAGE];
    image.file.read_exact_at(&mut kept, 0).unwrap();
    assert_eq!(kept, bytes);
}

#[test]
fn no_two_have_the_same_and_few_are_kept() {
    let (memories, image) = memories();
    let mut all: Vec<_> = (0..MAX_IDLE + 3).map(|_| make(&memories)).collect();
    for (number, memory) in all.iter_mut().enumerate() {
        bytes(memory).fill(number as u8);
    }
    for (number, memory) in all.iter_mut().enumerate() {
        assert!(bytes(memory).iter().all(|byte| *byte == number as u8));
    }
    drop(all);
    assert_eq!(idle(&memories), MAX_IDLE);
    for _ in 0..2 * MAX_IDLE {
        assert_eq!(bytes(&mut make(&memories)), image);
    }
}

#[test]
fn guards_surround_it() {
    let (memories, _) = memories();
    let memory = make(&memories);
    let base = memory.as_ptr() as usize;
    for address in [base - 1, base - GUARD, base + IMAGE, base + RESERVED - 1, base + RESERVED + GUARD - 1] {
        assert_eq!(permissions(address).as_deref(), Some("---p"));
    }
    assert_eq!(permissions(base).as_deref(), Some("rw-p"));
    assert_eq!(permissions(base + IMAGE - 1).as_deref(), Some("rw-p"));
}

#[test]
fn where_address_space_is_scarce_it_moves_with_what_it_has() {
    let (memories, image) = memories();
    let mut memory = memories.make(IMAGE, PAGE, GUARD).unwrap();
    assert_eq!(memory.byte_capacity(), IMAGE);
    let before = memory.as_ptr();
    memory.grow_to(2 * IMAGE).unwrap();
    assert_ne!(memory.as_ptr(), before);
    assert_eq!(bytes(&mut memory)[..IMAGE], image);
    assert!(bytes(&mut memory)[IMAGE..].iter().all(|byte| *byte == 0));
    let moved = memory.as_ptr();
    memory.grow_to(3 * IMAGE).unwrap();
    assert_eq!(memory.as_ptr(), moved);
    drop(memory);
    assert_eq!(idle(&memories), 0);
}

#[test]
fn a_memory_of_another_size_is_empty() {
    let (memories, _) = memories();
    let mut other = memories.make(PAGE, RESERVED, GUARD).unwrap();
    assert!(bytes(&mut other).iter().all(|byte| *byte == 0));
    drop(other);
    assert_eq!(idle(&memories), 0);
    assert!(memories.make(PAGE, usize::MAX - PAGE, GUARD).is_err());
}

/// Bytes of the pages at `base` that are in memory.
fn resident(base: *const u8, length: usize) -> usize {
    let page = rustix::param::page_size();
    let pagemap = File::open("/proc/self/pagemap").unwrap();
    let mut entries = vec![0; length / page * ENTRY];
    pagemap.read_exact_at(&mut entries, (base as usize / page * ENTRY) as u64).unwrap();
    let entries = entries.as_chunks().0.iter();
    entries.filter(|entry| u64::from_ne_bytes(**entry) & PRESENT != 0).count() * page
}

#[test]
fn an_idle_guest_keeps_what_it_wrote_and_nothing_else() {
    let (memories, mut image) = memories();
    let mut memory = make(&memories);
    let location = MemoryLocation::newest().unwrap();
    assert!(MemoryLocation::newest().is_none());
    for at in [0, 5000, 2 * PAGE + 17, IMAGE - 1] {
        bytes(&mut memory)[at] = 0;
        image[at] = 0;
    }
    assert_eq!(bytes(&mut memory), image);
    assert_eq!(resident(memory.as_ptr(), IMAGE), IMAGE);
    location.give_back().unwrap();
    assert_eq!(resident(memory.as_ptr(), IMAGE), 4 * rustix::param::page_size());
    assert_eq!(bytes(&mut memory), image);

    drop(memory);
    assert_eq!(idle(&memories), 1);
    // The first memory's location is gone, so this cannot affect the next memory.
    let mut next = make(&memories);
    bytes(&mut next).fill(9);
    location.give_back().unwrap();
    assert!(bytes(&mut next).iter().all(|byte| *byte == 9));
    drop(next);
    memories.forget_idle();
    assert_eq!(idle(&memories), 0);
}

#[test]
fn a_memory_that_has_moved_is_left_alone() {
    let (memories, _) = memories();
    let mut memory = memories.make(IMAGE, PAGE, GUARD).unwrap();
    let location = MemoryLocation::newest().unwrap();
    memory.grow_to(2 * IMAGE).unwrap();
    bytes(&mut memory).fill(9);
    location.give_back().unwrap();
    assert!(bytes(&mut memory).iter().all(|byte| *byte == 9));
}
