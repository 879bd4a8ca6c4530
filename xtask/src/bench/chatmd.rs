//! Measures `parlor watch` against `tail -F`: the start with a cursor in a large file, and following a file
//! that grows by 100,000 lines per second.
//!
//! Owns: both measurements and their thresholds. A lost, repeated or reordered line is an error.

use super::Sample;
use super::options::{Hub, Options};
use super::process::cpu_of;
use super::report::{self, Row, Threshold};
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Number of lines appended per second.
const LINES_PER_SECOND: u64 = 100_000;
/// Size of the file in which a watch starts.
const LARGE_FILE_BYTES: u64 = 1024 * 1024 * 1024;
const SMALL_FILE_BYTES: u64 = 1024 * 1024;

pub fn run(options: &Options) -> Result<()> {
    let Hub::Binary(parlor) = &options.hub else { bail!("`bench chatmd` measures a binary") };
    let folder = Folder::new(&options.folder)?;
    let large = if options.small { SMALL_FILE_BYTES } else { LARGE_FILE_BYTES };
    let rate = if options.small { LINES_PER_SECOND / 100 } else { LINES_PER_SECOND };
    let lines = (rate as f64 * options.seconds) as u64;

    eprintln!("chatmd: writing a file of {} MiB", large / 1024 / 1024);
    let started = Project::new(&folder.0.join("large"))?;
    started.fill(large)?;
    // Saves a cursor at the end of the file.
    let mut first = Follower::watch(parlor, &started, &["--from-end"])?;
    first.stop()?;
    started.append_two()?;
    let mut second = Follower::watch(parlor, &started, &[])?;
    ensure!((second.number()?, second.number()?) == (0, 1), "the lines behind the cursor are missing");
    second.stop()?;
    let (mut starts, mut follows) = (Sides::default(), Sides::default());
    for round in 0..options.rounds {
        eprintln!("chatmd: round {} of {}", round + 1, options.rounds);
        for is_parlor in if round % 2 == 0 { [true, false] } else { [false, true] } {
            starts.push(is_parlor, start(parlor, &started, is_parlor)?);
            let project = Project::new(&folder.0.join(format!("follow-{round}-{is_parlor}")))?;
            follows.push(is_parlor, follow(parlor, &project, is_parlor, lines, rate)?);
        }
    }
    let size = large / 1024 / 1024;
    let rows = [
        starts.row(
            &format!("start: ms to the first new line of {size} MiB (reference: tail -F)"),
            Threshold::ValueAtMost { must: 1_000.0, going_to: 100.0 },
            |sample| Some(sample.value),
        ),
        starts.row(
            "start: MB peak memory",
            Threshold::ValueAtMost { must: 50.0, going_to: 25.0 },
            |sample| sample.extra.first().copied(),
        ),
        follows.row(
            &format!("follow: lines/s at {rate} appended/s (reference: tail -F)"),
            Threshold::RatioAtLeast { must: 0.9, going_to: Some(1.0) },
            |sample| Some(sample.value),
        ),
        follows.row("follow: ms from the last append to its line", Threshold::None, |sample| {
            sample.extra.first().copied()
        }),
        follows.row(
            "follow: MB peak memory",
            Threshold::ValueAtMost { must: 50.0, going_to: 25.0 },
            |sample| sample.extra.get(1).copied(),
        ),
        follows.row("follow: CPU µs each line", Threshold::None, |sample| sample.server_cpu_us),
    ];
    let judged = report::judge(&rows);
    print!("\n{}", report::table(&judged));
    if let Some(file) = &options.json {
        let text = format!("{:#}\n", report::json(&judged, options.rounds, options.seconds, f64::NAN));
        fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    if options.strict && judged.iter().any(|row| row.ok == Some(false)) {
        bail!("a threshold was missed");
    }
    Ok(())
}

/// Appends lines to a large file and measures the time from the start of a follower to the first of them.
fn start(parlor: &Path, project: &Project, is_parlor: bool) -> Result<Sample> {
    // `tail` prints the last lines of the file, a watch those behind its cursor.
    if is_parlor {
        project.append_two()?;
    }
    let began = Instant::now();
    let mut follower = match is_parlor {
        true => Follower::watch(parlor, project, &[])?,
        false => Follower::tail(project, "2")?,
    };
    let first = follower.number()?;
    let took = began.elapsed();
    ensure!(first == 0, "the first line was {first}");
    ensure!(follower.number()? == 1, "the second line is missing");
    let peak = follower.peak_mb()?;
    follower.stop()?;
    Ok(Sample {
        value: took.as_secs_f64() * 1e3,
        extra: vec![peak],
        server_cpu_us: None,
        cores_of_others: None,
    })
}

/// Appends lines at a fixed rate, one `write` each, and counts those that the follower prints.
fn follow(parlor: &Path, project: &Project, is_parlor: bool, lines: u64, rate: u64) -> Result<Sample> {
    fs::write(project.chat(), "")?;
    let mut follower = match is_parlor {
        true => Follower::watch(parlor, project, &[])?,
        false => Follower::tail(project, "+1")?,
    };
    let began = Instant::now();
    let chat = project.chat();
    let writer = std::thread::spawn(move || append_lines(&chat, lines, rate));
    for expected in 0..lines {
        let number = follower.number()?;
        ensure!(number == expected, "line {expected} is missing, repeated or out of order: {number}");
    }
    let ended = Instant::now();
    let written = writer.join().expect("the writer does not panic")?;
    let (peak, cpu) = (follower.peak_mb()?, follower.cpu()?);
    follower.stop()?;
    let lag = ended.saturating_duration_since(written).as_secs_f64() * 1e3;
    Ok(Sample {
        value: lines as f64 / (ended - began).as_secs_f64(),
        extra: vec![lag, peak],
        server_cpu_us: Some(cpu.as_secs_f64() * 1e6 / lines as f64),
        cores_of_others: None,
    })
}

/// Returns the time of the last write.
fn append_lines(path: &Path, lines: u64, rate: u64) -> Result<Instant> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    let began = Instant::now();
    for number in 0..lines {
        let due = began + Duration::from_nanos(number * 1_000_000_000 / rate);
        if let Some(early) = due.checked_duration_since(Instant::now())
            && early > Duration::from_micros(200)
        {
            std::thread::sleep(early);
        }
        file.write_all(format!("[bench-to-reader]: {number}\n").as_bytes())?;
    }
    let written = Instant::now();
    // Shows that the last message has no continuation lines, which a watch would wait for.
    file.write_all(b"# end\n")?;
    Ok(written)
}

struct Project(PathBuf);

impl Project {
    fn new(path: &Path) -> Result<Self> {
        fs::create_dir_all(path.join(".workplace"))?;
        Ok(Self(path.to_owned()))
    }

    fn chat(&self) -> PathBuf {
        self.0.join(".workplace/chat.md")
    }

    /// Appends two messages. The second one shows that the first has no continuation lines.
    fn append_two(&self) -> Result<()> {
        let mut file = OpenOptions::new().append(true).open(self.chat())?;
        Ok(file.write_all(b"[bench-to-reader]: 0\n[bench-to-reader]: 1\n")?)
    }

    /// Writes messages of ordinary length until the file has this size.
    fn fill(&self, bytes: u64) -> Result<()> {
        let line = format!("[coder-to-reviewer] @ [dev]: {}\n", "Please review the change. ".repeat(4));
        let mut file = BufWriter::with_capacity(1024 * 1024, File::create(self.chat())?);
        for _ in 0..bytes / line.len() as u64 {
            file.write_all(line.as_bytes())?;
        }
        file.flush()?;
        Ok(())
    }
}

/// A process that prints the lines of a file.
struct Follower {
    process: Child,
    lines: BufReader<ChildStdout>,
    line: String,
}

impl Follower {
    /// Starts a watch and waits until it has found its place in the file.
    fn watch(parlor: &Path, project: &Project, arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(parlor);
        command.arg("watch").arg(&project.0).args(arguments).stderr(Stdio::piped());
        let mut follower = Self::start(&mut command)?;
        let errors = follower.process.stderr.take().context("the error pipe is missing")?;
        let mut errors = BufReader::new(errors);
        let mut notice = String::new();
        errors.read_line(&mut notice)?;
        ensure!(notice.contains("watching"), "parlor watch failed: {notice}");
        // Later notices are errors of the measurement, and are shown.
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::stderr()));
        Ok(follower)
    }

    /// `from` is the option `-n` of `tail`.
    fn tail(project: &Project, from: &str) -> Result<Self> {
        let mut command = Command::new("tail");
        command.args(["-F", "-n", from]).arg(project.chat()).stderr(Stdio::null());
        Self::start(&mut command)
    }

    fn start(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut process =
            command.stdout(Stdio::piped()).spawn().with_context(|| format!("starting {name}"))?;
        let lines =
            BufReader::with_capacity(256 * 1024, process.stdout.take().context("the pipe is missing")?);
        Ok(Self { process, lines, line: String::new() })
    }

    /// Reads the next line and returns the number in its text.
    fn number(&mut self) -> Result<u64> {
        self.line.clear();
        ensure!(self.lines.read_line(&mut self.line)? > 0, "the follower ended");
        number_in(&self.line).with_context(|| format!("a line without a number: {}", self.line))
    }

    fn proc(&self, name: &str) -> Result<String> {
        let path = format!("/proc/{}/{name}", self.process.id());
        fs::read_to_string(&path).with_context(|| format!("reading {path}: the follower ended?"))
    }

    fn cpu(&self) -> Result<Duration> {
        cpu_of(&self.proc("stat")?).context("the CPU time is missing")
    }

    fn peak_mb(&self) -> Result<f64> {
        let status = self.proc("status")?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("VmHWM is missing")?;
        let kib: f64 = peak.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib * 1024.0 / 1e6)
    }

    /// Ends the process in an orderly way, so that a watch saves its cursor.
    fn stop(&mut self) -> Result<()> {
        Command::new("kill").arg(self.process.id().to_string()).status().context("running kill")?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the number in the text of a line of the file, or of the JSON object for it.
fn number_in(line: &str) -> Option<u64> {
    let text = match line.split_once("\"message\":\"") {
        Some((_, text)) => text,
        None => line.split_once("]: ")?.1,
    };
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    text[..end].parse().ok()
}

/// Deletes the files of the measurement also after an error.
struct Folder(PathBuf);

impl Folder {
    fn new(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("creating the folder {}", path.display()))?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Samples of all rounds.
#[derive(Default)]
struct Sides {
    parlor: Vec<Sample>,
    tail: Vec<Sample>,
}

impl Sides {
    fn push(&mut self, is_parlor: bool, sample: Sample) {
        let side = if is_parlor { &mut self.parlor } else { &mut self.tail };
        side.push(sample);
    }

    fn row(&self, label: &str, bar: Threshold, number: impl Fn(&Sample) -> Option<f64>) -> Row {
        Row::new(label.to_owned(), bar, &self.parlor, &self.tail, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_found_in_a_line_and_in_its_object() {
        assert_eq!(number_in("[bench-to-reader]: 17\n"), Some(17));
        let object = r#"{"timestamp":"2026-01-01T00:00:00.000Z","sender":"a","recipient":"b","broadcast":[],"message":"17","line_number":3}"#;
        assert_eq!(number_in(object), Some(17));
        assert_eq!(number_in("# heading\n"), None);
    }
}
