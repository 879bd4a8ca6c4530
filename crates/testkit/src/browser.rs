//! A real browser for tests: headless Chromium from the `PATH`, controlled over the DevTools protocol.
//!
//! Owns: the process and its temporary profile. Limits: one call at a time. The tests of Parlor's own page
//! are in `web/flows`.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::hub::Capture;
use crate::socket::{Socket, TEST_TIMEOUT};

pub struct Browser {
    // Dropped in this order: the process must end before its profile is removed.
    _process: Child,
    _stderr: Capture,
    _profile: tempfile::TempDir,
    socket: Socket,
    calls: u64,
}

/// A tab with its own cookies and storage.
#[derive(Clone)]
pub struct Page {
    session: String,
}

impl Browser {
    pub async fn start() -> Result<Self> {
        let binary = chromium().context("there is no chromium in PATH")?;
        let profile = tempfile::tempdir()?;
        let mut process = Command::new(binary)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-dev-shm-usage", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut stderr = Capture::of(process.stderr.take().context("stderr is piped")?);
        let address = timeout(TEST_TIMEOUT, stderr.find(devtools)).await;
        let Ok(Some((url, path))) = address else { bail!("Chromium did not start:\n{}", stderr.text()) };
        let socket = Socket::open(&url, &path, &[]).await?;
        Ok(Self { _process: process, _stderr: stderr, _profile: profile, socket, calls: 0 })
    }

    /// Opens a URL in a new tab.
    pub async fn open(&mut self, url: &str) -> Result<Page> {
        let context = self.call(None, "Target.createBrowserContext", json!({})).await?;
        let target = json!({ "url": "about:blank", "browserContextId": context["browserContextId"] });
        let target = self.call(None, "Target.createTarget", target).await?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = self.call(None, "Target.attachToTarget", attach).await?;
        let page = Page { session: attached["sessionId"].as_str().context("a session")?.to_owned() };
        self.go(&page, url).await?;
        Ok(page)
    }

    pub async fn go(&mut self, page: &Page, url: &str) -> Result<()> {
        let result = self.call(Some(page), "Page.navigate", json!({ "url": url })).await?;
        ensure!(result.get("errorText").is_none(), "{url} cannot be opened: {result}");
        Ok(())
    }

    /// Evaluates a JavaScript expression in the page and returns its value. A promise is awaited.
    pub async fn evaluate(&mut self, page: &Page, expression: &str) -> Result<Value> {
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call(Some(page), "Runtime.evaluate", parameters).await?;
        ensure!(answer.get("exceptionDetails").is_none(), "{expression}\n{answer}");
        Ok(answer["result"]["value"].clone())
    }

    async fn call(&mut self, page: Option<&Page>, method: &str, parameters: Value) -> Result<Value> {
        self.calls += 1;
        let mut frame = json!({ "id": self.calls, "method": method, "params": parameters });
        if let Some(page) = page {
            frame["sessionId"] = json!(page.session);
        }
        self.socket.send(&frame).await?;
        loop {
            let frame =
                self.socket.frame(TEST_TIMEOUT).await.with_context(|| format!("no answer to {method}"))?;
            if frame["id"] == self.calls {
                ensure!(frame.get("error").is_none(), "{method}: {}", frame["error"]);
                return Ok(frame["result"].clone());
            }
        }
    }
}

/// Extracts `http://127.0.0.1:PORT` and the path of the DevTools endpoint from the line that Chromium prints.
fn devtools(line: &str) -> Option<(String, String)> {
    let address = line.strip_prefix("DevTools listening on ws://")?;
    let (host, path) = address.split_once('/')?;
    Some((format!("http://{host}"), format!("/{path}")))
}

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("chromium")).find(|file| file.is_file())
}
