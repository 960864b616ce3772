use super::*;

#[test]
fn the_least_limit_counts_and_its_source_is_known() {
    const GB: u64 = 1 << 30;
    let memory = |cgroup, space, data| {
        least(
            16 * GB,
            &[
                (cgroup, MemorySource::ControlGroup),
                (space, MemorySource::AddressSpace),
                (data, MemorySource::DataSegment),
            ],
        )
    };
    let is = |bytes, source| Memory { bytes, source };
    assert_eq!(memory(None, None, None), is(16 * GB, MemorySource::Machine));
    assert_eq!(memory(Some(GB), None, Some(2 * GB)), is(GB, MemorySource::ControlGroup));
    assert_eq!(memory(Some(8 * GB), Some(4 * GB), None), is(4 * GB, MemorySource::AddressSpace));
    assert_eq!(memory(None, Some(4 * GB), Some(3 * GB)), is(3 * GB, MemorySource::DataSegment));
    // A limit above the machine's memory limits nothing.
    assert_eq!(memory(Some(9_223_372_036_854_771_712), None, None), is(16 * GB, MemorySource::Machine));
    assert_eq!(memory(Some(0), None, None), is(0, MemorySource::ControlGroup));
}

#[test]
fn the_machine_has_something() {
    assert!(memory().bytes > 64 << 20, "{:?}", memory());
    assert!(processors() >= 1);
    assert!(address_space_used().unwrap() > 1 << 20);
    assert_eq!(read(Path::new("/nowhere/at/all")), None);
}
