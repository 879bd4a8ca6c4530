//! Restarts of `parlor watch`: no line is lost, and an orderly stop repeats none.

use super::{Project, Watch};
use rustix::process::Signal;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::mpsc::{Receiver, channel};

/// Number of lines that the writer may be ahead of the test.
const AHEAD: usize = 2_000;

/// Appends one numbered line for each permit. Returns the number of lines.
fn write_lines(project: &Project, permits: Receiver<()>) -> usize {
    let mut file = OpenOptions::new().append(true).open(project.chat()).unwrap();
    let lines = permits.into_iter().enumerate().map(|(number, ())| {
        file.write_all(format!("[a-to-b]: {number}\n").as_bytes()).unwrap();
    });
    lines.count()
}

fn number(watch: &Watch) -> usize {
    watch.next_text().parse().unwrap()
}

/// Restarts a watch with a signal while lines are appended. Returns the printed numbers of each run.
fn restarts(signal: Signal) -> (usize, Vec<Vec<usize>>) {
    let project = Project::with_chat("");
    let (permit, permits) = channel();
    (0..AHEAD).for_each(|_| permit.send(()).unwrap());
    let mut runs = Vec::new();
    // Without a cursor, a watch starts at the end. This one saves a cursor at the beginning.
    project.watch(&[]).stop();
    let total = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_lines(&project, permits));
        for _ in 0..5 {
            let watch = project.watch(&[]);
            let mut numbers = Vec::new();
            for _ in 0..200 {
                numbers.push(number(&watch));
            }
            watch.signal(signal);
            // A killed process may leave half a line.
            let rest = watch.wait().1.into_iter().filter_map(|line| serde_json::from_str(&line).ok());
            let text = |line: serde_json::Value| line["message"].as_str().unwrap().parse::<usize>().unwrap();
            numbers.extend(rest.map(text));
            numbers.iter().for_each(|_| permit.send(()).unwrap());
            runs.push(numbers);
        }
        drop(permit);
        writer.join().unwrap()
    });
    let watch = project.watch(&[]);
    let mut numbers = Vec::new();
    while numbers.last().is_none_or(|last| last + 1 < total) {
        numbers.push(number(&watch));
    }
    assert_eq!(watch.stop(), [""; 0]);
    runs.push(numbers);
    (total, runs)
}

#[test]
fn an_orderly_stop_repeats_and_loses_nothing() {
    let (total, runs) = restarts(Signal::TERM);
    let printed = runs.concat();
    assert_eq!(printed.len(), total);
    assert!(printed.into_iter().eq(0..total));
}

#[test]
fn a_killed_watch_loses_nothing() {
    let (total, runs) = restarts(Signal::KILL);
    let mut next = 0;
    for run in runs {
        // A run may start with lines that the killed one had printed already, and has no gaps.
        assert!(run[0] <= next, "{} lines are missing", run[0] - next);
        assert!(run.windows(2).all(|pair| pair[1] == pair[0] + 1));
        next = run.last().unwrap() + 1;
    }
    assert_eq!(next, total);
}
