//! Mounts and unmounts the file system, and removes mounts that a killed test process left behind.

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

/// Reason why a `FaultFs` cannot be mounted on this machine.
#[derive(Debug)]
pub struct Unavailable(String);

impl Unavailable {
    pub(super) fn because(reason: impl Display) -> Self {
        Self(format!("Cannot mount a FUSE file system: {reason}."))
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
        // Detaching works even while a process under test has open files; the session ends when it closes
        // them. If detaching is not permitted, the session unmounts with fusermount instead.
        let detached = umount2(&self.path, MntFlags::MNT_DETACH).is_ok();
        let Some(session) = self.session.take() else { return };
        match detached {
            true => drop(session),
            false => drop(session.umount_and_join()),
        }
    }
}

/// Detaches `FaultFs` mounts whose process has ended. The kernel keeps such mounts and answers ENOTCONN.
fn clear_stale_mounts() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let (Some(source), Some(path)) = (fields.next(), fields.next()) else { continue };
        let Some(owner) = source.strip_prefix(NAME).and_then(|rest| rest.strip_prefix(':')) else { continue };
        let is_owner_alive = Path::new("/proc").join(owner).exists();
        if !is_owner_alive && std::fs::metadata(path).is_err_and(|error| is_disconnected(&error)) {
            // A failure is ignored: the mount then belongs to another user.
            let _ = umount2(path, MntFlags::MNT_DETACH);
        }
    }
}

fn is_disconnected(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ENOTCONN as i32)
}
