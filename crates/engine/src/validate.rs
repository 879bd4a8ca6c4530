//! Stateless validation of commands and queries: lengths, ranges and formats. The first step of the write
//! pipeline; needs neither the caller nor the store.

use crate::Limits;
use parlor_model::characters::{is_deceptive, is_visible};
use parlor_model::command::{NewUser, RoomChanges};
use parlor_model::{
    Command, Edit, FieldError, File, GatewayRequest, Post, Refusal, Relay, Route, SettingChanges,
};

/// Maximum bytes of a file system path.
const MAX_PATH_BYTES: usize = 4096;

pub fn validate(command: &Command, limits: &Limits) -> Result<(), Refusal> {
    let mut field_errors = FieldErrors::default();
    match command {
        Command::SetUp { account, .. } | Command::CreateUser(account) | Command::Register { account, .. } => {
            field_errors.account(account);
        }
        Command::ChangeSettings(changes) => field_errors.settings(changes),
        Command::CreateInvitation(new) => {
            field_errors.unless((1..=1000).contains(&new.uses), "uses", "must be between 1 and 1000");
            if let Some(note) = &new.note {
                field_errors.line("note", note, 200);
            }
        }
        Command::ChangeUser { changes, .. } => {
            if let Some(name) = &changes.display_name {
                field_errors.line("displayName", name, 100);
            }
            if changes.max_connections == Edit::Set(0) {
                field_errors.add("maxConnections", "must be at least 1");
            }
            let few = changes.hears.as_ref().is_none_or(|patterns| patterns.len() <= 100);
            field_errors.unless(few, "hears", "at most 100");
        }
        Command::ChangeProfile(changes) => {
            if let Some(name) = &changes.display_name {
                field_errors.line("displayName", name, 100);
            }
            if let Edit::Set(url) = &changes.avatar_url {
                field_errors.unless(is_upload(url), "avatarUrl", "must name an upload, such as /uploads/…");
            }
        }
        Command::Pair { name, .. } => field_errors.line("name", name, 100),
        Command::CreateRoom { changes, members } => {
            field_errors.unless(changes.name.is_some(), "name", "is required");
            field_errors.room(changes);
            field_errors.unless(members.len() <= 100, "memberIds", "at most 100 members at once");
        }
        Command::ChangeRoom { changes, .. } => field_errors.room(changes),
        Command::SetProjectRoot { root, .. } => {
            let plain = root.as_deref().is_none_or(is_plain_folder);
            field_errors.unless(plain, "projectRoot", "must be the whole path of a folder");
        }
        Command::AddMember { description: Some(description), .. }
        | Command::ChangeMember { description: Edit::Set(description), .. } => {
            field_errors.line("roleDescription", description, 500);
        }
        Command::ChangeMember { role: None, description: Edit::Keep, .. } => {
            field_errors.add("role", "is required")
        }
        Command::AddMember { .. } | Command::ChangeMember { .. } => {}
        Command::Receive { lease, .. } => {
            let fits = lease.is_none_or(|lease| (1..=86_400_000).contains(&lease.as_millis()));
            field_errors.unless(fits, "lease", "must be between a millisecond and a day");
        }
        Command::Acknowledge { messages, .. } => {
            field_errors.unless(messages.len() <= 1000, "messageIds", "at most 1000");
        }
        Command::Route(route) => field_errors.route(route),
        Command::Relay(relay) => field_errors.relay(relay, limits)?,
        Command::Upload(new) => field_errors.file(&new.file),
        Command::OfferSetup { .. }
        | Command::NoteBackup { .. }
        | Command::AppendNoop
        | Command::TakeUnreferencedBlobs { .. }
        | Command::RemoveUser { .. }
        | Command::ChangePassword { .. }
        | Command::RevokeInvitation { .. }
        | Command::OfferPairing { .. }
        | Command::DeleteRoom { .. }
        | Command::Freeze { .. }
        | Command::Thaw { .. }
        | Command::RemoveMember { .. }
        | Command::ChangeRoomPreferences { .. }
        | Command::Subscribe { .. }
        | Command::Unsubscribe { .. }
        | Command::ClearDeadLetters => {}
    }
    field_errors.into_result()
}

/// Validates a request to a gateway.
pub fn validate_gateway_request(gateway_request: &GatewayRequest) -> Result<(), Refusal> {
    let mut field_errors = FieldErrors::default();
    // Requests about credentials are validated by the gateway itself.
    if let GatewayRequest::Spawn(spawn) = gateway_request {
        field_errors.line("agentType", &spawn.kind, 64);
        field_errors.line("name", &spawn.name, 100);
        if let Some(folder) = &spawn.working_directory {
            field_errors.line("workingDirectory", folder, 4096);
        }
        if let Some(credential) = &spawn.credential {
            field_errors.line("credentialId", credential, 100);
        }
    }
    field_errors.into_result()
}

/// The rules that a new password violates; empty if it is acceptable. The password itself never enters a
/// command.
pub fn password_errors(password: &str) -> Vec<FieldError> {
    let mut field_errors = FieldErrors::default();
    let length = password.chars().count();
    field_errors.unless(length >= 8, "password", "must have at least 8 characters");
    field_errors.unless(length <= 128, "password", "must have at most 128 characters");
    field_errors.unless(password.chars().any(char::is_lowercase), "password", "needs a lower-case letter");
    field_errors.unless(password.chars().any(char::is_uppercase), "password", "needs an upper-case letter");
    field_errors.unless(password.chars().any(|c| c.is_ascii_digit()), "password", "needs a digit");
    field_errors.0
}

pub(crate) fn fits(text: &str, limit: usize) -> Result<(), Refusal> {
    // The number of bytes is an upper bound for the number of characters, so short texts need not be counted.
    if text.len() <= limit {
        return Ok(());
    }
    match text.chars().count() {
        got if got > limit => Err(Refusal::TooLarge { limit, got }),
        _ => Ok(()),
    }
}

/// Whether the path is absolute and has no empty, `.` or `..` component.
fn is_plain_folder(path: &str) -> bool {
    let steps = path.strip_prefix('/').filter(|_| path.len() <= MAX_PATH_BYTES && !path.contains('\0'));
    let is_plain = |step: &str| !matches!(step, "" | "." | "..");
    steps.is_some_and(|steps| steps.is_empty() || steps.split('/').all(is_plain))
}

#[derive(Default)]
pub(crate) struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    fn add(&mut self, field: &'static str, rule: &'static str) {
        self.0.push(FieldError { field: field.into(), rule: rule.into() });
    }

    pub(crate) fn unless(&mut self, good: bool, field: &'static str, rule: &'static str) {
        if !good {
            self.add(field, rule);
        }
    }

    /// One line of visible text, such as a name or a title.
    pub(crate) fn line(&mut self, field: &'static str, text: &str, limit: usize) {
        self.unless(text.chars().any(is_visible), field, "must not be empty");
        self.unless(text.chars().count() <= limit, field, "is too long");
        self.unless(!text.chars().any(is_deceptive), field, "must not contain control characters");
    }

    fn account(&mut self, account: &NewUser) {
        let name = &account.username;
        self.unless((3..=50).contains(&name.len()), "username", "must have 3 to 50 characters");
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        self.unless(plain, "username", "may contain letters, digits, _ and - only");
        if let Some(name) = &account.display_name {
            self.line("displayName", name, 100);
        }
    }

    fn settings(&mut self, changes: &SettingChanges) {
        if let Edit::Set(name) = &changes.name {
            self.line("hubName", name, 60);
        }
        let in_range =
            |value: &Edit<u32>, limit| value.new_value().is_none_or(|value| (1..=limit).contains(value));
        let failures = in_range(&changes.lockout_failures, 1000);
        self.unless(failures, "lockoutFailures", "must be between 1 and 1000");
        let seconds = in_range(&changes.lockout_seconds, 30 * 86_400);
        self.unless(seconds, "lockoutSeconds", "must be between a second and 30 days");
    }

    fn room(&mut self, changes: &RoomChanges) {
        if let Some(name) = &changes.name {
            self.line("name", name, 100);
        }
        if let Edit::Set(prompt) = &changes.system_prompt {
            self.unless(prompt.chars().count() <= 10_000, "systemPrompt", "is longer than 10000 characters");
        }
    }

    pub(crate) fn post(&mut self, post: &Post, limits: &Limits) -> Result<(), Refusal> {
        fits(&post.text, limits.message_characters)?;
        let has_content = !post.text.trim().is_empty() || !post.attachments.is_empty();
        self.unless(has_content, "content", "must not be empty");
        self.unless(post.mentions.len() <= 50, "mentions", "at most 50");
        self.unless(post.attachments.len() <= limits.attachments, "attachmentIds", "too many attachments");
        self.client_message_id(post.client_message_id.as_deref());
        Ok(())
    }

    pub(crate) fn client_message_id(&mut self, id: Option<&str>) {
        let fits = id.is_none_or(|id| (1..=128).contains(&id.len()));
        self.unless(fits, "clientMessageId", "must have 1 to 128 characters");
    }

    fn file(&mut self, file: &File) {
        self.line("filename", &file.name, 200);
        self.unless(!file.name.contains(['/', '\\']), "filename", "must not be a path");
        self.unless(file.size > 0, "file", "must not be empty");
    }

    fn route(&mut self, route: &Route) {
        self.line("from", &route.from, 600);
        self.line("command", &route.command, 100);
        self.origin(&route.source, route.external_id.as_deref());
    }

    fn relay(&mut self, relay: &Relay, limits: &Limits) -> Result<(), Refusal> {
        fits(&relay.text, limits.message_characters)?;
        self.unless(!relay.text.trim().is_empty(), "text", "must not be empty");
        self.line("author", &relay.author, 600);
        if let Some(recipient) = &relay.recipient {
            self.line("recipient", recipient, 600);
        }
        self.unless(relay.observers.len() <= 50, "observers", "at most 50");
        for observer in &relay.observers {
            self.line("observers", observer, 600);
        }
        self.origin(&relay.source, relay.external_id.as_deref());
        Ok(())
    }

    fn origin(&mut self, source: &str, external_id: Option<&str>) {
        self.line("source", source, 100);
        let fits = external_id.is_none_or(|id| (1..=500).contains(&id.len()));
        self.unless(fits, "externalId", "must have 1 to 500 characters");
    }

    pub(crate) fn into_result(self) -> Result<(), Refusal> {
        if self.0.is_empty() { Ok(()) } else { Err(Refusal::Invalid(self.0)) }
    }
}

/// Whether the URL is an upload of this hub. URLs of other hosts would reveal to their owner who views the
/// avatar.
fn is_upload(url: &str) -> bool {
    let plain = |segment: &str| {
        let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        !segment.is_empty() && !segment.starts_with('.') && segment.bytes().all(known)
    };
    url.len() <= 200 && url.strip_prefix("/uploads/").is_some_and(|rest| rest.split('/').all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_visible_and_has_no_direction_marks() {
        let is_valid = |name: &str| {
            let mut field_errors = FieldErrors::default();
            field_errors.line("name", name, 100);
            field_errors.into_result().is_ok()
        };
        for good in ["Ada", "شبكه\u{200c}های", "क्\u{200d}ष", "\u{2764}\u{fe0f}"] {
            assert!(is_valid(good), "{good:?}");
        }
        for bad in
            ["", " ", "\u{200b}\u{200b}", "\u{3164}", "\u{2800}", "A\u{200f}da", "A\u{202e}da", "A\u{2028}da"]
        {
            assert!(!is_valid(bad), "{bad:?}");
        }
    }
}
