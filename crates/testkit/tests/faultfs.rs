//! Tests of the faulty disk with plain files; `faultfs_sqlite.rs` has those with SQLite.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};

use parlor_testkit::faultfs::{Errno, FaultyDirectory};

#[test]
fn a_power_loss_drops_unsynced_data() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let path = directory.file("log");
    let mut file = File::create(&path).unwrap();
    file.write_all(b"kept").unwrap();
    file.sync_data().unwrap();
    file.write_all(b" lost").unwrap();
    fs::write(directory.file("never synced"), b"x").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"kept lost");

    directory.disk.drop_unsynced();

    assert_eq!(fs::read(&path).unwrap(), b"kept");
    assert_eq!(names(&directory), ["log"]);
    assert_eq!(
        errno(file.write_all(b"more")),
        Errno::EIO.code(),
        "a file opened before the power loss returns EIO"
    );
}

#[test]
fn names_become_durable_when_their_directory_is_synced() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let root = File::open(directory.disk.path()).unwrap();
    fs::create_dir(directory.file("sub")).unwrap();
    fs::write(directory.file("old"), b"").unwrap();
    root.sync_all().unwrap();
    fs::rename(directory.file("old"), directory.file("new")).unwrap();
    fs::remove_dir(directory.file("sub")).unwrap();

    directory.disk.drop_unsynced();
    assert_eq!(names(&directory), ["old", "sub"]);

    fs::rename(directory.file("old"), directory.file("new")).unwrap();
    fs::remove_dir(directory.file("sub")).unwrap();
    File::open(directory.disk.path()).unwrap().sync_all().unwrap();
    directory.disk.drop_unsynced();
    assert_eq!(names(&directory), ["new"]);
}

#[test]
fn syncing_a_new_file_makes_its_name_and_parent_directories_durable() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    fs::create_dir_all(directory.file("a/b")).unwrap();
    fs::write(directory.file("a/other"), b"").unwrap();
    let mut file = File::create(directory.file("a/b/c.tmp")).unwrap();
    file.write_all(b"content").unwrap();
    fs::rename(directory.file("a/b/c.tmp"), directory.file("a/b/c")).unwrap();
    file.sync_all().unwrap();

    directory.disk.drop_unsynced();

    assert_eq!(fs::read(directory.file("a/b/c")).unwrap(), b"content");
    assert!(!directory.file("a/b/c.tmp").exists());
    assert!(!directory.file("a/other").exists());
}

#[test]
fn sockets_links_and_locks_work() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let listener = UnixListener::bind(directory.file("socket")).unwrap();
    UnixStream::connect(directory.file("socket")).unwrap();
    listener.accept().unwrap();

    fs::write(directory.file("one"), b"content").unwrap();
    fs::hard_link(directory.file("one"), directory.file("two")).unwrap();
    symlink("two", directory.file("three")).unwrap();
    fs::remove_file(directory.file("one")).unwrap();
    assert_eq!(fs::read(directory.file("three")).unwrap(), b"content");

    let first = File::open(directory.file("two")).unwrap();
    first.try_lock().unwrap();
    assert!(matches!(File::open(directory.file("two")).unwrap().try_lock(), Err(TryLockError::WouldBlock)));
}

#[test]
fn a_failed_fsync_is_reported_and_its_data_never_becomes_durable() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let mut file = File::create(directory.file("log")).unwrap();
    directory.disk.fail_fsyncs(Errno::EIO, 1);
    file.write_all(b"first").unwrap();
    file.sync_data().unwrap();
    file.write_all(b" second").unwrap();
    assert_eq!(errno(file.sync_data()), Errno::EIO.code());
    assert_eq!(fs::read(directory.file("log")).unwrap(), b"first second", "reads keep working");

    directory.disk.heal();
    file.sync_data().unwrap();
    directory.disk.drop_unsynced();

    let kept = fs::read(directory.file("log")).unwrap();
    assert_eq!(&kept[..5], b"first");
    assert!(kept[5..].iter().all(|byte| *byte == 0), "the second fsync succeeded without the lost pages");
    let counters = directory.disk.counters();
    assert_eq!((counters.fsyncs, counters.failed_fsyncs), (3, 1));
}

#[test]
fn writes_fail_after_the_given_number_until_the_disk_is_healed() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let mut file = File::create(directory.file("log")).unwrap();
    directory.disk.fail_writes(Errno::ENOSPC, 1);
    file.write_all(b"1").unwrap();
    assert_eq!(errno(file.write_all(b"2")), Errno::ENOSPC.code());
    assert_eq!(errno(file.write_all(b"3")), Errno::ENOSPC.code());
    directory.disk.heal();
    file.write_all(b"4").unwrap();
    assert_eq!(fs::read(directory.file("log")).unwrap(), b"14");
    let counters = directory.disk.counters();
    assert_eq!((counters.writes, counters.failed_writes), (4, 2));
}

#[test]
fn a_full_disk_rejects_growth_until_files_shrink() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let mut file = OpenOptions::new().create_new(true).append(true).open(directory.file("log")).unwrap();
    fs::write(directory.file("ballast"), vec![0; 60_000]).unwrap();
    directory.disk.capacity(100_000);
    file.write_all(&[1; 40_000]).unwrap();
    assert_eq!(errno(file.write_all(b"2")), Errno::ENOSPC.code());
    assert_eq!(errno(file.set_len(50_000)), Errno::ENOSPC.code());

    fs::remove_file(directory.file("ballast")).unwrap();
    assert_eq!(directory.disk.used(), 40_000);
    file.write_all(&[3; 60_000]).unwrap();
    file.set_len(10).unwrap();
    assert_eq!(directory.disk.used(), 10);
}

#[test]
fn the_disk_is_unmounted_when_dropped_even_while_a_file_is_open() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let path = directory.disk.path().to_owned();
    fs::write(directory.file("log"), b"text").unwrap();
    let mut open = File::open(directory.file("log")).unwrap();
    assert!(is_mounted(&path));
    drop(directory);
    assert!(!is_mounted(&path));
    assert!(!path.exists(), "the directory is removed");
    let mut text = String::new();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
}

#[test]
fn a_mount_left_by_a_killed_process_is_removed_by_the_next_mount() {
    let Some(_first) = FaultyDirectory::new_or_skip() else { return };
    let left = tempfile::tempdir().unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_disk-probe"))
        .arg("mount")
        .arg(left.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "mounted\n");
    let _another = FaultyDirectory::new_or_skip().unwrap();
    assert!(is_mounted(left.path()), "the mount of a running process is kept");
    process.kill().unwrap();
    process.wait().unwrap();
    let _next = FaultyDirectory::new_or_skip().unwrap();
    assert!(!is_mounted(left.path()));
}

fn is_mounted(path: &Path) -> bool {
    fs::read_to_string("/proc/self/mounts").unwrap().contains(path.to_str().unwrap())
}

fn names(directory: &FaultyDirectory) -> Vec<String> {
    let entries = fs::read_dir(directory.disk.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[track_caller]
fn errno(result: io::Result<()>) -> i32 {
    result.unwrap_err().raw_os_error().unwrap()
}
