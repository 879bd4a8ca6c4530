//! Delivery of the web page: routes, caching, compression, and security headers. Its behaviour is tested by
//! `web/flows` in a real browser.

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
async fn every_route_of_the_page_returns_the_document_with_a_strict_content_security_policy() -> Result<()> {
    let scene = Scene::start().await;
    let anonymous = RestClient::outsider(scene.url());
    for path in ["/", "/app", "/app/", "/app/rooms/welcome", "/app/rooms/a/messages/b", "/register"] {
        let answer = fetch(&anonymous, path, None).await?;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let headers = answer.headers();
        assert_eq!(header(headers, "content-type"), "text/html; charset=utf-8", "{path}");
        assert_eq!(header(headers, "cache-control"), "no-cache", "{path}");
        let policy = header(headers, "content-security-policy");
        let required =
            ["default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'"];
        for part in required {
            assert!(policy.contains(part), "no {part} in {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        let etag = header(headers, "etag").to_owned();
        let revalidated = anonymous.request(Method::GET, path).header("if-none-match", &etag).send().await?;
        assert_eq!(revalidated.status(), StatusCode::NOT_MODIFIED, "{path}");
        assert_eq!(revalidated.bytes().await?.len(), 0);
    }
    scene.ends_well().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn hashed_assets_are_immutable_and_compressed() -> Result<()> {
    let scene = Scene::start().await;
    let anonymous = RestClient::outsider(scene.url());
    let document = fetch(&anonymous, "/", None).await?.text().await?;
    let scripts: Vec<&str> =
        document.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    for path in scripts {
        let uncompressed = fetch(&anonymous, path, None).await?;
        assert_eq!(header(uncompressed.headers(), "content-type"), "text/javascript; charset=utf-8");
        assert_eq!(header(uncompressed.headers(), "cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(header(uncompressed.headers(), "content-encoding"), "");
        let uncompressed = uncompressed.bytes().await?.len();
        for (accept_encoding, content_encoding) in [("gzip", "gzip"), ("gzip, br", "br")] {
            let compressed = fetch(&anonymous, path, Some(accept_encoding)).await?;
            assert_eq!(header(compressed.headers(), "content-encoding"), content_encoding);
            assert_eq!(header(compressed.headers(), "vary"), "accept-encoding");
            assert!(compressed.bytes().await?.len() < uncompressed / 2, "{path} as {content_encoding}");
        }
    }
    let missing = fetch(&anonymous, "/app/assets/none.js", None).await?;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    assert_eq!(header(missing.headers(), "content-type"), "application/json");
    scene.ends_well().await;
    Ok(())
}

/// An API client that requests an unknown path must not receive HTML.
#[tokio::test(flavor = "multi_thread")]
async fn reserved_paths_never_return_the_page() -> Result<()> {
    let scene = Scene::start().await;
    let anonymous = RestClient::outsider(scene.url());
    let reserved = [
        "api", "ws", "uploads", "metrics", "hooks", "mcp", "a2a", "channels", "keys", "time", "messages",
        "presence", "stats",
    ];
    for prefix in reserved {
        for path in [format!("/{prefix}"), format!("/{prefix}/nothing/here")] {
            let answer = fetch(&anonymous, &path, None).await?;
            let content_type = header(answer.headers(), "content-type").to_owned();
            assert!(!content_type.contains("html"), "{path} is {content_type}");
        }
    }
    // An admin exists, so the set-up link is used up and its page is not served.
    let setup = fetch(&anonymous, "/setup", None).await?;
    assert_eq!(setup.status(), StatusCode::NOT_FOUND);
    let body = setup.text().await?;
    assert!(body.contains("already set up"), "{body}");
    scene.ends_well().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_can_be_installed() -> Result<()> {
    let scene = Scene::start().await;
    let anonymous = RestClient::outsider(scene.url());
    let answer = fetch(&anonymous, "/app/manifest.webmanifest", None).await?;
    if header(answer.headers(), "content-type").contains("html") {
        // A build without npm contains only a placeholder page and no manifest.
        return Ok(());
    }
    let manifest: serde_json::Value = serde_json::from_slice(&answer.bytes().await?)?;
    for icon in manifest["icons"].as_array().context("icons")? {
        let icon = fetch(&anonymous, icon["src"].as_str().context("icon URL")?, None).await?;
        assert!(header(icon.headers(), "content-type").starts_with("image/"));
    }
    scene.ends_well().await;
    Ok(())
}
