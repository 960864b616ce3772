use super::*;

#[test]
fn what_there_is_can_be_had_and_is_given_back() {
    for _ in 0..3 {
        address_space(1 << 30).unwrap();
        executable_memory(CodeMemory::WrittenThenExecuted).unwrap();
        executable_memory(CodeMemory::WrittenAndExecuted).unwrap();
        threads(4, 1 << 20).unwrap();
        descriptors(8).unwrap();
        default_stack(64 << 10).unwrap();
    }
    check_machine(1, 2, 1 << 20).unwrap();
}

/// No machine has so much, whatever its limits.
#[test]
fn what_there_is_not_is_an_error_that_says_what_is_needed() {
    let error = address_space(1 << 60).unwrap_err();
    assert!(Shortage::is_cause(&error), "{error:?}");
    assert!(error.to_string().starts_with("1099511627776 MiB of address space are needed"), "{error}");
    let error = threads(2, 1 << 60).unwrap_err();
    assert!(Shortage::is_cause(&error), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("2 more threads are needed, and the system refuses the first: "), "{text}");
    assert!(!Shortage::is_cause(&io::Error::from(io::ErrorKind::NotFound)));
    assert!(!Shortage::is_cause(&io::Error::new(io::ErrorKind::OutOfMemory, "something else")));
}

#[test]
fn what_is_not_known_is_not_named() {
    let gigabyte = 1 << 30;
    assert_eq!(
        too_small(2 * gigabyte, Some(gigabyte), 2 * gigabyte),
        "2048 MiB of address space are needed beside the 1024 MiB that are in use, and the limit is 2048 MiB: raise it \
         with `ulimit -v unlimited`, or at least `ulimit -v 3145728`"
    );
    assert_eq!(
        too_small(2 * gigabyte, None, gigabyte),
        "2048 MiB of address space are needed beside what is in use, and the limit is 1024 MiB: raise it with \
         `ulimit -v unlimited`"
    );
}
