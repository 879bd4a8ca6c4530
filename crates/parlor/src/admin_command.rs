//! Implements `parlor admin …`: converts arguments to a request and renders the reply.
//!
//! Owns: the printed text. The running hub executes the request; without a running hub, this process opens
//! the store and executes it.

use crate::{
    admin::{AdminReply, AdminRequest, AuditRow, TokenRow, UserRow},
    agents,
    arguments::{AblyKeyCommand, AdminCommand, PasswordSource, TokenCommand, UserCommand},
    control, offline, password,
    secret::Secret,
    settings::Settings,
    style::{TerminalStyle, escape_control},
    text_table::listing,
};
use anyhow::{Context, bail};
use std::io::{self, Read};
use std::path::Path;

/// Maximum bytes read from standard input for a password. It bounds the memory for wrong input.
const MAX_PASSWORD_INPUT_BYTES: u64 = 4096;

/// Executes the command and returns the text to print.
pub async fn run(settings: &Settings, command: AdminCommand) -> anyhow::Result<String> {
    let Prepared { request, generated } = prepare(command, &mut io::stdin())?;
    execute(settings, request, generated.as_ref()).await
}

/// Freezes or thaws a room and returns the text to print.
pub async fn freeze(settings: &Settings, room: String, thaw: bool) -> anyhow::Result<String> {
    execute(settings, AdminRequest::Freeze { room, frozen: !thaw }, None).await
}

async fn execute(
    settings: &Settings,
    request: AdminRequest,
    generated: Option<&Secret>,
) -> anyhow::Result<String> {
    execute_with(settings, None, request, generated).await
}

/// Executes the request in the running hub, or on the store if no hub is running. `config` is the settings
/// file; requests about agents need it, because it can define agents too.
pub async fn execute_with(
    settings: &Settings,
    config: Option<&Path>,
    request: AdminRequest,
    generated: Option<&Secret>,
) -> anyhow::Result<String> {
    let reply = match control::ask(&settings.data, &request).await? {
        Some(reply) => reply,
        None => offline::perform(settings, config, request).await?,
    };
    render(reply, generated, TerminalStyle::for_stdout())
}

#[derive(Debug)]
struct Prepared {
    request: AdminRequest,
    /// Password generated for the request; printed once after it succeeded.
    generated: Option<Secret>,
}

fn prepare(command: AdminCommand, input: &mut impl Read) -> anyhow::Result<Prepared> {
    let request = match command {
        AdminCommand::User { command: UserCommand::Add { name, role, display_name, password } } => {
            let (password, generated) = choose_password(&password, input)?;
            let request = AdminRequest::AddUser { username: name, role, display_name, password };
            return Ok(Prepared { request, generated });
        }
        AdminCommand::User { command: UserCommand::ResetPassword { name, password } } => {
            let (password, generated) = choose_password(&password, input)?;
            let request = AdminRequest::ResetPassword { username: name, password };
            return Ok(Prepared { request, generated });
        }
        AdminCommand::User { command: UserCommand::List } => AdminRequest::ListUsers,
        AdminCommand::User { command: UserCommand::DisableSecondFactor { name } } => {
            AdminRequest::DisableSecondFactor { username: name }
        }
        AdminCommand::User { command: UserCommand::Remove { name } } => {
            AdminRequest::RemoveUser { username: name }
        }
        AdminCommand::Audit { limit, action, actor, subject } => {
            AdminRequest::Audit { limit, action, actor, subject }
        }
        AdminCommand::AblyKey { command: AblyKeyCommand::Create { name, user, capability } } => {
            AdminRequest::AddAblyKey { name, user, capability }
        }
        AdminCommand::AblyKey { command: AblyKeyCommand::List } => AdminRequest::ListAblyKeys,
        AdminCommand::AblyKey { command: AblyKeyCommand::Revoke { id } } => {
            // The name of the key is accepted as well: `parlor.` and its id.
            let id = id.strip_prefix("parlor.").map(str::to_owned).unwrap_or(id);
            AdminRequest::RevokeToken { id }
        }
        AdminCommand::Token { command: TokenCommand::Add { name, user, scopes } } => {
            AdminRequest::AddToken { name, user, scopes }
        }
        AdminCommand::Token { command: TokenCommand::List } => AdminRequest::ListTokens,
        AdminCommand::Token { command: TokenCommand::Revoke { id } } => AdminRequest::RevokeToken { id },
    };
    Ok(Prepared { request, generated: None })
}

fn choose_password(
    source: &PasswordSource,
    input: &mut impl Read,
) -> anyhow::Result<(Secret, Option<Secret>)> {
    if !source.password_stdin {
        let generated = password::generate()?;
        return Ok((generated.clone(), Some(generated)));
    }
    let mut text = String::new();
    input
        .take(MAX_PASSWORD_INPUT_BYTES)
        .read_to_string(&mut text)
        .context("cannot read the password from standard input")?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => bail!("there is no password on standard input"),
        text if text.contains('\n') => bail!("the password must be one line"),
        text => Ok((Secret::new(text), None)),
    }
}

fn render(
    reply: AdminReply,
    generated: Option<&Secret>,
    terminal_style: TerminalStyle,
) -> anyhow::Result<String> {
    let once = |label: &str, secret: &Secret| {
        format!(
            "{label}: {}\n{}\n",
            terminal_style.bold(secret.expose()),
            terminal_style.dim("It is shown only once.")
        )
    };
    let password = generated.map(|generated| once("Password", generated)).unwrap_or_default();
    Ok(match reply {
        AdminReply::Noted => "Recorded.\n".into(),
        reply @ (AdminReply::AgentAdded { .. }
        | AdminReply::Agents { .. }
        | AdminReply::AgentRemoved { .. }
        | AdminReply::AgentMoved { .. }) => agents::command::render(reply, terminal_style),
        AdminReply::Status { version, store, .. } => format!("Version {version}, the store is {store}.\n"),
        AdminReply::UserAdded { user } => {
            format!("Added {} ({}).\n{password}", escape_control(&user.username), user.role.as_str())
        }
        AdminReply::Users { users } if users.is_empty() => "There are no users yet.\n".into(),
        AdminReply::Users { users } => listing(
            ["NAME", "ROLE", "DISPLAY NAME", "SINCE", "ID"],
            &users.into_iter().map(user_cells).collect::<Vec<_>>(),
            terminal_style,
        ),
        AdminReply::PasswordReset { username } => {
            format!(
                "{} has a new password and is signed out everywhere.\n{password}",
                escape_control(&username)
            )
        }
        AdminReply::SecondFactorDisabled { username } => {
            format!("Disabled the second factor of {}.\n", escape_control(&username))
        }
        AdminReply::UserRemoved { username } => format!("Removed {}.\n", escape_control(&username)),
        AdminReply::Audit { entries } if entries.is_empty() => "There are no matching entries.\n".into(),
        AdminReply::Audit { entries } => listing(
            ["TIME", "ACTOR", "ACTION", "SUBJECT", "DETAIL", "ADDRESS"],
            &entries.into_iter().map(audit_cells).collect::<Vec<_>>(),
            terminal_style,
        ),
        AdminReply::TokenAdded { token, key } => {
            let permits = token.capability.unwrap_or_else(|| token.scopes.join(", "));
            let about = format!("{} for {}: {permits}", token.name, token.user);
            format!(
                "Created the key {} ({}).\n{}",
                escape_control(&token.id),
                escape_control(&about),
                once("Key", &key)
            )
        }
        AdminReply::Tokens { tokens } if tokens.is_empty() => "There are no keys.\n".into(),
        AdminReply::Tokens { tokens } => listing(
            ["ID", "NAME", "USER", "SCOPES", "SINCE"],
            &tokens.into_iter().map(token_cells).collect::<Vec<_>>(),
            terminal_style,
        ),
        AdminReply::AblyKeys { tokens } if tokens.is_empty() => "There are no keys.\n".into(),
        AdminReply::AblyKeys { tokens } => listing(
            ["ID", "NAME", "USER", "CAPABILITY", "SINCE"],
            &tokens.into_iter().map(ably_key_cells).collect::<Vec<_>>(),
            terminal_style,
        ),
        AdminReply::RoomFrozen { room, frozen: true } => {
            format!(
                "Froze the room {}: its agents do not respond until it is thawed.\n",
                escape_control(&room)
            )
        }
        AdminReply::RoomFrozen { room, .. } => {
            format!("Thawed the room {}: its agents respond again.\n", escape_control(&room))
        }
        AdminReply::TokenRevoked { id } => format!("Revoked the key {}.\n", escape_control(&id)),
        AdminReply::Refused { reason } => bail!("{}", escape_control(&reason)),
    })
}

fn user_cells(user: UserRow) -> [String; 5] {
    let role = user.role.as_str().to_owned();
    [user.username, role, user.display_name.unwrap_or_default(), to_the_minute(&user.created_at), user.id]
}

fn audit_cells(entry: AuditRow) -> [String; 6] {
    let AuditRow { at, actor, action, subject, detail, address, count } = entry;
    let action = if count > 1 { format!("{action} ×{count}") } else { action };
    [to_the_minute(&at), actor, action, subject, detail, address]
}

fn token_cells(token: TokenRow) -> [String; 5] {
    [token.id, token.name, token.user, token.scopes.join(" "), to_the_minute(&token.created_at)]
}

fn ably_key_cells(token: TokenRow) -> [String; 5] {
    let capability = token.capability.unwrap_or_default();
    [token.id, token.name, token.user, capability, to_the_minute(&token.created_at)]
}

/// Shortens `2026-01-31T09:30:12.345Z` to `2026-01-31 09:30`.
fn to_the_minute(time: &str) -> String {
    match (time.get(..10), time.get(10..11), time.get(11..16)) {
        (Some(day), Some("T"), Some(minute)) => format!("{day} {minute}"),
        _ => time.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        admin::Role,
        arguments::{Arguments, Command},
    };
    use clap::Parser;

    #[test]
    fn without_a_password_one_is_generated_and_shown_once() {
        let prepared =
            prepare(parse("user add ada --role admin --display-name Ada"), &mut io::empty()).unwrap();
        let generated = prepared.generated.expect("a password was generated");
        let AdminRequest::AddUser { username, role, display_name, password } = prepared.request else {
            panic!()
        };
        assert_eq!((username.as_str(), role, display_name.as_deref()), ("ada", Role::Admin, Some("Ada")));
        assert_eq!(password, generated);
        let reply = AdminReply::UserAdded { user: ada() };
        let text = render(reply, Some(&generated), TerminalStyle::PLAIN).unwrap();
        assert_eq!(
            text,
            format!("Added ada (admin).\nPassword: {}\nIt is shown only once.\n", generated.expose())
        );
    }

    #[test]
    fn a_password_from_standard_input_is_not_printed() {
        let mut input: &[u8] = b"Correct horse 1\n";
        let prepared = prepare(parse("user reset-password ada --password-stdin"), &mut input).unwrap();
        let expected =
            AdminRequest::ResetPassword { username: "ada".into(), password: Secret::new("Correct horse 1") };
        assert_eq!(prepared.request, expected);
        let reply = AdminReply::PasswordReset { username: "ada".into() };
        let text = render(reply, prepared.generated.as_ref(), TerminalStyle::PLAIN).unwrap();
        assert_eq!(text, "ada has a new password and is signed out everywhere.\n");
    }

    #[test]
    fn an_empty_password_or_one_with_several_lines_is_rejected() {
        for (input, reason) in [("", "no password"), ("\n", "no password"), ("a\nb\n", "one line")] {
            let error = prepare(parse("user add ada --password-stdin"), &mut input.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn users_are_listed_in_columns() {
        let grace = UserRow {
            id: "u2".into(),
            username: "grace".into(),
            display_name: None,
            role: Role::User,
            created_at: "?".into(),
        };
        let text =
            render(AdminReply::Users { users: vec![ada(), grace] }, None, TerminalStyle::PLAIN).unwrap();
        assert_eq!(
            text,
            "NAME   ROLE   DISPLAY NAME  SINCE             ID\n\
             ada    admin  Ada           2026-01-31 09:30  u1\n\
             grace  user                 ?                 u2\n"
        );
        assert_eq!(
            render(AdminReply::Users { users: vec![] }, None, TerminalStyle::PLAIN).unwrap(),
            "There are no users yet.\n"
        );
    }

    #[test]
    fn api_keys_are_listed_without_their_secrets() {
        let text = render(AdminReply::Tokens { tokens: vec![ci()] }, None, TerminalStyle::PLAIN).unwrap();
        assert_eq!(
            text,
            "ID  NAME  USER  SCOPES      SINCE\n\
             k1  ci    ada   read write  2026-01-31 09:30\n"
        );
    }

    #[test]
    fn a_new_key_is_shown_once() {
        let reply = AdminReply::TokenAdded { token: ci(), key: Secret::new("pk_123") };
        let text = render(reply, None, TerminalStyle::PLAIN).unwrap();
        let expected = "Created the key k1 (ci for ada: read, write).\nKey: pk_123\nIt is shown only once.\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn ably_keys_are_listed_with_their_capabilities() {
        let capability = Some(r#"{"*":["subscribe"]}"#.to_owned());
        let reply = AdminReply::AblyKeys { tokens: vec![TokenRow { capability, ..ci() }] };
        assert_eq!(
            render(reply, None, TerminalStyle::PLAIN).unwrap(),
            "ID  NAME  USER  CAPABILITY           SINCE\n\
             k1  ci    ada   {\"*\":[\"subscribe\"]}  2026-01-31 09:30\n"
        );
    }

    #[test]
    fn ably_keys_are_revoked_by_id_or_name() {
        for line in ["ably-key revoke k1", "ably-key revoke parlor.k1"] {
            let Prepared { request, .. } = prepare(parse(line), &mut io::empty()).unwrap();
            assert_eq!(request, AdminRequest::RevokeToken { id: "k1".into() });
        }
        let Prepared { request, .. } =
            prepare(parse("ably-key create ci --user ada"), &mut io::empty()).unwrap();
        let capability = r#"{"*":["*"]}"#.into();
        assert_eq!(request, AdminRequest::AddAblyKey { name: "ci".into(), user: "ada".into(), capability });
    }

    #[test]
    fn a_refusal_is_an_error_with_escaped_control_characters() {
        let reply = AdminReply::Refused { reason: "There is no \x1b[2J.".into() };
        let error = render(reply, None, TerminalStyle::PLAIN).unwrap_err();
        assert_eq!(error.to_string(), "There is no \\u{1b}[2J.");
    }

    #[track_caller]
    fn parse(line: &str) -> AdminCommand {
        let words = ["parlor", "admin"].into_iter().chain(line.split(' '));
        match Arguments::try_parse_from(words).unwrap().command {
            Some(Command::Admin { command }) => command,
            other => panic!("{other:?}"),
        }
    }

    fn ada() -> UserRow {
        UserRow {
            id: "u1".into(),
            username: "ada".into(),
            display_name: Some("Ada".into()),
            role: Role::Admin,
            created_at: "2026-01-31T09:30:12.345Z".into(),
        }
    }

    fn ci() -> TokenRow {
        TokenRow {
            id: "k1".into(),
            name: "ci".into(),
            user: "ada".into(),
            scopes: vec!["read".into(), "write".into()],
            capability: None,
            created_at: "2026-01-31T09:30:12.345Z".into(),
        }
    }
}
