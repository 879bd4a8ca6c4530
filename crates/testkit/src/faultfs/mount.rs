//! Mounting, unmounting, and clearing away what a test process that died has left mounted.

use std::fmt::{self, Display};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuser::{BackgroundSession, Config, MountOption};
use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};

use super::Shared;
use super::kernel::Kernel;

const NAME: &str = "parlor-faultfs";

/// Why a `FaultFs` cannot be had on this machine, as a sentence.
#[derive(Debug)]
pub struct Unavailable(String);

impl Unavailable {
    pub(super) fn because(reason: impl Display) -> Self {
        Self(format!("A FUSE file system cannot be mounted here: {reason}."))
    }
}

impl Display for Unavailable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

pub(super) struct Mounted {
    session: Option<BackgroundSession>,
    path: PathBuf,
}

pub(super) fn mount(shared: Arc<Shared>, directory: &Path) -> Result<Mounted, Unavailable> {
    clear_stale_mounts();
    let path = directory.canonicalize().map_err(Unavailable::because)?;
    let owner = path.metadata().map_err(Unavailable::because)?;
    let kernel = Kernel { shared, uid: owner.uid(), gid: owner.gid() };
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName(format!("{NAME}:{}", std::process::id()))];
    let session = fuser::spawn_mount(kernel, &path, &config).map_err(Unavailable::because)?;
    Ok(Mounted { session: Some(session), path })
}

impl Mounted {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Detaching works also while a process under test still has files open here; the session ends when
        // it closes them. Only where detaching is not permitted is the unmount left to the session, which
        // asks fusermount.
        let detached = umount2(&self.path, MntFlags::MNT_DETACH).is_ok();
        let Some(session) = self.session.take() else { return };
        match detached {
            true => drop(session),
            false => drop(session.umount_and_join()),
        }
    }
}

/// Detaches mounts of ours whose process is gone; the kernel keeps them, answering ENOTCONN.
fn clear_stale_mounts() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let (Some(source), Some(path)) = (fields.next(), fields.next()) else { continue };
        let Some(owner) = source.strip_prefix(NAME).and_then(|rest| rest.strip_prefix(':')) else { continue };
        let owner_lives = Path::new("/proc").join(owner).exists();
        if !owner_lives && std::fs::metadata(path).is_err_and(|error| is_disconnected(&error)) {
            // Where this is not permitted, the mount is somebody else's to clear.
            let _ = umount2(path, MntFlags::MNT_DETACH);
        }
    }
}

fn is_disconnected(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ENOTCONN as i32)
}
