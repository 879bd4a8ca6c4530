//! Names that clients of the chat-events API know for the fields that a refusal names.

use parlor_model::{Field, FieldError};

/// Returns the name of the field and the violated rule in terms of the chat-events API.
pub fn translate(error: &FieldError) -> (&'static str, &str) {
    let rule = match error.field {
        Field::IdleSettings => "or idle_interval_secs must be given",
        _ => &error.rule,
    };
    (name(error.field), rule)
}

fn name(field: Field) -> &'static str {
    match field {
        Field::Agent => "agent_id",
        Field::Attachments => "attachmentIds",
        Field::IdleInterval => "idle_interval_secs",
        Field::IdlePrompt | Field::IdleSettings => "idle_prompt",
        Field::SelectedRoom => "session_id",
        Field::Text => "message",
        // Fields with the same name in the API.
        Field::Agents | Field::Answers | Field::MissionText | Field::PlanText | Field::Prompt => {
            field.as_str()
        }
        // Fields of requests that the API does not have.
        Field::Action
        | Field::Assignee
        | Field::Author
        | Field::Avatar
        | Field::Capabilities
        | Field::Chunks
        | Field::ClientMessageId
        | Field::Command
        | Field::Credential
        | Field::Description
        | Field::Device
        | Field::Digest
        | Field::DisplayName
        | Field::Emoji
        | Field::ExpiresAt
        | Field::ExternalId
        | Field::Fallback
        | Field::File
        | Field::FileName
        | Field::From
        | Field::Hears
        | Field::Heartbeat
        | Field::HubName
        | Field::Id
        | Field::Instructions
        | Field::Kind
        | Field::Lease
        | Field::LockoutFailures
        | Field::LockoutSeconds
        | Field::MaxConnections
        | Field::MemberDescription
        | Field::Members
        | Field::Mentions
        | Field::Message
        | Field::Messages
        | Field::Model
        | Field::MostTokens
        | Field::Name
        | Field::Note
        | Field::Observers
        | Field::Password
        | Field::Path
        | Field::Payload
        | Field::Pattern
        | Field::Position
        | Field::ProjectRoot
        | Field::Reason
        | Field::Recipient
        | Field::Registration
        | Field::ParentTask
        | Field::ReplyTo
        | Field::Request
        | Field::Result
        | Field::Role
        | Field::Room
        | Field::RoutedText
        | Field::RouterBaseUrl
        | Field::RouterKey
        | Field::RouterModel
        | Field::Scope
        | Field::Scopes
        | Field::SearchText
        | Field::ServiceBaseUrl
        | Field::ServiceKey
        | Field::ServiceModel
        | Field::Always
        | Field::AutoRun
        | Field::Session
        | Field::Settings
        | Field::Source
        | Field::SpawnKind
        | Field::Status
        | Field::Subscriptions
        | Field::SystemPrompt
        | Field::Targets
        | Field::Title
        | Field::Tool
        | Field::Username
        | Field::Uses
        | Field::Visibility
        | Field::WorkingDirectory => field.as_str(),
    }
}
