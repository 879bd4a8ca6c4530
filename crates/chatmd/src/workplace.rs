//! Safe access to the directory `.workplace` of a project.
//!
//! Owns: every opening of a file there. All programs that use the directory may write to it, so a file name
//! may lead anywhere: `.workplace` and the files in it are opened relative to a directory descriptor and
//! without following symbolic links, and only regular files with one link are used.

pub(crate) use parlor_safe_files::open_regular;
use parlor_safe_files::{explained, open_beneath};
use rustix::fs::{self as sys, AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the directory in a project.
pub const DIRECTORY: &str = ".workplace";
/// Name of the message file in a workplace.
pub const CHAT: &str = "chat.md";
/// Directory of archived message files in a workplace.
pub const MEMORY: &str = "memory";

/// Maximum number of directory entries that one listing reads.
const MAX_ENTRIES: usize = 10_000;

/// The directory `.workplace` of a project, opened once. Clones share the descriptor.
#[derive(Clone, Debug)]
pub struct Workplace {
    directory: Arc<OwnedFd>,
    path: PathBuf,
}

/// Identity of a file while it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

impl FileId {
    #[allow(clippy::unnecessary_cast, reason = "the types differ between operating systems")]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev as u64, inode: stat.st_ino as u64 }
    }
}

impl Workplace {
    /// Opens `.workplace` in `project`. The project path may contain symbolic links, `.workplace` may not be
    /// one.
    pub fn open(project: &Path) -> io::Result<Self> {
        let path = project.join(DIRECTORY);
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let project = sys::open(project, flags, Mode::empty())
            .map_err(|error| explained(error, format_args!("cannot open {}", project.display())))?;
        let directory = open_beneath(project.as_fd(), DIRECTORY, flags, Mode::empty()).map_err(|error| {
            let reason = match error {
                Errno::NOENT => "it does not exist; create it in the project directory with mkdir",
                Errno::LOOP | Errno::NOTDIR => "it is not a directory (symbolic links are not followed)",
                _ => return explained(error, format_args!("cannot open {}", path.display())),
            };
            io::Error::new(io::Error::from(error).kind(), format!("cannot use {}: {reason}", path.display()))
        })?;
        Ok(Self { directory: Arc::new(directory), path })
    }

    /// Path of the directory for messages. It is never opened again.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the directory was deleted, with everything in it.
    pub fn is_removed(&self) -> bool {
        sys::fstat(&*self.directory).is_ok_and(|stat| stat.st_nlink == 0)
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Returns the identity of `chat.md`, or `None` if there is no such name.
    pub(crate) fn chat_id(&self) -> io::Result<Option<FileId>> {
        match sys::statat(self.descriptor(), CHAT, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileId::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a regular file with one link. `name` has one component. `flags` may contain `CREATE`.
    pub(crate) fn open_file(&self, name: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
        open_regular(self.descriptor(), name, flags, mode)
    }

    /// Opens a directory of the workplace, or returns `None` if it does not exist.
    pub(crate) fn open_directory(&self, name: &str) -> io::Result<Option<OwnedFd>> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        match open_beneath(self.descriptor(), name, flags, Mode::empty()) {
            Ok(directory) => Ok(Some(directory)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(explained(error, format_args!("cannot open {name} in {DIRECTORY}"))),
        }
    }
}

/// Lists the names in a directory, at most [`MAX_ENTRIES`]. Names that are not UTF-8 are left out.
pub(crate) fn names(directory: BorrowedFd<'_>) -> io::Result<Vec<String>> {
    parlor_safe_files::names(directory, MAX_ENTRIES)
}
