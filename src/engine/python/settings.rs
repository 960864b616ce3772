//! The settings of wasmtime that machine code depends on. The build script of `cx-python-component`
//! compiles with them too (`python-wasm/build/settings.rs` is a link to this file), because wasmtime
//! refuses code that was compiled with other settings than it is loaded with.

use wasmtime::Config;

/// Makes the settings, for machines where address space is ample.
///
/// Measured with two cores and `sum(i*i for i in range(10**6))`: 160 ms without interruption, 187
/// ms with epochs, 206 ms with fuel.
pub(super) fn configure(config: &mut Config) {
    config
        .wasm_component_model(true)
        .epoch_interruption(true)
        .consume_fuel(false)
        // Only wasmtime unwinds through the guest, and it has its own tables.
        .native_unwind_info(false)
        .generate_address_map(false)
        // The guest starts from an initial memory image that is not part of the component.
        .memory_init_cow(false)
        // The component needs none of these features. Disabled features reduce the attack surface.
        .concurrency_support(false)
        .wasm_memory64(false)
        .wasm_relaxed_simd(false)
        .wasm_wide_arithmetic(false)
        .shared_memory(false);
}
