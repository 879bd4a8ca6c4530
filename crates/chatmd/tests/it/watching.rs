//! Tests of the loop of `parlor watch`: output, cursor and status.

use crate::scene::Project;
use parlor_chatmd::watch::{WatchStart, watch};
use serde_json::Value;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot};

/// Passes each printed line to the test.
struct Output(mpsc::UnboundedSender<Value>, Vec<u8>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        for line in std::mem::take(&mut self.1).split_inclusive(|byte| *byte == b'\n') {
            assert_eq!(line.last(), Some(&b'\n'));
            let sent = self.0.send(serde_json::from_slice(line).unwrap());
            sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        }
        Ok(())
    }
}

struct Watch {
    lines: mpsc::UnboundedReceiver<Value>,
    reports: Arc<Mutex<Vec<String>>>,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<io::Result<()>>,
}

impl Watch {
    fn start(project: &Project, start: WatchStart) -> Self {
        let (printed, lines) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let (workplace, reported) = (project.workplace(), reports.clone());
        let report = move |text: &str| reported.lock().unwrap().push(text.to_owned());
        let stopped = async { stopped.await.unwrap_or(()) };
        let task = tokio::spawn(watch(workplace, start, Output(printed, Vec::new()), report, stopped));
        Self { lines, reports, stop, task }
    }

    async fn next(&mut self) -> String {
        self.lines.recv().await.unwrap()["message"].as_str().unwrap().to_owned()
    }

    async fn stop(self) -> Vec<String> {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
        self.reports.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn an_orderly_stop_repeats_and_loses_nothing() {
    let project = Project::with_chat("[a-to-b]: old\n");
    let mut number = 0;
    for _ in 0..3 {
        let mut watch = Watch::start(&project, WatchStart::Saved);
        if number == 0 {
            // Without a saved cursor, a watch starts at the end that it finds.
            while !project.path(".parlor-cursor").exists() {
                tokio::task::yield_now().await;
            }
        } else {
            assert_eq!(watch.next().await, "while stopped");
        }
        for _ in 0..2 {
            number += 1;
            project.append(format!("[a-to-b]: {number}\n"));
            assert_eq!(watch.next().await, number.to_string());
        }
        watch.stop().await;
        project.append("[a-to-b]: while stopped\n");
    }
}

#[tokio::test]
async fn an_aborted_watch_repeats_at_most_and_loses_nothing() {
    let project = Project::new();
    let mut watch = Watch::start(&project, WatchStart::Beginning);
    for round in 0..5 {
        let numbers = round * 20..(round + 1) * 20;
        numbers.clone().for_each(|number| project.append(format!("[a-to-b]: {number}\n")));
        for number in numbers {
            assert_eq!(watch.next().await, number.to_string());
        }
    }
    // The task ends without its last save, as a killed process does.
    watch.task.abort();
    assert!(watch.task.await.unwrap_err().is_cancelled());
    project.append("[a-to-b]: 100\n");
    let mut watch = Watch::start(&project, WatchStart::Saved);
    let first: usize = watch.next().await.parse().unwrap();
    assert!(first <= 100);
    for number in first + 1..=100 {
        assert_eq!(watch.next().await, number.to_string());
    }
    watch.stop().await;
}

#[tokio::test]
async fn flags_override_the_saved_cursor() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let mut watch = Watch::start(&project, WatchStart::Beginning);
    assert_eq!(watch.next().await, "one");
    watch.stop().await;
    project.append("[a-to-b]: two\n");
    let mut watch = Watch::start(&project, WatchStart::Beginning);
    assert_eq!(watch.next().await, "one");
    assert_eq!(watch.next().await, "two");
    watch.stop().await;
    project.append("[a-to-b]: three\n");
    let watch = Watch::start(&project, WatchStart::End);
    let reports = watch.stop().await;
    assert!(reports[0].contains("from line 4"), "{reports:?}");
    let mut watch = Watch::start(&project, WatchStart::Saved);
    project.append("[a-to-b]: four\n");
    assert_eq!(watch.next().await, "four");
    watch.stop().await;
}

#[tokio::test]
async fn a_closed_output_ends_the_watch_without_an_error_and_without_loss() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let mut watch = Watch::start(&project, WatchStart::Beginning);
    assert_eq!(watch.next().await, "one");
    watch.lines.close();
    project.append("[a-to-b]: two\n");
    watch.task.await.unwrap().unwrap();
    let mut watch = Watch::start(&project, WatchStart::Saved);
    assert_eq!(watch.next().await, "two");
    watch.stop().await;
}

#[tokio::test]
async fn a_second_watch_is_refused_and_leaves_the_status_alone() {
    let project = Project::new();
    let first = Watch::start(&project, WatchStart::Saved);
    while !project.path("process-status.json").exists() {
        tokio::task::yield_now().await;
    }
    let status = std::fs::read(project.path("process-status.json")).unwrap();
    let second = Watch::start(&project, WatchStart::Saved);
    let error = second.task.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("another watch runs on this project and uses"), "{error}");
    assert_eq!(std::fs::read(project.path("process-status.json")).unwrap(), status);
    first.stop().await;
}

#[tokio::test]
async fn a_removed_workplace_ends_the_watch_with_an_error() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let mut watch = Watch::start(&project, WatchStart::Beginning);
    assert_eq!(watch.next().await, "one");
    // The watch may write a file between the steps of the removal.
    while std::fs::remove_dir_all(project.root().join(".workplace")).is_err() {}
    let error = watch.task.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("was removed"), "{error}");
}
