//! Memory: mapped files, memory that processes share, and freed memory that returns to the system.

pub mod mapping;
pub mod shared;

/// Returns the heap's free pages to the system (`man 3 malloc_trim`). Without it, memory of a burst of connections
/// would stay with the process.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes a number and only gives up pages that hold no allocation.
    unsafe {
        libc::malloc_trim(0);
    }
}
