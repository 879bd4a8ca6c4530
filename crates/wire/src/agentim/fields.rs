//! Names that AgentIM clients know for the fields that a refusal names.

use parlor_model::{Field, FieldError};

/// Returns the name of the field and the violated rule in terms of AgentIM.
pub fn translate(error: &FieldError) -> (&'static str, &str) {
    (name(error.field), &error.rule)
}

fn name(field: Field) -> &'static str {
    match field {
        Field::Always => "allowAlways",
        Field::Assignee => "assigneeId",
        Field::AutoRun => "config.autoRun",
        Field::Attachments => "attachmentIds",
        Field::Avatar => "avatarUrl",
        Field::ClientMessageId => "clientMessageId",
        Field::Credential => "credentialId",
        Field::Device => "deviceInfo",
        Field::Digest => "inputDigest",
        Field::DisplayName => "displayName",
        Field::ExpiresAt => "expiresAt",
        Field::Fallback => "config.fallbackModel",
        Field::FileName => "filename",
        Field::HubName => "hubName",
        Field::Instructions => "config.systemPrompt",
        Field::Kind => "type",
        Field::LockoutFailures => "lockoutFailures",
        Field::LockoutSeconds => "lockoutSeconds",
        Field::MaxConnections => "maxConnections",
        Field::MemberDescription => "roleDescription",
        Field::Members => "memberIds",
        Field::Message => "messageId",
        Field::Messages => "messageIds",
        Field::MostTokens => "config.maxTokens",
        Field::ParentTask => "parentTaskId",
        Field::Position => "since",
        Field::ProjectRoot => "projectRoot",
        Field::Reason => "denyReason",
        Field::Registration => "agent",
        Field::ReplyTo => "replyToId",
        Field::Request => "requestId",
        Field::Room | Field::SelectedRoom => "roomId",
        Field::RouterBaseUrl => "llmBaseUrl",
        Field::RouterKey => "llmApiKey",
        Field::RouterModel => "llmModel",
        Field::Scope => "scope",
        Field::SearchText => "q",
        Field::ServiceBaseUrl => "config.baseUrl",
        Field::ServiceKey => "config.apiKey",
        Field::ServiceModel => "config.model",
        Field::Settings => "config",
        Field::SpawnKind => "agentType",
        Field::SystemPrompt => "systemPrompt",
        Field::Text => "content",
        Field::Tool => "toolName",
        Field::Visibility => "visibilityList",
        Field::WorkingDirectory => "workingDirectory",
        // Fields with the same name in AgentIM.
        Field::Action
        | Field::Capabilities
        | Field::Chunks
        | Field::Description
        | Field::Emoji
        | Field::File
        | Field::Hears
        | Field::Heartbeat
        | Field::Id
        | Field::Mentions
        | Field::Model
        | Field::Name
        | Field::Note
        | Field::Password
        | Field::Path
        | Field::Payload
        | Field::Pattern
        | Field::Result
        | Field::Role
        | Field::Scopes
        | Field::Status
        | Field::Subscriptions
        | Field::Targets
        | Field::Title
        | Field::Username
        | Field::Uses => field.as_str(),
        // Fields of requests that AgentIM does not have.
        Field::Agent
        | Field::Agents
        | Field::Answers
        | Field::Author
        | Field::Command
        | Field::ExternalId
        | Field::From
        | Field::IdleInterval
        | Field::IdlePrompt
        | Field::IdleSettings
        | Field::Lease
        | Field::MissionText
        | Field::Observers
        | Field::PlanText
        | Field::Prompt
        | Field::Recipient
        | Field::RoutedText
        | Field::Session
        | Field::Source => field.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_field_has_its_name_in_the_model_where_agentim_uses_camel_case() {
        let foreign = [Field::ExternalId];
        for field in Field::ALL.iter().filter(|field| !foreign.contains(field)) {
            assert!(!name(*field).contains('_'), "{field:?}");
        }
    }
}
