//! Tests in a real browser that uploaded files are never executed.

use anyhow::Result;
use parlor_testkit::browser::Browser;
use serde_json::{Value, json};

use crate::attacks::uploads::SCRIPT;
use crate::files::{sent, url};
use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn uploaded_files_are_not_executed_by_a_real_browser() -> Result<()> {
    let mut browser = Browser::start().await?;
    let scene = Scene::start().await;
    let page = browser.open(scene.url()).await?;
    let image = sent(&scene.admin, "a.gif", format!("GIF89a{SCRIPT}").as_bytes()).await;
    let address = |file: &Value| format!("{}{}?token={}", scene.url(), url(file), scene.admin.token());
    browser.go(&page, &address(&image)).await?;
    let seen =
        "[document.contentType, self.origin, document.title === 'taken over', document.scripts.length]";
    assert_eq!(browser.evaluate(&page, seen).await?, json!(["image/gif", "null", false, 0]));

    for (name, content) in [
        ("a.txt", format!("words {SCRIPT}")),
        ("a.md", format!("<p>{SCRIPT}")),
        ("a.pdf", format!("%PDF-1.7 {SCRIPT}")),
    ] {
        let file = sent(&scene.admin, name, content.as_bytes()).await;
        browser.go(&page, scene.url()).await?;
        let refused = browser.go(&page, &address(&file)).await.unwrap_err();
        assert!(refused.to_string().contains("ERR_ABORTED"), "downloaded, not shown: {refused}");
        let title = browser.evaluate(&page, "document.title").await?;
        assert_ne!(title, "taken over", "{name}");
    }
    // A file that is a valid script and a valid image runs neither in a page of the hub without a content
    // security policy, nor in a page of another origin.
    let both = sent(&scene.admin, "a.gif", b"GIF89a=1;document.title='taken over'").await;
    let include = format!(
        "new Promise((done) => {{
            const script = document.createElement('script');
            script.src = {};
            script.onload = () => done('ran');
            script.onerror = () => done('refused');
            document.documentElement.append(script);
        }})",
        json!(address(&both))
    );
    for place in [format!("{}/api/health", scene.url()), "about:blank".to_owned()] {
        browser.go(&page, &place).await?;
        assert_eq!(browser.evaluate(&page, &include).await?, "refused", "in {place}");
    }
    scene.ends_well().await;
    Ok(())
}
