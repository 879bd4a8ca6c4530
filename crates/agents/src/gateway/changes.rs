//! What changed in the folder of an agent during a turn, where git keeps it.
//!
//! Owns: what had changed before is not told; nothing outside the folder is looked at, and nothing that git ignores; what
//! is told fits into one frame, and says so where it is cut.

use super::reply::head;
use super::workspace::Git;
use parlor_model::{ChangeReport, ChangedFile};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const MOST_FILES: usize = 20;
/// Of one file, as it is written in a frame.
const LONGEST_DIFF: usize = 10_000;
const LONGEST_PATH: usize = 1_000;
/// Where a text was longer.
const CUT: &str = "\\ The rest is left out\n";
/// What a repository without a commit is compared with: nothing.
const NOTHING: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// A folder as it was when a turn began.
pub struct FolderSnapshot {
    folder: PathBuf,
    /// The commit that everything is compared with, also when there are others by then.
    head: String,
    changed: Changed,
}

/// What differs from a commit.
struct Changed {
    files: BTreeMap<String, (State, Stamp)>,
    /// The last path that is known, where there are more than git was listened to.
    until: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Modified,
    Added,
    Deleted,
    /// Git does not know it yet.
    Unknown,
}

/// By which one knows that a file is the same; `None` where there is none.
type Stamp = Option<(SystemTime, u64)>;

/// `None` if git does not keep it, or does not answer in time.
pub async fn snapshot(folder: &Path) -> Option<FolderSnapshot> {
    let git = Git::of(folder).await?;
    let head = git.says(&["rev-parse", "-q", "--verify", "HEAD"]).await;
    let head = head.map_or(NOTHING.to_owned(), |head| head.trim().to_owned());
    let changed = changed(&git, folder, &head).await?;
    Some(FolderSnapshot { folder: folder.to_owned(), head, changed })
}

async fn changed(git: &Git, folder: &Path, head: &str) -> Option<Changed> {
    let compare = ["diff", "--name-status", "--no-renames", "--no-ext-diff", "--ignore-submodules=all"];
    let known = git.begins(&[&compare[..], &["--relative", "-z", head, "--", "."]].concat()).await?;
    let unknown = git.begins(&["ls-files", "--others", "--exclude-standard", "-z", "--", "."]).await?;
    // Both are in order.
    let until = [last_of_cut(&known, 2), last_of_cut(&unknown, 1)].into_iter().flatten().min();
    let mut words = known.0.split_terminator('\0');
    let known = std::iter::from_fn(|| {
        let state = match words.next()? {
            "A" => State::Added,
            "D" => State::Deleted,
            _ => State::Modified,
        };
        Some((words.next()?.to_owned(), state))
    });
    let all = known.chain(unknown.0.split_terminator('\0').map(|path| (path.to_owned(), State::Unknown)));
    let all = all.filter(|(path, _)| until.as_ref().is_none_or(|until| path <= until));
    let files = all.map(|(path, state)| (path.clone(), (state, stamp(&folder.join(path))))).collect();
    Some(Changed { files, until })
}

/// The last path of what was heard, if that is not all; each is the last of so many words.
fn last_of_cut((said, is_all): &(String, bool), words: usize) -> Option<String> {
    let (whole, _) = said.rsplit_once('\0').filter(|_| !is_all)?;
    let last = whole.split('\0').count() / words * words;
    Some(whole.split('\0').nth(last.checked_sub(1)?)?.to_owned())
}

fn stamp(path: &Path) -> Stamp {
    let about = fs::symlink_metadata(path).ok()?;
    Some((about.modified().ok()?, about.len()))
}

impl FolderSnapshot {
    /// What changed since; `None` if nothing did.
    pub async fn changes(self) -> Option<ChangeReport> {
        // Anew: the turn may have set something else.
        let git = Git::of(&self.folder).await?;
        let now = changed(&git, &self.folder, &self.head).await?;
        let mut files: BTreeMap<&str, Option<State>> = BTreeMap::new();
        let until = self.changed.until.iter().chain(&now.until).min();
        for (path, of_now) in &now.files {
            if self.changed.files.get(path) != Some(of_now) {
                files.insert(path, Some(of_now.0));
            }
        }
        // It is as it was committed again.
        let before = self.changed.files.keys().filter(|path| !now.files.contains_key(*path));
        files.extend(before.map(|path| (&**path, None)));
        files.retain(|path, _| until.is_none_or(|until| *path <= until.as_str()));
        // How many there are behind those that are known, nobody knows: one at least.
        let left_out = files.len().saturating_sub(MOST_FILES) as u32 + u32::from(until.is_some());
        let mut told = Vec::new();
        for (path, state) in files.into_iter().take(MOST_FILES) {
            let (summary, diff) = match state {
                Some(State::Unknown) => ("Added", self.content(path)),
                Some(State::Added) => ("Added", self.diff(&git, path).await),
                Some(State::Modified) => ("Modified", self.diff(&git, path).await),
                Some(State::Deleted) => ("Deleted", self.diff(&git, path).await),
                None => ("Restored", None),
            };
            let diff = diff.map(|diff| shortened(&diff).into());
            told.push(ChangedFile { path: head(path, LONGEST_PATH).into(), summary: summary.into(), diff });
        }
        (!told.is_empty()).then_some(ChangeReport { files: told, left_out })
    }

    async fn diff(&self, git: &Git, path: &str) -> Option<String> {
        let compare = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
        git.says(&[&compare[..], &["--relative", &self.head, "--", path]].concat()).await
    }

    /// A file that is new, as if it were a difference to nothing.
    fn content(&self, path: &str) -> Option<String> {
        let path = self.folder.join(path);
        // Neither a link to elsewhere nor a pipe.
        fs::symlink_metadata(&path).ok().filter(|about| about.is_file())?;
        let mut content = Vec::new();
        File::open(path).ok()?.take(LONGEST_DIFF as u64).read_to_end(&mut content).ok()?;
        let text = String::from_utf8_lossy(&content);
        (!content.contains(&0)).then(|| text.lines().map(|line| format!("+{line}\n")).collect())
    }
}

/// As much as is told. A line that begins so is no part of a file to any reader of such texts.
fn shortened(diff: &str) -> String {
    let told = head(diff, LONGEST_DIFF);
    if told.len() == diff.len() { told.to_owned() } else { format!("{told}\n{CUT}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(folder: &Path, arguments: &[&str]) {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let mut git = std::process::Command::new("git");
        assert!(git.args(who).args(arguments).current_dir(folder).status().unwrap().success());
    }

    fn summaries(report: Option<ChangeReport>) -> Vec<(String, String)> {
        let files = report.map(|report| report.files).unwrap_or_default();
        files.iter().map(|file| (file.path.to_string(), file.summary.to_string())).collect()
    }

    #[tokio::test]
    async fn what_the_folder_sets_runs_nothing_and_leads_nowhere_else() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("work");
        fs::create_dir_all(&folder).unwrap();
        run(&folder, &["init", "-q"]);
        fs::write(folder.join("a"), "1\n").unwrap();
        run(&folder, &["add", "-A"]);
        run(&folder, &["commit", "-qm", "x"]);
        let ran = place.path().join("ran");
        let program = format!("sh -c 'touch {}; cat'", ran.display());
        for key in
            ["filter.x.clean", "filter.x.process", "core.fsmonitor", "diff.x.textconv", "diff.x.command"]
        {
            run(&folder, &["config", key, &program]);
        }
        run(&folder, &["config", "filter.x.required", "true"]);
        fs::write(folder.join(".gitattributes"), "* filter=x diff=x\n").unwrap();
        let elsewhere = place.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("a"), "secret\n").unwrap();
        run(&folder, &["config", "core.worktree", elsewhere.to_str().unwrap()]);

        let before = snapshot(&folder).await.unwrap();
        fs::write(folder.join("a"), "22\n").unwrap();
        let report = before.changes().await.unwrap();
        assert!(!ran.exists(), "something ran");
        let diff = report.files.iter().find(|file| &*file.path == "a").unwrap().diff.clone().unwrap();
        assert!(diff.contains("+22") && !diff.contains("secret"), "{diff}");
    }

    #[tokio::test]
    async fn what_changed_before_is_not_told_and_what_was_committed_meanwhile_is() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("work");
        fs::create_dir(&folder).unwrap();
        assert!(snapshot(&folder).await.is_none(), "git does not keep it");
        run(place.path(), &["init", "-q"]);
        fs::write(folder.join("first"), "1").unwrap();
        let empty = snapshot(&folder).await.expect("a repository without a commit");
        fs::write(folder.join("second"), "2").unwrap();
        assert_eq!(summaries(empty.changes().await), [("second".into(), "Added".into())]);
        run(place.path(), &["add", "-A"]);
        run(place.path(), &["commit", "-qm", "x"]);
        fs::write(folder.join("first"), "11").unwrap();
        fs::write(folder.join("third"), "3").unwrap();

        assert!(snapshot(&folder).await.unwrap().changes().await.is_none(), "nothing happened");
        let before = snapshot(&folder).await.unwrap();
        fs::write(place.path().join("outside"), "x").unwrap();
        fs::write(folder.join("second"), "22").unwrap();
        run(place.path(), &["commit", "-aqm", "y"]);
        fs::write(folder.join("first"), "1").unwrap();
        fs::write(folder.join("third"), "33").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).unwrap();
        let report = before.changes().await.unwrap();
        let diff = |path: &str| report.files.iter().find(|file| &*file.path == path).unwrap().diff.clone();
        assert_eq!(diff("link"), None, "what a link leads to is not shown");
        assert!(diff("second").unwrap().contains("+22"), "{report:?}");
        assert_eq!(
            summaries(Some(report)),
            [("first", "Restored"), ("link", "Added"), ("second", "Modified"), ("third", "Added")]
                .map(|(path, summary)| (path.into(), summary.into()))
        );
    }

    #[tokio::test]
    async fn much_is_cut_to_what_one_frame_takes() {
        let place = tempfile::tempdir().unwrap();
        run(place.path(), &["init", "-q"]);
        let before = snapshot(place.path()).await.unwrap();
        for number in 0..25 {
            fs::write(place.path().join(format!("{number:02}")), "\u{1}\n".repeat(20_000)).unwrap();
        }
        let report = before.changes().await.unwrap();
        assert_eq!((report.files.len(), report.left_out), (20, 5));
        let written: usize =
            report.files.iter().map(|file| serde_json::to_string(&file.diff).unwrap().len()).sum();
        assert!(written < 220_000, "{written}");
        assert!(report.files.iter().all(|file| file.diff.as_ref().unwrap().ends_with(CUT)), "{report:?}");
    }

    #[tokio::test]
    async fn that_git_has_more_to_say_than_is_listened_to_is_told() {
        let place = tempfile::tempdir().unwrap();
        run(place.path(), &["init", "-q"]);
        // Each name is nearly as long as one may be.
        let name = |number: usize| format!("{number:04}{}", "x".repeat(240));
        for number in 0..1200 {
            fs::write(place.path().join(name(number)), "").unwrap();
        }
        let before = snapshot(place.path()).await.unwrap();
        for number in [3, 1199] {
            fs::write(place.path().join(name(number)), "changed").unwrap();
        }
        let report = before.changes().await.unwrap();
        let paths: Vec<&str> = report.files.iter().map(|file| &*file.path).collect();
        assert_eq!((paths, report.left_out), (vec![&*name(3)], 1));
    }
}
