//! `parlor admin …`: arguments to a request, the reply to text.
//!
//! Owns: the words. The running hub does the work, or the store itself when none is running.

use crate::{
    admin::{AdminReply, AdminRequest, AuditRow, TokenRow, UserRow},
    agents,
    arguments::{AdminCommand, PasswordSource, TokenCommand, UserCommand},
    control, offline, password,
    secret::Secret,
    settings::Settings,
    style::{TerminalStyle, escape_control},
    text_table::listing,
};
use anyhow::{Context, bail};
use std::io::{self, Read};
use std::path::Path;

/// Longer input is no password, and reading on would fill the memory.
const LONGEST_PASSWORD_INPUT: u64 = 4096;

/// Performs the command and gives the text to print.
pub async fn run(settings: &Settings, command: AdminCommand) -> anyhow::Result<String> {
    let Prepared { request, made } = prepare(command, &mut io::stdin())?;
    ask(settings, request, made.as_ref()).await
}

/// Silences the agents in a room, or lets them speak again.
pub async fn freeze(settings: &Settings, room: String, thaw: bool) -> anyhow::Result<String> {
    ask(settings, AdminRequest::Freeze { room, frozen: !thaw }, None).await
}

async fn ask(settings: &Settings, request: AdminRequest, made: Option<&Secret>) -> anyhow::Result<String> {
    ask_with(settings, None, request, made).await
}

/// Where it matters which agents are in the settings file.
pub async fn ask_with(
    settings: &Settings,
    config: Option<&Path>,
    request: AdminRequest,
    made: Option<&Secret>,
) -> anyhow::Result<String> {
    let reply = match control::ask(&settings.data, &request).await? {
        Some(reply) => reply,
        None => offline::perform(settings, config, request).await?,
    };
    render(reply, made, TerminalStyle::for_stdout())
}

/// A request, and the password that was made for it, to be shown once.
#[derive(Debug)]
struct Prepared {
    request: AdminRequest,
    made: Option<Secret>,
}

fn prepare(command: AdminCommand, input: &mut impl Read) -> anyhow::Result<Prepared> {
    let request = match command {
        AdminCommand::User { command: UserCommand::Add { name, role, display_name, password } } => {
            let (password, made) = choose_password(&password, input)?;
            let request = AdminRequest::AddUser { username: name, role, display_name, password };
            return Ok(Prepared { request, made });
        }
        AdminCommand::User { command: UserCommand::ResetPassword { name, password } } => {
            let (password, made) = choose_password(&password, input)?;
            return Ok(Prepared { request: AdminRequest::ResetPassword { username: name, password }, made });
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
        AdminCommand::Token { command: TokenCommand::Add { name, user, scopes } } => {
            AdminRequest::AddToken { name, user, scopes }
        }
        AdminCommand::Token { command: TokenCommand::List } => AdminRequest::ListTokens,
        AdminCommand::Token { command: TokenCommand::Revoke { id } } => AdminRequest::RevokeToken { id },
    };
    Ok(Prepared { request, made: None })
}

fn choose_password(
    source: &PasswordSource,
    input: &mut impl Read,
) -> anyhow::Result<(Secret, Option<Secret>)> {
    if !source.password_stdin {
        let made = password::generate()?;
        return Ok((made.clone(), Some(made)));
    }
    let mut text = String::new();
    input
        .take(LONGEST_PASSWORD_INPUT)
        .read_to_string(&mut text)
        .context("cannot read the password from standard input")?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => bail!("there is no password on standard input"),
        text if text.contains('\n') => bail!("a password is one line"),
        text => Ok((Secret::new(text), None)),
    }
}

fn render(reply: AdminReply, made: Option<&Secret>, terminal_style: TerminalStyle) -> anyhow::Result<String> {
    let once = |label: &str, secret: &Secret| {
        format!(
            "{label}: {}\n{}\n",
            terminal_style.bold(secret.expose()),
            terminal_style.dim("It is shown this once.")
        )
    };
    let password = made.map(|made| once("Password", made)).unwrap_or_default();
    Ok(match reply {
        AdminReply::Noted => "Noted.\n".into(),
        reply @ (AdminReply::AgentAdded { .. }
        | AdminReply::Agents { .. }
        | AdminReply::AgentRemoved { .. }) => agents::command::render(reply, terminal_style),
        AdminReply::Status { version, store, .. } => format!("Version {version}, the store is {store}.\n"),
        AdminReply::UserAdded { user } => {
            format!("Added {} ({}).\n{password}", escape_control(&user.username), user.role.as_str())
        }
        AdminReply::Users { users } if users.is_empty() => "There is nobody yet.\n".into(),
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
            format!("{} signs in with the password alone.\n", escape_control(&username))
        }
        AdminReply::UserRemoved { username } => format!("Removed {}.\n", escape_control(&username)),
        AdminReply::Audit { entries } if entries.is_empty() => "Nothing was noted.\n".into(),
        AdminReply::Audit { entries } => listing(
            ["WHEN", "WHO", "DID", "TO", "HOW", "FROM"],
            &entries.into_iter().map(audit_cells).collect::<Vec<_>>(),
            terminal_style,
        ),
        AdminReply::TokenAdded { token, key } => {
            let about = format!("{} for {}: {}", token.name, token.user, token.scopes.join(", "));
            format!(
                "Made the key {} ({}).\n{}",
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
        AdminReply::RoomFrozen { room, frozen: true } => {
            format!("The agents in {} are silent until it is thawed.\n", escape_control(&room))
        }
        AdminReply::RoomFrozen { room, .. } => {
            format!("The agents in {} may speak.\n", escape_control(&room))
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

/// `2026-01-31T09:30:12.345Z` is read more easily as `2026-01-31 09:30`.
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
    fn without_a_password_one_is_made_and_shown_once() {
        let prepared =
            prepare(parse("user add ada --role admin --display-name Ada"), &mut io::empty()).unwrap();
        let made = prepared.made.expect("a password was made");
        let AdminRequest::AddUser { username, role, display_name, password } = prepared.request else {
            panic!()
        };
        assert_eq!((username.as_str(), role, display_name.as_deref()), ("ada", Role::Admin, Some("Ada")));
        assert_eq!(password, made);
        let text = render(AdminReply::UserAdded { user: ada() }, Some(&made), TerminalStyle::PLAIN).unwrap();
        assert_eq!(
            text,
            format!("Added ada (admin).\nPassword: {}\nIt is shown this once.\n", made.expose())
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
        let text = render(reply, prepared.made.as_ref(), TerminalStyle::PLAIN).unwrap();
        assert_eq!(text, "ada has a new password and is signed out everywhere.\n");
    }

    #[test]
    fn an_empty_or_many_lined_password_is_refused() {
        for (input, reason) in [("", "no password"), ("\n", "no password"), ("a\nb\n", "one line")] {
            let error = prepare(parse("user add ada --password-stdin"), &mut input.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn people_are_listed_in_columns() {
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
            "There is nobody yet.\n"
        );
    }

    #[test]
    fn keys_are_listed_without_the_key() {
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
        assert_eq!(text, "Made the key k1 (ci for ada: read, write).\nKey: pk_123\nIt is shown this once.\n");
    }

    #[test]
    fn a_refusal_is_a_failure_and_cannot_steer_the_terminal() {
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
            created_at: "2026-01-31T09:30:12.345Z".into(),
        }
    }
}
