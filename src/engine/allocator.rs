//! The C library's allocator, which keeps freed memory unless it is told otherwise.

/// Returns freed memory to the system. glibc would otherwise keep it for the life of the process.
pub(crate) fn return_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "no safe crate has this call")]
        // SAFETY: it takes no pointer, and may be called by any thread at any time.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
