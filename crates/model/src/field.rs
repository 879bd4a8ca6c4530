//! Fields of commands and queries that a refusal can name.
//!
//! A refusal names a field by its variant here. Each protocol adapter has one table from `Field` to the names
//! that its clients know; the table has no default case, so a new field does not compile until every adapter
//! names it.

use serde::{Deserialize, Serialize};

/// Defines the fields with their names in the model.
macro_rules! fields {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// Field of a command or query. Fields that have the same name but that clients know by different
        /// names are different variants.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Field { $($(#[$doc])* $variant),+ }

        impl Field {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Name of the field in its command or query. Several fields can have the same name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

fields! {
    Action = "action",
    Agent = "agent",
    Agents = "agents",
    /// Whether a decision on an approval also creates a rule.
    Always = "always",
    Answers = "answers",
    Assignee = "assignee",
    Attachments = "attachments",
    Author = "author",
    AutoRun = "auto_run",
    Avatar = "avatar",
    Capabilities = "capabilities",
    Chunks = "chunks",
    ClientMessageId = "client_message_id",
    Command = "command",
    Credential = "credential",
    Description = "description",
    Device = "device",
    Digest = "digest",
    DisplayName = "display_name",
    Emoji = "emoji",
    ExpiresAt = "expires_at",
    ExternalId = "external_id",
    Fallback = "fallback",
    File = "file",
    /// Name of an uploaded file.
    FileName = "name",
    From = "from",
    Hears = "hears",
    Heartbeat = "heartbeat",
    HubName = "name",
    Id = "id",
    IdleInterval = "interval",
    IdlePrompt = "prompt",
    /// An idle prompt as a whole, which has neither a text nor an interval.
    IdleSettings = "idle",
    Instructions = "instructions",
    Kind = "kind",
    Lease = "lease",
    LockoutFailures = "lockout_failures",
    LockoutSeconds = "lockout_seconds",
    MaxConnections = "max_connections",
    /// Description of a member's role in a room.
    MemberDescription = "description",
    Members = "members",
    Mentions = "mentions",
    Message = "message",
    Messages = "messages",
    MissionText = "text",
    /// Model of an agent, as its gateway registers it.
    Model = "model",
    MostTokens = "most_tokens",
    Name = "name",
    Note = "note",
    Observers = "observers",
    /// Task that a new task follows up.
    ParentTask = "parent",
    Password = "password",
    Path = "path",
    /// Fields of a message that only clients of its protocol know.
    Payload = "payload",
    Pattern = "pattern",
    PlanText = "text",
    Prompt = "prompt",
    /// Position in the event log from which a client continues.
    Position = "position",
    ProjectRoot = "root",
    Reason = "reason",
    Recipient = "recipient",
    /// The registration of an agent as a whole.
    Registration = "registration",
    ReplyTo = "reply_to",
    Request = "request",
    Result = "result",
    Role = "role",
    Room = "room",
    /// Readable text of a routed message.
    RoutedText = "text",
    RouterBaseUrl = "base_url",
    RouterKey = "key",
    RouterModel = "model",
    /// One of the scopes of a key.
    Scope = "scopes",
    Scopes = "scopes",
    SearchText = "text",
    /// Room of a `RoomSelection`.
    SelectedRoom = "room",
    ServiceBaseUrl = "base_url",
    ServiceKey = "key",
    ServiceModel = "model",
    Session = "session",
    Settings = "settings",
    Source = "source",
    /// Kind of an agent that a gateway is asked to create.
    SpawnKind = "kind",
    Status = "status",
    Subscriptions = "subscriptions",
    SystemPrompt = "system_prompt",
    /// Text of a message.
    Text = "text",
    Targets = "targets",
    Title = "title",
    Tool = "tool",
    Username = "username",
    Uses = "uses",
    Visibility = "visibility",
    WorkingDirectory = "working_directory",
}
