//! The built-in page in a real browser, from the first link to a conversation.

use anyhow::{Context, Result};
use parlor_testkit::browser::{Browser, Page};
use parlor_testkit::gateway::Gateway;
use parlor_testkit::hub::HubCommand;
use parlor_testkit::rest::Rest;
use serde_json::json;

const PARLOR: &str = env!("CARGO_BIN_EXE_parlor");
const PASSWORD: &str = "Correct-horse-7";
const HOSTILE: &str =
    r#"<img src=x onerror="document.title='taken over'"><script>document.title='taken over'</script>"#;

#[tokio::test(flavor = "multi_thread")]
async fn two_people_come_from_the_setup_link_to_a_live_conversation() -> Result<()> {
    let Some(mut browser) = Browser::start_or_skip().await? else { return Ok(()) };
    let data = tempfile::tempdir()?;
    let mut hub = HubCommand::new(PARLOR, data.path()).env_remove("PARLOR_ADMIN_PASSWORD").start().await?;
    let link = hub.printed(|line| line.contains("/setup#token=").then(|| line.trim().to_owned())).await;
    let ada = browser.open(&link.context("a setup link")?).await?;
    become_the_first_admin(&mut browser, &ada).await?;
    make_a_room(&mut browser, &ada, "Kitchen").await?;
    let password = add_a_person(&mut browser, &ada, "grace", "Grace Hopper").await?;
    bring_into_the_room(&mut browser, &ada, "grace").await?;

    let grace = browser.open(hub.url()).await?;
    sign_in(&mut browser, &grace, "grace", &password).await?;
    browser.click(&grace, "#rooms .place").await?;
    say(&mut browser, &ada, "Is there any coffee left?").await?;
    see(&mut browser, &grace, "Is there any coffee left?").await?;
    say(&mut browser, &grace, "One cup, @Ada Lovelace.").await?;
    see(&mut browser, &ada, "One cup, @Ada Lovelace.").await?;
    let called = browser.evaluate(&ada, "document.querySelector('.called').textContent").await?;
    assert_eq!(called, "@Ada Lovelace");

    say(&mut browser, &grace, HOSTILE).await?;
    see(&mut browser, &ada, HOSTILE).await?;
    let made = browser.evaluate(&ada, "document.querySelectorAll('#lines :is(img, script)').length").await?;
    assert_eq!(made, 0, "text became elements");
    let title = browser.evaluate(&ada, "document.title").await?;
    assert_eq!(title, "Kitchen · Parlor", "text became code");

    share_a_file(&mut browser, &ada).await?;
    see_a_file(&mut browser, &grace, "menu.txt").await?;

    // Away and back: the cookie signs in again, and the address names the room.
    let address = browser.evaluate(&ada, "location.href").await?;
    browser.go(&ada, "about:blank").await?;
    browser.go(&ada, address.as_str().context("an address")?).await?;
    see(&mut browser, &ada, "One cup, @Ada Lovelace.").await?;
    say(&mut browser, &grace, "Welcome back.").await?;
    see(&mut browser, &ada, "Welcome back.").await?;

    assert_eq!(browser.complaints(), [] as [String; 0]);
    for way in ["document.body.innerHTML = '<b>'", "document.createElement('script').text = '1'"] {
        let tried =
            format!("(() => {{ try {{ {way}; return '' }} catch (error) {{ return error.name }} }})()");
        let refused = browser.evaluate(&ada, &tried).await?;
        assert_eq!(refused, "TypeError", "the policy lets the page do {way}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_asks_is_shown_whole_with_nothing_hidden_and_is_answered_there() -> Result<()> {
    let Some(mut browser) = Browser::start_or_skip().await? else { return Ok(()) };
    let data = tempfile::tempdir()?;
    let mut hub = HubCommand::new(PARLOR, data.path()).env_remove("PARLOR_ADMIN_PASSWORD").start().await?;
    let link = hub.printed(|line| line.contains("/setup#token=").then(|| line.trim().to_owned())).await;
    let page = browser.open(&link.context("a setup link")?).await?;
    become_the_first_admin(&mut browser, &page).await?;
    make_a_room(&mut browser, &page, "Kitchen").await?;
    let room = browser.evaluate(&page, "location.hash.match(/[A-Za-z0-9_-]{20,}/)[0]").await?;
    let ada = Rest::sign_in(hub.url(), "ada", PASSWORD).await?;
    let mut gateway = Gateway::connect(&ada, "laptop").await?;
    gateway.register("coder", "Coder").await?;
    let path = format!("/api/rooms/{}/members", room.as_str().context("a room")?);
    ada.post(&path, json!({ "memberId": "coder", "memberType": "agent" })).await?;
    let question = |request: &str, command: &str| {
        json!({
            "type": "gateway:permission_request", "requestId": request, "agentId": "coder", "roomId": room,
            "toolName": "Bash", "toolInput": { "command": command },
        })
    };
    gateway.send(&question("1", &format!("rm \u{202e}gnp.exe{HOSTILE}"))).await?;
    let shown = "document.querySelector('#questions pre')?.textContent ?? ''";
    browser.until(&page, &format!("({shown}).includes('onerror')")).await?;
    let text = browser.evaluate(&page, shown).await?;
    let text = text.as_str().context("a text")?;
    assert!(text.contains("\\u{202e}gnp.exe") && !text.contains('\u{202e}'), "{text}");
    let made =
        browser.evaluate(&page, "document.querySelectorAll('#questions :is(img, script)').length").await?;
    assert_eq!(made, 0, "text became elements");
    browser.click(&page, "#questions .ends button:last-child").await?;
    assert_eq!(gateway.wait_for_type("server:permission_response").await?["decision"], "allow");
    browser.until(&page, "document.getElementById('questions').hidden").await?;
    gateway.send(&question("2", "ls")).await?;
    browser.until(&page, "!document.getElementById('questions').hidden").await?;
    browser.click(&page, "#questions .ends button").await?;
    assert_eq!(gateway.wait_for_type("server:permission_response").await?["decision"], "deny");
    assert_eq!(browser.complaints(), [] as [String; 0]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_opens_a_room_late_sees_what_an_agent_says_from_its_beginning_and_stops_it() -> Result<()> {
    let Some(mut browser) = Browser::start_or_skip().await? else { return Ok(()) };
    let data = tempfile::tempdir()?;
    let hub = HubCommand::new(PARLOR, data.path()).start().await?;
    let admin = hub.admin().await?;
    let room = admin.make_room("Kitchen", &[]).await?;
    let mut gateway = Gateway::connect(&admin, "laptop").await?;
    gateway.register("coder", "Coder").await?;
    let path = format!("/api/rooms/{room}/members");
    admin.post(&path, json!({ "memberId": "coder", "memberType": "agent" })).await?;
    admin.post_message(&room, "@Coder count").await?;
    let turn = gateway.turn().await?;
    gateway.chunk(&turn, "reply", "text", "One. ").await?;
    gateway.settled().await?;

    let page = browser.open(hub.url()).await?;
    sign_in(&mut browser, &page, "admin", parlor_testkit::hub::PASSWORD).await?;
    // It hears of every room before one is opened.
    browser.until(&page, "document.querySelectorAll('#rooms .place').length > 0").await?;
    browser.click(&page, "#rooms .place").await?;
    see(&mut browser, &page, "One. ").await?;
    gateway.chunk(&turn, "reply", "text", "Two.").await?;
    see(&mut browser, &page, "One. Two.").await?;
    browser.click(&page, "#stop").await?;
    gateway.wait_for_type("server:stop_agent").await?;
    browser.until(&page, "document.getElementById('stop').hidden").await?;
    see(&mut browser, &page, "One. Two.").await?;
    assert_eq!(browser.complaints(), [] as [String; 0]);
    Ok(())
}

/// The page itself sends none yet: this does what a page that does would do.
async fn share_a_file(browser: &mut Browser, page: &Page) -> Result<()> {
    let send = "(async () => {
        const room = location.hash.match(/[A-Za-z0-9_-]{20,}/)[0];
        const renewed = await (await fetch('/api/auth/refresh', { method: 'POST' })).json();
        const headers = { Authorization: `Bearer ${renewed.data.accessToken}` };
        const form = new FormData();
        form.append('file', new Blob(['soup']), 'menu.txt');
        const file = await (await fetch('/api/upload', { method: 'POST', headers, body: form })).json();
        headers['Content-Type'] = 'application/json';
        const body = JSON.stringify({ content: 'lunch', attachmentIds: [file.data.id] });
        await fetch(`/api/rooms/${room}/messages`, { method: 'POST', headers, body });
    })()";
    browser.evaluate(page, send).await.map(drop)
}

async fn see_a_file(browser: &mut Browser, page: &Page, name: &str) -> Result<()> {
    let files = "[...document.querySelectorAll('.bubble .file')]";
    browser.until(page, &format!("{files}.some((file) => file.textContent === {})", json!(name))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_invited_joins_and_comes_back_with_a_second_factor() -> Result<()> {
    let Some(mut browser) = Browser::start_or_skip().await? else { return Ok(()) };
    let data = tempfile::tempdir()?;
    let hub = HubCommand::new(PARLOR, data.path()).start().await?;
    let invitation = hub.admin().await?.post("/api/invites", json!({})).await?.data()?;
    let page = browser.open(invitation["url"].as_str().context("a link")?).await?;
    become_the_first_admin(&mut browser, &page).await?;
    browser.until(&page, "document.getElementById('me').textContent.includes('Ada Lovelace')").await?;
    assert_eq!(browser.evaluate(&page, "location.href").await?, format!("{}/", hub.url()));

    let ada = hub.sign_in("ada", PASSWORD).await?;
    let (_, codes) = crate::sign_in::second_factor::turn_on(&ada).await;
    browser.click(&page, "#sign-out").await?;
    sign_in(&mut browser, &page, "ada", PASSWORD).await?;
    browser.fill(&page, "#door [name=code]", "000000 is wrong").await?;
    browser.click(&page, "#door-go").await?;
    browser.until(&page, "document.querySelector('#door .wrong-form').checkVisibility()").await?;
    browser.fill(&page, "#door [name=code]", &codes[0]).await?;
    browser.click(&page, "#door-go").await?;
    browser.until(&page, "document.getElementById('app').checkVisibility()").await?;
    assert_eq!(browser.complaints(), [] as [String; 0]);
    Ok(())
}

/// Also somebody who was invited.
async fn become_the_first_admin(browser: &mut Browser, page: &Page) -> Result<()> {
    browser.fill(page, "#door [name=username]", "ada").await?;
    browser.fill(page, "#door [name=displayName]", "Ada Lovelace").await?;
    browser.fill(page, "#door [name=password]", PASSWORD).await?;
    browser.click(page, "#door-go").await
}

async fn make_a_room(browser: &mut Browser, page: &Page, name: &str) -> Result<()> {
    browser.click(page, "#empty-go").await?;
    browser.fill(page, "#room-dialog [name=name]", name).await?;
    browser.click(page, "#room-dialog .button:not(.quiet)").await?;
    browser
        .until(page, &format!("document.getElementById('room-name').textContent === {}", json!(name)))
        .await
}

/// Returns the password that the page made up.
async fn add_a_person(browser: &mut Browser, page: &Page, username: &str, name: &str) -> Result<String> {
    browser.click(page, "#new-person").await?;
    browser.fill(page, "#person-dialog [name=username]", username).await?;
    browser.fill(page, "#person-dialog [name=displayName]", name).await?;
    browser.click(page, "#person-dialog form .button:not(.quiet)").await?;
    browser.until(page, "document.getElementById('handover').checkVisibility()").await?;
    let password = browser.evaluate(page, "document.getElementById('handover-password').textContent").await?;
    browser.click(page, "#handover .button").await?;
    Ok(password.as_str().context("a password")?.to_owned())
}

async fn bring_into_the_room(browser: &mut Browser, page: &Page, username: &str) -> Result<()> {
    browser.click(page, "#people").await?;
    browser.fill(page, "#search", username).await?;
    browser.click(page, "#found .button").await?;
    browser.until(page, "document.querySelectorAll('#members li').length === 2").await?;
    browser.click(page, "#people-dialog .close").await
}

async fn sign_in(browser: &mut Browser, page: &Page, username: &str, password: &str) -> Result<()> {
    browser.fill(page, "#door [name=username]", username).await?;
    browser.fill(page, "#door [name=password]", password).await?;
    browser.click(page, "#door-go").await
}

async fn say(browser: &mut Browser, page: &Page, text: &str) -> Result<()> {
    browser.fill(page, "#words", text).await?;
    browser.click(page, "#send").await
}

async fn see(browser: &mut Browser, page: &Page, text: &str) -> Result<()> {
    let bubbles = "[...document.querySelectorAll('.said:not(.waiting) .bubble')]";
    browser.until(page, &format!("{bubbles}.some((bubble) => bubble.textContent === {})", json!(text))).await
}
