//! Names that Ably and Jaibber clients know for the fields that a refusal names.

use parlor_model::Field;

pub fn name(field: Field) -> &'static str {
    match field {
        Field::ClientMessageId | Field::ExternalId => "id",
        Field::Text | Field::RoutedText | Field::Payload => "data",
        Field::Position => "channelSerial",
        Field::Room | Field::SelectedRoom | Field::Path => "channel",
        Field::Command => "name",
        Field::Attachments => "attachments",
        Field::Assignee => "assignedAgentName",
        Field::ParentTask => "parentTaskId",
        Field::ReplyTo => "parentMessageId",
        Field::Author => "fromUsername",
        Field::From => "from",
        Field::ExpiresAt => "ttl",
        Field::Capabilities | Field::Scope | Field::Scopes => "capability",
        Field::SystemPrompt | Field::Instructions => "agentInstructions",
        Field::FileName => "filename",
        // Fields with the same name, and fields of requests that the protocol does not have.
        Field::Action
        | Field::Agent
        | Field::Agents
        | Field::Answers
        | Field::Avatar
        | Field::Chunks
        | Field::Credential
        | Field::Description
        | Field::Device
        | Field::Digest
        | Field::DisplayName
        | Field::Emoji
        | Field::Fallback
        | Field::File
        | Field::Hears
        | Field::Heartbeat
        | Field::HubName
        | Field::Id
        | Field::IdleInterval
        | Field::IdlePrompt
        | Field::IdleSettings
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
        | Field::MissionText
        | Field::Model
        | Field::MostTokens
        | Field::Name
        | Field::Note
        | Field::Observers
        | Field::Password
        | Field::Pattern
        | Field::PlanText
        | Field::Prompt
        | Field::ProjectRoot
        | Field::Reason
        | Field::Recipient
        | Field::Registration
        | Field::Request
        | Field::Result
        | Field::Role
        | Field::RouterBaseUrl
        | Field::RouterKey
        | Field::RouterModel
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
        | Field::Targets
        | Field::Title
        | Field::Tool
        | Field::Username
        | Field::Uses
        | Field::Visibility
        | Field::WorkingDirectory => field.as_str(),
    }
}
