//! Tests of loading settings: precedence, secrets, rejected values, masking.

use super::*;
use std::{collections::BTreeMap, ffi::OsString};
use tempfile::TempDir;

/// Builder for the sources of settings in one test.
struct Given {
    directory: TempDir,
    sources: Sources,
}

impl Given {
    fn nothing() -> Self {
        Self { directory: TempDir::new().unwrap(), sources: Sources::default() }
    }

    fn file(mut self, text: &str) -> Self {
        let path = self.directory.path().join("parlor.toml");
        std::fs::write(&path, text).unwrap();
        self.sources.config = Some(path);
        self
    }

    fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.sources.environment.insert(name.into(), value.into());
        self
    }

    fn flag(mut self, key: &'static str, value: &str) -> Self {
        self.sources.flags.insert(key, value.into());
        self
    }

    /// Writes a secret file next to the settings file and returns its path.
    fn secret_file(&self, content: &str) -> String {
        let path = self.directory.path().join("secret");
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    #[track_caller]
    fn loads(&self) -> Loaded {
        load(&self.sources).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    #[track_caller]
    fn is_refused(&self, key: &str, reason: &str) {
        let problems = load(&self.sources).expect_err("the settings were accepted");
        let found = problems.iter().find(|problem| problem.key == key);
        let found = found.unwrap_or_else(|| panic!("no problem with {key} in {problems:?}"));
        assert!(found.reason.contains(reason), "{found}");
    }
}

#[test]
fn without_any_source_the_documented_defaults_apply() {
    let Loaded { settings, effective } = Given::nothing().loads();
    assert_eq!(settings.listen.to_string(), "127.0.0.1:7878");
    assert_eq!(settings.data, PathBuf::from("./parlor-data"));
    assert_eq!(settings.admin_user, "admin");
    assert_eq!(settings.admin_password, None);
    assert_eq!(settings.access_token_ttl, Duration::from_secs(900));
    assert_eq!(settings.dedupe_window_hours, Duration::from_secs(48 * 3600));
    assert_eq!(settings.synchronous, Synchronous::Full);
    assert_eq!(settings.log_level.as_str(), "info");
    assert_eq!(settings.warnings(), Vec::<String>::new());
    assert!(effective.values().all(|given| given.origin == SettingSource::Default));
}

#[test]
fn a_flag_overrides_the_environment_which_overrides_the_file_which_overrides_the_default() {
    let given = Given::nothing();
    check_listen(&given, "127.0.0.1:7878", SettingSource::Default);
    let given = given.file("listen = \"127.0.0.1:1\"\n");
    check_listen(&given, "127.0.0.1:1", SettingSource::File("listen".into()));
    let given = given.env("PARLOR_LISTEN", "127.0.0.1:2");
    check_listen(&given, "127.0.0.1:2", SettingSource::Environment("PARLOR_LISTEN".into()));
    let given = given.flag("listen", "127.0.0.1:3");
    check_listen(&given, "127.0.0.1:3", SettingSource::Flag("--listen".into()));
}

#[track_caller]
fn check_listen(given: &Given, listen: &str, origin: SettingSource) {
    let loaded = given.loads();
    assert_eq!(loaded.settings.listen.to_string(), listen);
    assert_eq!(loaded.effective["listen"].origin, origin);
}

#[test]
fn the_file_can_be_named_by_a_variable() {
    let given = Given::nothing().file("max_json_depth = 20");
    let path = given.sources.config.clone().unwrap();
    let mut given = given.env("PARLOR_CONFIG", path);
    given.sources.config = None;
    assert_eq!(given.loads().settings.max_json_depth, 20);
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let given = Given::nothing().env("PARLOR_PUBLIC_URL", "").env("PARLOR_LISTEN", "");
    assert_eq!(given.loads().settings.public_url, None);
}

#[test]
fn lists_and_numbers_can_be_given_as_text() {
    let given = Given::nothing()
        .env("PARLOR_ALLOWED_ORIGINS", "https://a.example, http://127.0.0.1:5173")
        .env("PARLOR_CLIENT_RATE_LIMIT_MAX", "300");
    let settings = given.loads().settings;
    assert_eq!(settings.allowed_origins, ["https://a.example", "http://127.0.0.1:5173"]);
    assert_eq!(settings.client_rate_limit_max, 300);
}

#[test]
fn a_secret_is_read_from_a_file_without_its_trailing_newline() {
    let given = Given::nothing();
    let path = given.secret_file("correct horse \n");
    let given = given.env("PARLOR_ADMIN_PASSWORD_FILE", path);
    let settings = given.loads().settings;
    assert_eq!(settings.admin_password.unwrap().expose(), "correct horse ");

    let given = Given::nothing();
    let path = given.secret_file(&format!("{}\r\n", "s".repeat(32)));
    let given = given.file(&format!("token_secret_file = {path:?}"));
    assert_eq!(given.loads().settings.token_secret.unwrap().expose(), "s".repeat(32));
}

#[test]
fn a_secret_variable_overrides_a_secret_file_named_in_the_settings_file() {
    let given = Given::nothing();
    let path = given.secret_file("from the file");
    let given =
        given.file(&format!("admin_password_file = {path:?}")).env("PARLOR_ADMIN_PASSWORD", "from the env");
    assert_eq!(given.loads().settings.admin_password.unwrap().expose(), "from the env");
}

#[test]
fn a_secret_given_twice_in_the_same_source_is_rejected() {
    let both = Given::nothing().file("admin_password = \"a\"\nadmin_password_file = \"/nowhere\"");
    both.is_refused("admin_password_file", "together with admin_password");
    let both = Given::nothing().env("PARLOR_TOKEN_SECRET", "a").env("PARLOR_TOKEN_SECRET_FILE", "/nowhere");
    both.is_refused("PARLOR_TOKEN_SECRET_FILE", "together with PARLOR_TOKEN_SECRET");
}

#[test]
fn a_missing_or_empty_secret_file_is_rejected() {
    let missing = Given::nothing().env("PARLOR_ADMIN_PASSWORD_FILE", "/nowhere/at/all");
    missing.is_refused("PARLOR_ADMIN_PASSWORD_FILE", "cannot read /nowhere/at/all");
    let given = Given::nothing();
    let path = given.secret_file("\n");
    given.env("PARLOR_ADMIN_PASSWORD_FILE", path).is_refused("PARLOR_ADMIN_PASSWORD_FILE", "which is empty");
}

#[test]
fn only_secrets_can_be_read_from_files() {
    Given::nothing().env("PARLOR_LISTEN_FILE", "/x").is_refused("PARLOR_LISTEN_FILE", "no such setting");
}

#[test]
fn an_unknown_name_is_rejected_with_a_suggestion() {
    Given::nothing().file("lisen = 1").is_refused("lisen", "no such setting; did you mean listen?");
    Given::nothing().file("[listen_on]\nport = 1").is_refused("listen_on", "no such table");
    Given::nothing()
        .env("PARLOR_ADMIN_PASWORD", "x")
        .is_refused("PARLOR_ADMIN_PASWORD", "did you mean PARLOR_ADMIN_PASSWORD?");
    Given::nothing()
        .env("PARLOR_COLOUR", "x")
        .is_refused("PARLOR_COLOUR", "`parlor config example` lists them");
}

#[test]
fn all_problems_are_reported_at_once() {
    let given = Given::nothing().file("auth_timeout = 0\nmax_json_depth = \"deep\"\ncolour = 1");
    given.is_refused("auth_timeout", "between 1 and 300 seconds, not 0");
    given.is_refused("max_json_depth", "must be a whole number, not a string");
    given.is_refused("colour", "no such setting");
    assert_eq!(load(&given.sources).unwrap_err().len(), 3);
}

#[test]
fn a_problem_names_the_variable_or_flag_that_set_the_value() {
    Given::nothing().env("PARLOR_AUTH_TIMEOUT", "soon").is_refused("PARLOR_AUTH_TIMEOUT", "a whole number");
    Given::nothing().env("PARLOR_AUTH_TIMEOUT", "0").is_refused("PARLOR_AUTH_TIMEOUT", "between 1 and 300");
    Given::nothing().flag("listen", "here").is_refused("--listen", "an address and a port");
}

#[test]
fn the_minimum_dedupe_window_is_24_hours() {
    Given::nothing()
        .env("PARLOR_DEDUPE_WINDOW_HOURS", "23")
        .is_refused("PARLOR_DEDUPE_WINDOW_HOURS", "between 24");
}

#[test]
fn no_number_but_a_delay_can_be_zero() {
    let numbers = GROUPS
        .iter()
        .flat_map(|group| group.entries)
        .filter(|entry| (entry.parse_text)("0").is_ok_and(|value| value.is_integer()))
        // A turn may be retried at once.
        .filter(|entry| entry.key != "turn_retry_delay");
    let mut seen = 0;
    for entry in numbers {
        Given::nothing().env(&entry.variable(), "0").is_refused(&entry.variable(), "must be between");
        seen += 1;
    }
    assert!(seen >= 20, "only {seen} numbers found");
}

#[test]
fn limits_can_be_off_only_on_loopback() {
    let off = Given::nothing().env("PARLOR_LIMITS", "off");
    let in_force = off.loads().settings.limits_in_force();
    assert_eq!((in_force.frames, in_force.sockets, in_force.logins), (None, None, None));
    off.env("PARLOR_LISTEN", "0.0.0.0:7878").is_refused("limits", "only on a loopback address");
    let on = Given::nothing().loads().settings.limits_in_force();
    assert_eq!((on.frames, on.sockets_per_user, on.sockets), (Some(30), Some(10), Some(5000)));
}

#[test]
fn an_unknown_keyword_is_rejected_with_the_valid_ones() {
    Given::nothing()
        .file("synchronous = \"maybe\"")
        .is_refused("synchronous", "\"full\" or \"normal\" or \"off\"");
}

#[test]
fn risky_settings_produce_warnings() {
    let given = Given::nothing()
        .env("PARLOR_LISTEN", "0.0.0.0:80")
        .env("PARLOR_SYNCHRONOUS", "off")
        .env("PARLOR_OUTBOX_MAX_BYTES", "65536");
    let warnings = given.loads().settings.warnings();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[0].contains("0.0.0.0:80 without TLS"));
    assert!(warnings[1].contains("damage the database"));
    assert!(warnings[2].contains("outbox_max_bytes"));
}

#[test]
fn an_address_mapped_from_ipv4_loopback_is_loopback() {
    let given = Given::nothing().env("PARLOR_LISTEN", "[::ffff:127.0.0.1]:0");
    assert!(given.loads().settings.listens_on_loopback());
}

#[test]
fn the_error_for_invalid_toml_names_the_line_without_quoting_it() {
    let given = Given::nothing().file("listen = \"127.0.0.1:1\"\nadmin_password = \"canary\n");
    let problems = load(&given.sources).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].reason.contains("not valid TOML near line 2"), "{}", problems[0]);
    assert!(!problems[0].to_string().contains("canary"), "{}", problems[0]);
}

#[test]
fn a_missing_settings_file_is_rejected() {
    let mut given = Given::nothing();
    given.sources.config = Some("/nowhere/parlor.toml".into());
    given.is_refused("/nowhere/parlor.toml", "cannot be read");
}

#[test]
fn shown_settings_mask_secrets_and_name_the_source() {
    let given = Given::nothing()
        .file("admin_password = \"canary-one\"\nmax_json_depth = 12")
        .env("PARLOR_TOKEN_SECRET", "canary-two-canary-two-canary-two-canary")
        .flag("data", "/srv/parlor");
    let loaded = given.loads();
    let shown = show(&loaded.effective);
    assert!(!shown.contains("canary"), "{shown}");
    assert!(!format!("{:?}", loaded.settings).contains("canary"));
    check_line(&shown, "admin_password = \"********\"", "# file (admin_password)");
    check_line(&shown, "token_secret = \"********\"", "# env PARLOR_TOKEN_SECRET");
    check_line(&shown, "max_json_depth = 12", "# file (max_json_depth)");
    check_line(&shown, "data = \"/srv/parlor\"", "# flag --data");
    check_line(&shown, "listen = \"127.0.0.1:7878\"", "# default");
    assert!(shown.lines().any(|line| line == "# public_url is not set"));
    shown.parse::<toml::Table>().expect("the output of `show` is valid TOML");
}

#[track_caller]
fn check_line(shown: &str, start: &str, end: &str) {
    let found = shown.lines().any(|line| line.starts_with(start) && line.ends_with(end));
    assert!(found, "no line from {start} to {end} in:\n{shown}");
}

#[test]
fn the_example_contains_every_default_commented_out() {
    let example = example();
    assert!(example.lines().all(|line| line.is_empty() || line.starts_with('#')));
    assert_eq!(example.parse::<toml::Table>().unwrap(), toml::Table::new());

    // A setting starts with "#key" and a list with "#[[list]]", a description with "# Text".
    let settings: Vec<&str> = example
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase() || first == '['))
        .collect();
    let mut table: toml::Table = settings.join("\n").parse().unwrap();
    assert!(table.remove("chatmd").is_some_and(|list| list.is_array()));
    let defaults: BTreeMap<_, _> = Given::nothing().loads().effective;
    for entry in GROUPS.iter().flat_map(|group| group.entries) {
        assert!(!entry.docs.is_empty(), "{} has no description", entry.key);
        let shown = table.get(entry.key).unwrap_or_else(|| panic!("{} is missing", entry.key));
        if let Some(default) = defaults.get(entry.key) {
            assert_eq!(shown, &default.value, "{}", entry.key);
        }
    }
    assert_eq!(table.len(), GROUPS.iter().map(|group| group.entries.len()).sum::<usize>());
}

#[test]
fn the_public_origin_is_normalised_to_the_value_that_browsers_send() {
    let given = Given::nothing().env("PARLOR_PUBLIC_URL", "https://Chat.Example.org:443/parlor");
    assert_eq!(given.loads().settings.public_origin().unwrap(), "https://chat.example.org");
}
