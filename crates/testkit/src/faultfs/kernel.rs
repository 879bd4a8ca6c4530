//! Translates FUSE requests of the kernel to the disk model.
//!
//! The writeback cache is disabled, so each write(2) and fsync(2) arrives here before it returns to the
//! program. Reads and memory mappings use the page cache (SQLite maps its `-shm` file). Names and attributes
//! are never cached, so that the kernel finds the new inodes after a power loss. File locks are handled by
//! the kernel.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use nix::sys::stat::SFlag;

use super::Shared;
use super::disk::{Body, Disk, Ino, Result};

const UNCACHED: Duration = Duration::ZERO;
const BLOCK_BYTES: u64 = 4096;
/// Size that a disk without a capacity limit reports.
const UNLIMITED_BYTES: u64 = 1 << 40;

pub(super) struct Kernel {
    pub(super) shared: Arc<Shared>,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Kernel {
    fn attributes(&self, disk: &Disk, ino: Ino) -> Result<FileAttr> {
        let node = disk.node(ino)?;
        let kind = match node.body {
            Body::File(_) => FileType::RegularFile,
            Body::Directory { .. } => FileType::Directory,
            Body::Link(_) => FileType::Symlink,
            Body::Socket => FileType::Socket,
        };
        Ok(FileAttr {
            ino: INodeNo(ino),
            size: node.len(),
            blocks: node.len().div_ceil(512),
            atime: node.modified,
            mtime: node.modified,
            ctime: node.modified,
            crtime: node.modified,
            kind,
            perm: node.mode,
            nlink: disk.links(ino),
            uid: self.uid,
            gid: self.gid,
            rdev: 0,
            blksize: BLOCK_BYTES as u32,
            flags: 0,
        })
    }

    fn reply_entry(&self, find: impl FnOnce(&mut Disk) -> Result<Ino>, reply: ReplyEntry) {
        let mut disk = self.shared.disk.lock();
        match find(&mut disk).and_then(|ino| self.attributes(&disk, ino)) {
            Ok(attributes) => reply.entry(&UNCACHED, &attributes, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn perform(&self, operation: impl FnOnce(&mut Disk) -> Result<()>, reply: ReplyEmpty) {
        let result = operation(&mut self.shared.disk.lock());
        self.shared.changed.notify_all();
        match result {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }
}

/// Rejects a file handle that was opened before the last power loss.
fn check_handle(disk: &Disk, handle: FileHandle) -> Result<()> {
    if handle.0 == disk.boot() { Ok(()) } else { Err(Errno::EIO) }
}

impl Filesystem for Kernel {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // The error contains the nearest supported limit and is ignored, because any limit works.
        let _ = config.set_max_write(128 * 1024);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.reply_entry(|disk| disk.lookup(parent.0, name), reply);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(&self.shared.disk.lock(), ino.0) {
            Ok(attributes) => reply.attr(&UNCACHED, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut disk = self.shared.disk.lock();
        let set = |disk: &mut Disk| {
            handle.map_or(Ok(()), |handle| check_handle(disk, handle))?;
            size.map_or(Ok(()), |size| disk.truncate(ino.0, size))?;
            let node = disk.node_mut(ino.0)?;
            node.mode = mode.map_or(node.mode, |mode| mode as u16 & 0o7777);
            match mtime {
                Some(TimeOrNow::SpecificTime(time)) => node.modified = time,
                Some(TimeOrNow::Now) => node.modified = SystemTime::now(),
                None => {}
            }
            self.attributes(disk, ino.0)
        };
        match set(&mut disk) {
            Ok(attributes) => reply.attr(&UNCACHED, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.shared.disk.lock().node(ino.0).map(|node| &node.body) {
            Ok(Body::Link(target)) => reply.data(target.as_bytes()),
            Ok(_) => reply.error(Errno::EINVAL),
            Err(errno) => reply.error(errno),
        }
    }

    fn mknod(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _device: u32,
        reply: ReplyEntry,
    ) {
        let body = match SFlag::from_bits_truncate(mode) & SFlag::S_IFMT {
            SFlag::S_IFREG => Body::file(),
            SFlag::S_IFSOCK => Body::Socket,
            _ => return reply.error(Errno::EPERM),
        };
        self.reply_entry(|disk| disk.create(parent.0, name, body, mode & !umask), reply);
    }

    fn link(&self, _: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.reply_entry(|disk| disk.link(ino.0, parent.0, name), reply);
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        self.reply_entry(|disk| disk.create(parent.0, name, Body::directory(), mode & !umask), reply);
    }

    fn symlink(&self, _: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let body = Body::Link(OsString::from(target));
        self.reply_entry(|disk| disk.create(parent.0, name, body, 0o777), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.perform(|disk| disk.remove(parent.0, name), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.perform(|disk| disk.remove(parent.0, name), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let rename = |disk: &mut Disk| {
            if flags.contains(RenameFlags::RENAME_NOREPLACE) && disk.lookup(to.0, new).is_ok() {
                return Err(Errno::EEXIST);
            }
            if flags.intersects(RenameFlags::RENAME_EXCHANGE | RenameFlags::RENAME_WHITEOUT) {
                return Err(Errno::EINVAL);
            }
            disk.rename(parent.0, name, to.0, new)
        };
        self.perform(rename, reply);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let mut disk = self.shared.disk.lock();
        let created = disk.create(parent.0, name, Body::file(), mode & !umask).and_then(|ino| {
            disk.open(ino)?;
            self.attributes(&disk, ino)
        });
        match created {
            Ok(attributes) => {
                let handle = FileHandle(disk.boot());
                reply.created(&UNCACHED, &attributes, Generation(0), handle, FopenFlags::FOPEN_KEEP_CACHE);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let mut disk = self.shared.disk.lock();
        match disk.open(ino.0) {
            Ok(()) => reply.opened(FileHandle(disk.boot()), FopenFlags::FOPEN_KEEP_CACHE),
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut disk = self.shared.disk.lock();
        match check_handle(&disk, handle).and_then(|()| disk.content(ino.0)) {
            Ok(content) => reply.data(content.read(offset, size)),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        origin: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut disk = self.shared.disk.lock();
        let written =
            check_handle(&disk, handle).and_then(|()| match origin.contains(WriteFlags::FUSE_WRITE_CACHE) {
                true => disk.write_back(ino.0, offset, data),
                false => disk.write(ino.0, offset, data),
            });
        drop(disk);
        self.shared.changed.notify_all();
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(errno) => reply.error(errno),
        }
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.perform(|disk| check_handle(disk, handle).and_then(|()| disk.close(ino.0)), reply);
    }

    fn fsync(&self, _: &Request, ino: INodeNo, handle: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.perform(|disk| check_handle(disk, handle).and_then(|()| disk.sync_file(ino.0)), reply);
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(self.shared.disk.lock().boot()), FopenFlags::empty());
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, handle: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.perform(|disk| check_handle(disk, handle).and_then(|()| disk.sync_directory(ino.0)), reply);
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let disk = self.shared.disk.lock();
        let names = match disk.names(ino.0) {
            Ok(names) => names,
            Err(errno) => return reply.error(errno),
        };
        // The kernel resolves `..` itself and ignores this inode number.
        let dots = [(OsStr::new("."), ino.0), (OsStr::new(".."), ino.0)];
        let entries = dots.into_iter().chain(names.iter().map(|(name, ino)| (name.as_os_str(), *ino)));
        for (position, (name, child)) in (1..).zip(entries).skip(offset as usize) {
            let kind = self.attributes(&disk, child).map_or(FileType::RegularFile, |found| found.kind);
            if reply.add(INodeNo(child), position, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let disk = self.shared.disk.lock();
        let blocks = disk.faults.capacity.unwrap_or(UNLIMITED_BYTES) / BLOCK_BYTES;
        let free = blocks.saturating_sub(disk.used().div_ceil(BLOCK_BYTES));
        reply.statfs(blocks, free, free, 0, 0, BLOCK_BYTES as u32, 255, BLOCK_BYTES as u32);
    }
}
