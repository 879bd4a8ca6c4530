//! How the page is served. What it does, `web/flows` shows in a real browser.

use anyhow::{Context, Result};
use parlor_testkit::rest::RestClient;
use reqwest::header::HeaderMap;
use reqwest::{Method, Response, StatusCode};

use crate::scene::Scene;

async fn fetch(hub: &RestClient, path: &str, encoding: Option<&str>) -> Result<Response> {
    let request = hub.request(Method::GET, path);
    let request = match encoding {
        Some(encoding) => request.header("accept-encoding", encoding),
        None => request,
    };
    Ok(request.send().await?)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_address_of_the_page_answers_with_the_document_and_a_strict_policy() -> Result<()> {
    let scene = Scene::start().await;
    let outsider = RestClient::outsider(scene.url());
    for path in ["/", "/app", "/app/", "/app/rooms/welcome", "/app/rooms/a/messages/b", "/register"] {
        let answer = fetch(&outsider, path, None).await?;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let headers = answer.headers();
        assert_eq!(header(headers, "content-type"), "text/html; charset=utf-8", "{path}");
        assert_eq!(header(headers, "cache-control"), "no-cache", "{path}");
        let policy = header(headers, "content-security-policy");
        let wanted =
            ["default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'"];
        for part in wanted {
            assert!(policy.contains(part), "no {part} in {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        let tag = header(headers, "etag").to_owned();
        let again = outsider.request(Method::GET, path).header("if-none-match", &tag).send().await?;
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{path}");
        assert_eq!(again.bytes().await?.len(), 0);
    }
    scene.ends_well().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn hashed_files_are_kept_for_ever_and_come_small() -> Result<()> {
    let scene = Scene::start().await;
    let outsider = RestClient::outsider(scene.url());
    let document = fetch(&outsider, "/", None).await?.text().await?;
    let scripts: Vec<&str> =
        document.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    for path in scripts {
        let whole = fetch(&outsider, path, None).await?;
        assert_eq!(header(whole.headers(), "content-type"), "text/javascript; charset=utf-8");
        assert_eq!(header(whole.headers(), "cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(header(whole.headers(), "content-encoding"), "");
        let whole = whole.bytes().await?.len();
        for (accepted, sent) in [("gzip", "gzip"), ("gzip, br", "br")] {
            let smaller = fetch(&outsider, path, Some(accepted)).await?;
            assert_eq!(header(smaller.headers(), "content-encoding"), sent);
            assert_eq!(header(smaller.headers(), "vary"), "accept-encoding");
            assert!(smaller.bytes().await?.len() < whole / 2, "{path} as {sent}");
        }
    }
    let missing = fetch(&outsider, "/app/assets/none.js", None).await?;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    assert_eq!(header(missing.headers(), "content-type"), "application/json");
    scene.ends_well().await;
    Ok(())
}

/// Programs that ask for something that is not there must not be given a page instead.
#[tokio::test(flavor = "multi_thread")]
async fn reserved_addresses_never_answer_with_the_page() -> Result<()> {
    let scene = Scene::start().await;
    let outsider = RestClient::outsider(scene.url());
    let reserved = [
        "api", "ws", "uploads", "metrics", "hooks", "mcp", "a2a", "channels", "keys", "time", "messages",
        "presence", "stats",
    ];
    for area in reserved {
        for path in [format!("/{area}"), format!("/{area}/nothing/here")] {
            let answer = fetch(&outsider, &path, None).await?;
            let kind = header(answer.headers(), "content-type").to_owned();
            assert!(!kind.contains("html"), "{path} is {kind}");
        }
    }
    // There is an admin: the link is spent, and so is its page.
    let setup = fetch(&outsider, "/setup", None).await?;
    assert_eq!(setup.status(), StatusCode::NOT_FOUND);
    let body = setup.text().await?;
    assert!(body.contains("already set up"), "{body}");
    scene.ends_well().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_can_be_installed() -> Result<()> {
    let scene = Scene::start().await;
    let outsider = RestClient::outsider(scene.url());
    let answer = fetch(&outsider, "/app/manifest.webmanifest", None).await?;
    if header(answer.headers(), "content-type").contains("html") {
        // Built without npm: there is only the page that says so.
        return Ok(());
    }
    let manifest: serde_json::Value = serde_json::from_slice(&answer.bytes().await?)?;
    for icon in manifest["icons"].as_array().context("icons")? {
        let icon = fetch(&outsider, icon["src"].as_str().context("an address")?, None).await?;
        assert!(header(icon.headers(), "content-type").starts_with("image/"));
    }
    scene.ends_well().await;
    Ok(())
}
