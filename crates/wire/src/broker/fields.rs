//! Names that broker clients know for the fields that a refusal names.

use parlor_model::{Field, FieldError};

/// Returns the name of the field and the violated rule in terms of broker frames.
pub fn translate(error: &FieldError) -> (&'static str, &str) {
    let rule = match error.field {
        Field::RoutedText => "a message to a room needs payload.text",
        _ => &error.rule,
    };
    (name(error.field), rule)
}

fn name(field: Field) -> &'static str {
    match field {
        Field::ExternalId => "externalId",
        Field::Kind => "type",
        Field::Messages => "messageIds",
        Field::Position => "after",
        Field::RoutedText => "payload",
        Field::AutoRun => "autoRun",
        Field::Heartbeat => "heartbeat",
        Field::Session => "sessionId",
        Field::Settings => "config",
        Field::Visibility => "visibilityList",
        // Fields with the same name in frames.
        Field::Author
        | Field::Command
        | Field::Description
        | Field::From
        | Field::Id
        | Field::Lease
        | Field::Name
        | Field::Observers
        | Field::Path
        | Field::Payload
        | Field::Pattern
        | Field::Prompt
        | Field::Recipient
        | Field::Source
        | Field::Subscriptions
        | Field::Text => field.as_str(),
        // Fields of requests that the broker does not have.
        Field::Action
        | Field::Agent
        | Field::Agents
        | Field::Always
        | Field::Answers
        | Field::Assignee
        | Field::Attachments
        | Field::Avatar
        | Field::Capabilities
        | Field::Chunks
        | Field::ClientMessageId
        | Field::Credential
        | Field::Device
        | Field::Digest
        | Field::DisplayName
        | Field::Emoji
        | Field::ExpiresAt
        | Field::Fallback
        | Field::File
        | Field::FileName
        | Field::Hears
        | Field::HubName
        | Field::IdleInterval
        | Field::IdlePrompt
        | Field::IdleSettings
        | Field::Instructions
        | Field::LockoutFailures
        | Field::LockoutSeconds
        | Field::MaxConnections
        | Field::MemberDescription
        | Field::Members
        | Field::Mentions
        | Field::Message
        | Field::MissionText
        | Field::Model
        | Field::MostTokens
        | Field::Note
        | Field::Password
        | Field::PlanText
        | Field::ProjectRoot
        | Field::Reason
        | Field::Registration
        | Field::ParentTask
        | Field::ReplyTo
        | Field::Request
        | Field::Result
        | Field::Role
        | Field::Room
        | Field::RouterBaseUrl
        | Field::RouterKey
        | Field::RouterModel
        | Field::Scope
        | Field::Scopes
        | Field::SearchText
        | Field::SelectedRoom
        | Field::ServiceBaseUrl
        | Field::ServiceKey
        | Field::ServiceModel
        | Field::SpawnKind
        | Field::Status
        | Field::SystemPrompt
        | Field::Targets
        | Field::Title
        | Field::Tool
        | Field::Username
        | Field::Uses
        | Field::WorkingDirectory => field.as_str(),
    }
}
