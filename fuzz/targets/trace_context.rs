#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cx_fuzz::targets::run("trace_context", data));
