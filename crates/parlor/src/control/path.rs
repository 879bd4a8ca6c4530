//! Socket paths that fit the length limit of socket addresses, even in directories with long names.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// Maximum length of a socket path. Systems allow 108 bytes (Linux) or 104 (others), with a terminating zero.
const MAX_PATH_BYTES: usize = 100;

/// A path that fits a socket address. It is valid only while this value is alive.
pub struct SocketAddress {
    pub path: PathBuf,
    /// Keeps the directory open that `path` refers to through `/proc/self/fd`.
    _directory: Option<File>,
}

/// Returns the path of a socket in a directory. On Linux, a path that is too long is replaced by one through
/// the file descriptor of the directory.
pub fn socket_address(directory: &Path, name: &str) -> io::Result<SocketAddress> {
    let path = directory.join(name);
    if path.as_os_str().len() <= MAX_PATH_BYTES || !cfg!(target_os = "linux") {
        return Ok(SocketAddress { path, _directory: None });
    }
    let opened = File::open(directory)?;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&opened);
    let path = PathBuf::from(format!("/proc/self/fd/{descriptor}/{name}"));
    Ok(SocketAddress { path, _directory: Some(opened) })
}
