//! The memory allocator: mimalloc, told to keep what was freed.
//!
//! Training allocates and frees the same large tensors all the time. With freed pages given back to the
//! system and fetched again, page faults cost an eighth of a training step.

use libmimalloc_sys::{mi_option_set, mi_option_t};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 3, which the bindings do not name. Cargo.toml pins their version,
/// and the test below notices if the number means another option.
const PURGE_DELAY: mi_option_t = 15;

/// Lets the allocator keep freed pages instead of giving them back to the system.
pub fn keep_pages() {
    // SAFETY: sets an integer inside the allocator; allowed at any time. -1: never purge.
    unsafe { mi_option_set(PURGE_DELAY, -1) };
}

/// Lets the allocator give pages back that were not needed for a second: a server should not keep for days what one busy
/// minute needed.
pub fn return_pages() {
    // SAFETY: as above; the number is in milliseconds.
    unsafe { mi_option_set(PURGE_DELAY, 1000) };
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::{mi_option_get, mi_version};

    use super::*;

    #[test]
    fn the_number_is_that_of_the_purge_delay() {
        // SAFETY: reads integers inside the allocator.
        let (version, default) = unsafe { (mi_version(), mi_option_get(PURGE_DELAY)) };
        assert_eq!(version / 10_000, 3, "mimalloc {version}");
        // No other option of mimalloc 3 is 1000 (milliseconds) by default.
        assert_eq!(default, 1000);
        keep_pages();
        // SAFETY: as above.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, -1);
        return_pages();
        // SAFETY: as above.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, default);
    }
}
