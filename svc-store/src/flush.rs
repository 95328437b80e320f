//! Having a directory's names on the disk: a file that was made or renamed is not there after a loss of power until its directory is.

use std::io;
use std::path::Path;

/// Has the names of `directory` on the disk.
///
/// # Errors
/// The directory cannot be opened or flushed.
#[cfg(unix)]
pub(crate) fn flush_names(directory: &Path) -> io::Result<()> {
    std::fs::File::open(directory)?.sync_all()
}

/// Windows opens no directory as a file; NTFS writes names to its own log.
#[cfg(not(unix))]
pub(crate) fn flush_names(_: &Path) -> io::Result<()> {
    Ok(())
}
