//! Addresses of sockets in directories with long names.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// Socket addresses hold about a hundred bytes (108 on Linux, 104 elsewhere, with a closing zero).
const LONGEST_ADDRESS: usize = 100;

/// A path short enough for a socket address, as long as this value lives.
pub struct SocketAddress {
    pub path: PathBuf,
    /// Keeps the directory open that `path` goes through.
    _directory: Option<File>,
}

/// Gives the address of a socket in a directory, through the open directory if its name is too long.
pub fn socket_address(directory: &Path, name: &str) -> io::Result<SocketAddress> {
    let path = directory.join(name);
    if path.as_os_str().len() <= LONGEST_ADDRESS || !cfg!(target_os = "linux") {
        return Ok(SocketAddress { path, _directory: None });
    }
    let opened = File::open(directory)?;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&opened);
    let path = PathBuf::from(format!("/proc/self/fd/{descriptor}/{name}"));
    Ok(SocketAddress { path, _directory: Some(opened) })
}
