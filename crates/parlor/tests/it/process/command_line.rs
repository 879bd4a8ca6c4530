//! Tests of the command line: settings, administration with and without a running hub, and rejected starts.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use parlor_testkit::ably::Ably;
use parlor_testkit::agentim::Client;
use parlor_testkit::hub::HubCommand;
use parlor_testkit::rest::RestClient;
use parlor_wire::ably::frames::Format;

use crate::scene::{PARLOR, PASSWORD, Scene, assert_refused, assert_revoked, bytes_in};

pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Runs `parlor` with these arguments and exactly these `PARLOR_…` variables.
pub fn parlor(arguments: &[&str], variables: &[(&str, &str)], input: &str) -> Done {
    let mut command = Command::new(PARLOR);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PARLOR_")) {
        command.env_remove(name);
    }
    let mut child = command
        .args(arguments)
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input may exit before it is written.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let done = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Done { code: done.status.code().unwrap(), out: text(done.stdout), err: text(done.stderr) }
}

#[track_caller]
pub fn ok(arguments: &[&str]) -> String {
    let done = parlor(arguments, &[], "");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{arguments:?}: {}", done.out);
    done.out
}

/// Runs a command that must fail with exit code 1 and print nothing to stdout. Returns its error message.
#[track_caller]
pub fn refused(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let done = parlor(arguments, variables, "");
    assert_eq!((done.code, done.out.as_str()), (1, ""), "{}", done.err);
    done.err.trim_end().to_owned()
}

#[test]
fn the_example_file_is_valid_and_contains_only_defaults() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("parlor.toml");
    let example = ok(&["config", "example"]);
    std::fs::write(&file, &example).unwrap();
    let file = file.to_str().unwrap();
    assert!(ok(&["config", "check", "--config", file]).ends_with("ok.\n"));
    assert_eq!(ok(&["config", "show", "--config", file]), ok(&["config", "show"]));
    for setting in ["listen", "admin_password", "client_rate_limit_max", "max_ws_connections_per_user"] {
        assert!(example.contains(setting), "{setting}");
    }
}

#[test]
fn a_flag_overrides_a_variable_which_overrides_the_file_which_overrides_the_default() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("parlor.toml");
    std::fs::write(&file, "listen = \"127.0.0.1:1001\"\nlockout_failures = 7\n").unwrap();
    let file = file.to_str().unwrap();
    let show = |arguments: &[&str], variables: &[(&str, &str)]| {
        let done = parlor(&[&["config", "show"], arguments].concat(), variables, "");
        assert_eq!(done.code, 0, "{}", done.err);
        let line = |key: &str| done.out.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
        (line("listen ="), line("lockout_failures ="))
    };
    let (listen, failures) = show(&[], &[]);
    assert!(listen.contains("127.0.0.1:7878") && listen.ends_with("# default"), "{listen}");
    assert!(failures.starts_with("lockout_failures = 5 "), "{failures}");
    let (listen, failures) = show(&["--config", file], &[]);
    assert!(listen.contains(":1001") && failures.contains("= 7"), "{listen} {failures}");
    let (listen, _) = show(&["--config", file], &[("PARLOR_LISTEN", "127.0.0.1:1002")]);
    assert!(listen.contains(":1002") && listen.ends_with("# env PARLOR_LISTEN"), "{listen}");
    let variables = [("PARLOR_LISTEN", "127.0.0.1:1002"), ("PARLOR_CONFIG", file)];
    let (listen, failures) = show(&["--listen", "127.0.0.1:1003"], &variables);
    assert!(listen.contains(":1003") && listen.ends_with("# flag --listen"), "{listen}");
    assert!(failures.contains("= 7"), "{failures}");
}

#[test]
fn unknown_names_and_invalid_values_are_all_reported_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("parlor.toml");
    std::fs::write(&file, "listn = \"127.0.0.1:1001\"\nauth_timeout = 0\n").unwrap();
    let arguments = ["--config", file.to_str().unwrap()];
    let variables = [("PARLOR_MAX_REACTONS", "1"), ("PARLOR_LOG_FORMAT", "xml")];
    for command in [&["config", "check"][..], &["config", "show"], &["serve"], &["admin", "user", "list"]] {
        let error = refused(&[command, &arguments[..]].concat(), &variables);
        for part in
            ["4 problems", "listn", "listen", "auth_timeout", "PARLOR_MAX_REACTONS", "PARLOR_LOG_FORMAT"]
        {
            assert!(error.contains(part), "{command:?}: no {part} in {error}");
        }
    }
    assert!(!directory.path().join("parlor-data").exists());
    assert!(
        refused(&["config", "check", "--config", "no/such/file.toml"], &[]).contains("no/such/file.toml")
    );
    assert_eq!(parlor(&["--no-such-flag"], &[], "").code, 2);
}

#[test]
fn secrets_from_every_source_are_masked() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret.txt");
    std::fs::write(&file, "canary-in-a-file-0123456789-0123456789\n").unwrap();
    let variables =
        [("PARLOR_ADMIN_PASSWORD", "Canary-admin-1"), ("PARLOR_TOKEN_SECRET_FILE", file.to_str().unwrap())];
    for command in ["show", "check"] {
        let done = parlor(&["config", command], &variables, "");
        assert_eq!(done.code, 0, "{}", done.err);
        assert!(!done.out.to_lowercase().contains("canary"), "{}", done.out);
    }
    let done = parlor(&["config", "show"], &variables, "");
    let line = |key: &str| done.out.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("admin_password =").contains("********"), "{}", done.out);
    assert!(line("token_secret =").ends_with("# env PARLOR_TOKEN_SECRET_FILE"), "{}", done.out);
    // An error message does not contain the secret either.
    let error = refused(&["config", "check"], &[("PARLOR_TOKEN_SECRET", "canary")]);
    assert!(error.contains("PARLOR_TOKEN_SECRET") && !error.contains("canary"), "{error}");
}

/// Returns the rest of the printed line that starts with `label`.
fn after<'a>(text: &'a str, label: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(label)).unwrap_or_else(|| panic!("no {label} in {text}"))
}

/// Adds users and keys on this data directory with the command line. Returns a password and a key.
fn administer(data: &str) -> (String, String) {
    let admin = |arguments: &[&str]| ok(&[&["--data", data, "admin"], arguments].concat());
    let added = admin(&["user", "add", "ada", "--display-name", "Ada L."]);
    let password = after(&added, "Password: ").to_owned();
    let listed = admin(&["user", "list"]);
    assert!(listed.contains("ada") && listed.contains("Ada L.") && !listed.contains(&password), "{listed}");
    let output = refused(&["--data", data, "admin", "user", "add", "ada"], &[]);
    assert_eq!(output, "Username already taken");
    assert_eq!(refused(&["--data", data, "admin", "user", "remove", "nobody"], &[]), "User not found");
    let done = parlor(&["--data", data, "admin", "user", "add", "bob", "--password-stdin"], &[], "weak\n");
    assert_eq!(done.code, 1);
    assert!(done.err.contains("password must have at least 8 characters"), "{}", done.err);
    let input = format!("{PASSWORD}\n");
    let done = parlor(&["--data", data, "admin", "user", "add", "bob", "--password-stdin"], &[], &input);
    assert_eq!((done.code, done.out.as_str()), (0, "Added bob (user).\n"), "{}", done.err);

    let made = admin(&["token", "add", "ci", "--user", "ada", "--scope", "read,write"]);
    let key = after(&made, "Key: ").to_owned();
    let listed = admin(&["token", "list"]);
    assert!(listed.contains("ci") && listed.contains("read write") && !listed.contains(&key), "{listed}");
    let output =
        refused(&["--data", data, "admin", "token", "add", "x", "--user", "ada", "--scope", "all"], &[]);
    assert!(
        output.contains(
            "scope must be one of: read, write, agents, hosting, sources, dead-letters, metrics, admin"
        ),
        "{output}"
    );
    assert_eq!(refused(&["--data", data, "admin", "token", "revoke", "no-such"], &[]), "API key not found");
    (password, key)
}

fn key_id(data: &str) -> String {
    let listed = ok(&["--data", data, "admin", "token", "list"]);
    listed.lines().nth(1).unwrap().split_whitespace().next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn users_and_keys_are_administered_in_a_running_hub() {
    let scene = Scene::process().await;
    let data = scene.data().to_str().unwrap().to_owned();
    let on = data.clone();
    let (password, key) = tokio::task::spawn_blocking(move || administer(&on)).await.unwrap();
    let ada = scene.hub.sign_in("ada", &password).await.unwrap();
    scene.hub.sign_in("bob", PASSWORD).await.unwrap();
    let program = RestClient::outsider(scene.url()).with_token(&key);
    assert_eq!(program.get("/api/users/me").await.unwrap().data().unwrap()["displayName"], "Ada L.");

    let mut by_key = Client::connect(&program).await.unwrap();
    ok(&["--data", &data, "admin", "token", "revoke", &key_id(&data)]);
    assert_revoked(&mut by_key).await;
    assert_refused(&program.get("/api/users/me").await.unwrap(), 401);
    let mut by_hand = Client::connect(&ada).await.unwrap();
    let reset = ok(&["--data", &data, "admin", "user", "reset-password", "ada"]);
    assert_revoked(&mut by_hand).await;
    assert!(scene.hub.sign_in("ada", &password).await.is_err());
    let ada = scene.hub.sign_in("ada", after(&reset, "Password: ")).await.unwrap();
    let mut by_hand = Client::connect(&ada).await.unwrap();
    assert_eq!(ok(&["--data", &data, "admin", "user", "remove", "ada"]), "Removed ada.\n");
    assert_revoked(&mut by_hand).await;
    assert_eq!(
        refused(&["--data", &data, "admin", "user", "remove", "admin"], &[]),
        "The last admin must remain"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_the_ably_protocol_are_administered_in_a_running_hub() {
    let scene = Scene::process().await;
    scene.person("ada").await;
    let data = scene.data().to_str().unwrap();
    let admin = |arguments: &[&str]| ok(&[&["--data", data, "admin", "ably-key"], arguments].concat());
    assert_eq!(admin(&["list"]), "There are no keys.\n");
    let capability = r#"{"b":["*"],"a":["subscribe","publish"]}"#;
    let made = admin(&["create", "ci", "--user", "admin", "--capability", capability]);
    let key = after(&made, "Key: ").to_owned();
    let (name, secret) = key.split_once(':').unwrap();
    let listed = admin(&["list"]);
    assert!(listed.contains(r#"{"a":["publish","subscribe"],"b":["*"]}"#), "{listed}");
    assert!(!listed.contains(secret), "{listed}");
    let mut client = Ably::connect(scene.url(), Format::Json, &[("key", &key)]).await.unwrap();
    client.attach("a").await.unwrap();
    admin(&["revoke", name]);
    client.closed().await.unwrap();
    for (user, capability) in
        [("ada", "{\"*\":[\"*\"]}"), ("admin", "nonsense"), ("nobody", "{\"*\":[\"*\"]}")]
    {
        let arguments = ["create", "ci", "--user", user, "--capability", capability];
        refused(&[&["--data", data, "admin", "ably-key"], &arguments[..]].concat(), &[]);
    }
    assert_eq!(admin(&["list"]), "There are no keys.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_can_freeze_any_room() {
    let scene = Scene::process().await;
    let data = scene.data().to_str().unwrap();
    let ada = scene.person("ada").await;
    let room = ada.make_room("kitchen", &[]).await.unwrap();
    let path = format!("/api/rooms/{room}");
    let printed = format!("Froze the room {room}: its agents do not respond until it is thawed.\n");
    assert_eq!(ok(&["--data", data, "freeze", &room]), printed);
    let frozen = ada.get(&path).await.unwrap().data().unwrap();
    assert!(frozen["frozenAt"].is_string() && frozen.get("frozenBy").is_none(), "{frozen}");
    assert_eq!(
        ok(&["--data", data, "freeze", "--thaw", &room]),
        format!("Thawed the room {room}: its agents respond again.\n")
    );
    assert_eq!(ada.get(&path).await.unwrap().data().unwrap().get("frozenAt"), None);
    assert_eq!(refused(&["--data", data, "freeze", "nowhere"], &[]), "Room not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn users_and_keys_are_administered_while_no_hub_is_running() {
    let data = tempfile::tempdir().unwrap();
    let on = data.path().to_str().unwrap().to_owned();
    assert_eq!(ok(&["--data", &on, "admin", "user", "list"]), "There are no users yet.\n");
    assert_eq!(ok(&["--data", &on, "admin", "token", "list"]), "There are no keys.\n");
    let made = ok(&["--data", &on, "admin", "user", "add", "chief", "--role", "admin"]);
    let chief_password = after(&made, "Password: ").to_owned();
    let (password, key) = administer(&on);

    // A hub on the same directory prints no setup link and has all users and keys.
    let command = HubCommand::process(PARLOR, data.path()).env_remove("PARLOR_ADMIN_PASSWORD");
    let mut hub = command.start().await.unwrap();
    assert_refused(&RestClient::outsider(hub.url()).get("/setup").await.unwrap(), 404);
    hub.sign_in("chief", &chief_password).await.unwrap();
    hub.sign_in("ada", &password).await.unwrap();
    let program = RestClient::outsider(hub.url()).with_token(&key);
    assert_eq!(program.get("/api/users/me").await.unwrap().status, 200);
    // A killed hub leaves its control socket behind; the next command must ignore it.
    hub.crash().await.unwrap();
    assert!(data.path().join("control.sock").exists());
    ok(&["--data", &on, "admin", "token", "revoke", &key_id(&on)]);
    ok(&["--data", &on, "admin", "user", "remove", "bob"]);
    let hub = command.start().await.unwrap();
    assert_refused(&program.at(hub.url()).get("/api/users/me").await.unwrap(), 401);
    assert!(hub.sign_in("bob", PASSWORD).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_hub_on_the_same_directory_is_rejected_with_a_one_line_error() {
    let scene = Scene::process().await;
    let data = scene.data().to_str().unwrap();
    let output = refused(&["--listen", "127.0.0.1:0", "--data", data], &[]);
    assert_eq!(
        output,
        format!("another Parlor is using {data}; stop it, or choose another directory with --data")
    );
    assert_eq!(scene.admin.health().await.unwrap(), 200, "the first hub keeps running");
    ok(&["--data", data, "admin", "user", "list"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_a_newer_version_is_rejected_with_a_one_line_error_and_not_changed() {
    let mut scene = Scene::process().await;
    let room = scene.admin.make_room("a room", &[]).await.unwrap();
    scene.admin.post_message(&room, "precious").await.unwrap();
    scene.hub.stop(Duration::from_secs(10)).await.unwrap();
    let file = scene.data().join("parlor.db");
    let database = rusqlite::Connection::open(&file).unwrap();
    let own: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    let before = std::fs::read(&file).unwrap();
    let data = scene.data().to_str().unwrap();
    for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["admin", "user", "add", "eve"]] {
        let output = refused(&[&["--data", data], arguments].concat(), &[]);
        assert!(output.contains("newer Parlor") && output.contains("99"), "{output}");
        assert_eq!(output.lines().count(), 1, "{output}");
        assert!(std::fs::read(&file).unwrap() == before, "the database was changed");
    }
    let database = rusqlite::Connection::open(&file).unwrap();
    database.pragma_update(None, "user_version", own).unwrap();
    drop(database);
    let hub = HubCommand::process(PARLOR, Path::new(data)).start().await.unwrap();
    assert_eq!(
        hub.admin().await.unwrap().history(&room).await.unwrap().len(),
        1,
        "the original version can read it"
    );
}

#[test]
fn a_start_that_cannot_open_its_data_or_listener_fails_with_a_one_line_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a-file");
    std::fs::write(&file, "not a directory").unwrap();
    let output = refused(&["--listen", "127.0.0.1:0", "--data", file.to_str().unwrap()], &[]);
    assert!(output.contains("a-file") && output.lines().count() == 1, "{output}");
    let data = directory.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("parlor.db"), "this is no database, but a text of some length\n".repeat(50))
        .unwrap();
    let output = refused(&["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()], &[]);
    assert!(output.contains("database") && output.lines().count() == 1, "{output}");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let data = directory.path().join("other");
    let output = refused(&["--listen", &taken, "--data", data.to_str().unwrap()], &[]);
    assert!(output.contains(&taken) && output.lines().count() == 1, "{output}");
}

#[test]
fn a_public_listener_produces_a_warning_and_cannot_disable_the_limits() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let data = data.to_str().unwrap();
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let done = parlor(&["config", "check", "--listen", listen], &[], "");
        assert!(done.out.contains("without TLS") && done.out.contains(listen), "{}", done.out);
        let output = refused(&["--listen", listen, "--data", data], &[("PARLOR_LIMITS", "off")]);
        assert!(output.contains("limits") && output.contains("loopback"), "{output}");
    }
    for listen in ["127.0.0.1:0", "[::1]:0", "127.8.9.10:0"] {
        let done = parlor(&["config", "check", "--listen", listen], &[("PARLOR_LIMITS", "off")], "");
        assert_eq!(done.code, 0, "{}", done.err);
        assert!(!done.out.contains("TLS"), "{}", done.out);
    }
    assert!(!Path::new(data).exists(), "no data directory was created");
    assert!(ok(&["config", "show"]).contains("listen = \"127.0.0.1:7878\""), "loopback by default");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_startup_report_contains_url_data_directory_next_steps_and_warnings() {
    let mut scene = Scene::process().await;
    let data = scene.data().display().to_string();
    let url = scene.url().to_owned();
    scene.hub.stop(Duration::from_secs(10)).await.unwrap();
    let output = scene.hub.stdout();
    for part in [url.as_str(), data.as_str(), "curl ", "limits = \"off\""] {
        assert!(output.contains(part), "no {part} in {output}");
    }
    assert!(!output.contains('\u{1b}'), "no colours without a terminal: {output}");
    assert!(!bytes_in(scene.data()).is_empty());
    assert!(!scene.data().join("control.sock").exists(), "the control socket is removed");
}
