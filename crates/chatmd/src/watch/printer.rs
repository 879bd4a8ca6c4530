//! Writes output on a thread of its own, because a write to a pipe waits for the reader.

use std::io::{self, Write};
use tokio::sync::{mpsc, oneshot};

pub struct Printer {
    jobs: mpsc::Sender<Job>,
}

struct Job {
    bytes: Vec<u8>,
    done: oneshot::Sender<io::Result<()>>,
}

impl Printer {
    /// Starts the thread. It ends with this value, once its last write has returned; nothing waits for it,
    /// because the reader of a pipe may never read.
    pub fn new(mut output: impl Write + Send + 'static) -> Self {
        let (jobs, mut queue) = mpsc::channel::<Job>(1);
        std::thread::spawn(move || {
            while let Some(Job { bytes, done }) = queue.blocking_recv() {
                // The receiver is gone if the watch stopped in the meantime.
                let _ = done.send(output.write_all(&bytes).and_then(|()| output.flush()));
            }
        });
        Self { jobs }
    }

    /// Writes and flushes.
    pub async fn print(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        let (done, printed) = oneshot::channel();
        let sent = self.jobs.send(Job { bytes, done }).await;
        sent.map_err(|_| io::Error::other("the output thread has ended"))?;
        printed.await.map_err(|_| io::Error::other("the output thread has ended"))?
    }
}
