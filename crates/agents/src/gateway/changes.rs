//! Reports which files changed in an agent's working directory during a run, if it is in a git repository.
//!
//! Owns: earlier changes are not reported; files outside the directory and ignored files are never read; a
//! report fits into one frame, and marks where it was cut.

use super::reply::head;
use super::workspace::Git;
use parlor_model::{ChangeReport, ChangedFile};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum number of files in a report.
const MAX_FILES: usize = 20;
/// Maximum bytes of the diff of one file, in its JSON form.
const MAX_DIFF_BYTES: usize = 10_000;
/// Maximum bytes of a path, in its JSON form.
const MAX_PATH_BYTES: usize = 1_000;
/// Last line of a diff that was cut. No diff parser takes a line that starts with a backslash for file
/// content.
const CUT_MARKER: &str = "\\ The rest is left out\n";
/// Hash of git's empty tree, which a repository without a commit is compared with.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// State of a directory at the start of a run.
pub struct FolderSnapshot {
    folder: PathBuf,
    /// Commit at the start of the run. Everything is compared with it, even if the run makes new commits.
    head: String,
    changed: Changed,
}

/// Files that differ from a commit.
struct Changed {
    files: BTreeMap<String, (State, Stamp)>,
    /// Last path of the list if git's output was cut; `None` if the list is complete.
    until: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Modified,
    Added,
    Deleted,
    /// Not tracked by git.
    Untracked,
}

/// Modification time and size, to detect whether a file has changed; `None` if there is no such file.
type Stamp = Option<(SystemTime, u64)>;

/// Records the state of a directory; `None` if it is not in a repository or git does not answer in time.
pub async fn snapshot(folder: &Path) -> Option<FolderSnapshot> {
    let git = Git::of(folder).await?;
    let head = git.output(&["rev-parse", "-q", "--verify", "HEAD"]).await;
    let head = head.map_or(EMPTY_TREE.to_owned(), |head| head.trim().to_owned());
    let changed = changed(&git, folder, &head).await?;
    Some(FolderSnapshot { folder: folder.to_owned(), head, changed })
}

async fn changed(git: &Git, folder: &Path, head: &str) -> Option<Changed> {
    let compare = ["diff", "--name-status", "--no-renames", "--no-ext-diff", "--ignore-submodules=all"];
    let tracked =
        git.bounded_output(&[&compare[..], &["--relative", "-z", head, "--", "."]].concat()).await?;
    let untracked =
        git.bounded_output(&["ls-files", "--others", "--exclude-standard", "-z", "--", "."]).await?;
    // Both lists are sorted by path.
    let until = [last_path_if_cut(&tracked, 2), last_path_if_cut(&untracked, 1)].into_iter().flatten().min();
    let mut fields = tracked.0.split_terminator('\0');
    let tracked = std::iter::from_fn(|| {
        let state = match fields.next()? {
            "A" => State::Added,
            "D" => State::Deleted,
            _ => State::Modified,
        };
        Some((fields.next()?.to_owned(), state))
    });
    let untracked = untracked.0.split_terminator('\0');
    let all = tracked.chain(untracked.map(|path| (path.to_owned(), State::Untracked)));
    let all = all.filter(|(path, _)| until.as_ref().is_none_or(|until| path <= until));
    let files = all.map(|(path, state)| (path.clone(), (state, stamp(&folder.join(path))))).collect();
    Some(Changed { files, until })
}

/// Path of the last complete entry, if the output was cut. An entry has `fields` fields, and its path is
/// the last one.
fn last_path_if_cut((output, is_complete): &(String, bool), fields: usize) -> Option<String> {
    let (complete, _) = output.rsplit_once('\0').filter(|_| !is_complete)?;
    let last = complete.split('\0').count() / fields * fields;
    Some(complete.split('\0').nth(last.checked_sub(1)?)?.to_owned())
}

fn stamp(path: &Path) -> Stamp {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

impl FolderSnapshot {
    /// Report of the changes since the snapshot; `None` if there are none.
    pub async fn changes(self) -> Option<ChangeReport> {
        // Read the repository's settings again: the run may have changed them.
        let git = Git::of(&self.folder).await?;
        let now = changed(&git, &self.folder, &self.head).await?;
        let mut files: BTreeMap<&str, Option<State>> = BTreeMap::new();
        let until = self.changed.until.iter().chain(&now.until).min();
        for (path, current) in &now.files {
            if self.changed.files.get(path) != Some(current) {
                files.insert(path, Some(current.0));
            }
        }
        // A file that no longer differs from the commit was restored.
        let before = self.changed.files.keys().filter(|path| !now.files.contains_key(*path));
        files.extend(before.map(|path| (&**path, None)));
        files.retain(|path, _| until.is_none_or(|until| *path <= until.as_str()));
        // If git's output was cut, the number of files beyond it is unknown; it counts as one.
        let left_out = files.len().saturating_sub(MAX_FILES) as u32 + u32::from(until.is_some());
        let mut reported = Vec::new();
        for (path, state) in files.into_iter().take(MAX_FILES) {
            let (summary, diff) = match state {
                Some(State::Untracked) => ("Added", self.content(path)),
                Some(State::Added) => ("Added", self.diff(&git, path).await),
                Some(State::Modified) => ("Modified", self.diff(&git, path).await),
                Some(State::Deleted) => ("Deleted", self.diff(&git, path).await),
                None => ("Restored", None),
            };
            let diff = diff.map(|diff| shortened(&diff).into());
            reported.push(ChangedFile {
                path: head(path, MAX_PATH_BYTES).into(),
                summary: summary.into(),
                diff,
            });
        }
        (!reported.is_empty()).then_some(ChangeReport { files: reported, left_out })
    }

    async fn diff(&self, git: &Git, path: &str) -> Option<String> {
        let compare = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
        git.output(&[&compare[..], &["--relative", &self.head, "--", path]].concat()).await
    }

    /// The content of an untracked file as a diff that adds every line; `None` for binary files.
    fn content(&self, path: &str) -> Option<String> {
        let path = self.folder.join(path);
        // Symbolic links and pipes are not read.
        fs::symlink_metadata(&path).ok().filter(|metadata| metadata.is_file())?;
        let mut content = Vec::new();
        File::open(path).ok()?.take(MAX_DIFF_BYTES as u64).read_to_end(&mut content).ok()?;
        let text = String::from_utf8_lossy(&content);
        (!content.contains(&0)).then(|| text.lines().map(|line| format!("+{line}\n")).collect())
    }
}

/// Cuts a diff to its maximum size and appends the marker if it was cut.
fn shortened(diff: &str) -> String {
    let start = head(diff, MAX_DIFF_BYTES);
    if start.len() == diff.len() { start.to_owned() } else { format!("{start}\n{CUT_MARKER}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(folder: &Path, arguments: &[&str]) {
        let author = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let mut git = std::process::Command::new("git");
        assert!(git.args(author).args(arguments).current_dir(folder).status().unwrap().success());
    }

    fn summaries(report: Option<ChangeReport>) -> Vec<(String, String)> {
        let files = report.map(|report| report.files).unwrap_or_default();
        files.iter().map(|file| (file.path.to_string(), file.summary.to_string())).collect()
    }

    #[tokio::test]
    async fn git_settings_of_the_folder_start_no_program_and_reach_no_other_folder() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("work");
        fs::create_dir_all(&folder).unwrap();
        run(&folder, &["init", "-q"]);
        fs::write(folder.join("a"), "1\n").unwrap();
        run(&folder, &["add", "-A"]);
        run(&folder, &["commit", "-qm", "x"]);
        let ran = directory.path().join("ran");
        let program = format!("sh -c 'touch {}; cat'", ran.display());
        for key in
            ["filter.x.clean", "filter.x.process", "core.fsmonitor", "diff.x.textconv", "diff.x.command"]
        {
            run(&folder, &["config", key, &program]);
        }
        run(&folder, &["config", "filter.x.required", "true"]);
        fs::write(folder.join(".gitattributes"), "* filter=x diff=x\n").unwrap();
        let elsewhere = directory.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("a"), "secret\n").unwrap();
        run(&folder, &["config", "core.worktree", elsewhere.to_str().unwrap()]);

        let before = snapshot(&folder).await.unwrap();
        fs::write(folder.join("a"), "22\n").unwrap();
        let report = before.changes().await.unwrap();
        assert!(!ran.exists(), "a program from the git settings was started");
        let diff = report.files.iter().find(|file| &*file.path == "a").unwrap().diff.clone().unwrap();
        assert!(diff.contains("+22") && !diff.contains("secret"), "{diff}");
    }

    #[tokio::test]
    async fn earlier_changes_are_not_reported_and_commits_of_the_run_are() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("work");
        fs::create_dir(&folder).unwrap();
        assert!(snapshot(&folder).await.is_none(), "the folder is not in a repository");
        run(directory.path(), &["init", "-q"]);
        fs::write(folder.join("first"), "1").unwrap();
        let empty = snapshot(&folder).await.expect("a repository without a commit");
        fs::write(folder.join("second"), "2").unwrap();
        assert_eq!(summaries(empty.changes().await), [("second".into(), "Added".into())]);
        run(directory.path(), &["add", "-A"]);
        run(directory.path(), &["commit", "-qm", "x"]);
        fs::write(folder.join("first"), "11").unwrap();
        fs::write(folder.join("third"), "3").unwrap();

        assert!(snapshot(&folder).await.unwrap().changes().await.is_none(), "there are no changes");
        let before = snapshot(&folder).await.unwrap();
        fs::write(directory.path().join("outside"), "x").unwrap();
        fs::write(folder.join("second"), "22").unwrap();
        run(directory.path(), &["commit", "-aqm", "y"]);
        fs::write(folder.join("first"), "1").unwrap();
        fs::write(folder.join("third"), "33").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).unwrap();
        let report = before.changes().await.unwrap();
        let diff = |path: &str| report.files.iter().find(|file| &*file.path == path).unwrap().diff.clone();
        assert_eq!(diff("link"), None, "the target of a link is not read");
        assert!(diff("second").unwrap().contains("+22"), "{report:?}");
        assert_eq!(
            summaries(Some(report)),
            [("first", "Restored"), ("link", "Added"), ("second", "Modified"), ("third", "Added")]
                .map(|(path, summary)| (path.into(), summary.into()))
        );
    }

    #[tokio::test]
    async fn a_large_report_is_cut_to_the_size_of_one_frame() {
        let directory = tempfile::tempdir().unwrap();
        run(directory.path(), &["init", "-q"]);
        let before = snapshot(directory.path()).await.unwrap();
        for number in 0..25 {
            fs::write(directory.path().join(format!("{number:02}")), "\u{1}\n".repeat(20_000)).unwrap();
        }
        let report = before.changes().await.unwrap();
        assert_eq!((report.files.len(), report.left_out), (20, 5));
        let written: usize =
            report.files.iter().map(|file| serde_json::to_string(&file.diff).unwrap().len()).sum();
        assert!(written < 220_000, "{written}");
        assert!(
            report.files.iter().all(|file| file.diff.as_ref().unwrap().ends_with(CUT_MARKER)),
            "{report:?}"
        );
    }

    #[tokio::test]
    async fn a_report_says_that_the_output_of_git_was_cut() {
        let directory = tempfile::tempdir().unwrap();
        run(directory.path(), &["init", "-q"]);
        // Each name is almost as long as the file system allows.
        let name = |number: usize| format!("{number:04}{}", "x".repeat(240));
        for number in 0..1200 {
            fs::write(directory.path().join(name(number)), "").unwrap();
        }
        let before = snapshot(directory.path()).await.unwrap();
        for number in [3, 1199] {
            fs::write(directory.path().join(name(number)), "changed").unwrap();
        }
        let report = before.changes().await.unwrap();
        let paths: Vec<&str> = report.files.iter().map(|file| &*file.path).collect();
        assert_eq!((paths, report.left_out), (vec![&*name(3)], 1));
    }
}
