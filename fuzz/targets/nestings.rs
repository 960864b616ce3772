#![no_main]

libfuzzer_sys::fuzz_target!(
    // A panic in swc becomes an error for the author; the hook of libFuzzer would end the process at it.
    init: drop(std::panic::take_hook()),
    |data: &[u8]| cx_fuzz::targets::run("nestings", data)
);
