//! Enums in bodies and frames. Each mirrors an enum of the model; a new variant there fails to compile until
//! it is added here.

use crate::words::mirror_enum;
use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Object, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

mirror_enum!(SiteRole, "lowercase", SiteRole { User, Admin });
mirror_enum!(RoomRole, "lowercase", RoomRole { Member, Admin, Owner });
mirror_enum!(RoomKind, "lowercase", RoomKind { Group, Private });
mirror_enum!(RoomPolicy, "lowercase", AnswerPolicy { Mention, Triage, All });
mirror_enum!(
    TaskStatus,
    "snake_case",
    TaskStatus { Pending, InProgress, InputRequired, Completed, Failed, Cancelled }
);
mirror_enum!(
    Scope,
    "kebab-case",
    Scope { Read, Write, Agents, Hosting, Sources, DeadLetters, Metrics, Admin }
);
mirror_enum!(NotificationPref, "lowercase", Notifications { All, Mentions, None });
mirror_enum!(ModelApi, "lowercase", ModelApi { OpenAi, Anthropic });
mirror_enum!(MessageType, "snake_case", MessageKind { Text, AgentResponse });

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum MemberType {
    User,
    Agent,
}

impl From<&parlor_model::MemberId> for MemberType {
    fn from(member: &parlor_model::MemberId) -> Self {
        match member {
            parlor_model::MemberId::User(_) => Self::User,
            parlor_model::MemberId::Agent(_) => Self::Agent,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum SenderType {
    User,
    Agent,
    System,
}

impl From<&parlor_model::Sender> for SenderType {
    fn from(sender: &parlor_model::Sender) -> Self {
        match sender {
            parlor_model::Sender::User(_) => Self::User,
            parlor_model::Sender::Agent(_) => Self::Agent,
            // Clients have no value for external sources.
            parlor_model::Sender::Source(_) => Self::System,
        }
    }
}

/// Defines a boolean with a fixed value, which distinguishes success and error responses in the generated
/// types.
macro_rules! always {
    ($name:ident, $value:literal) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name;

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bool($value)
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                Object::builder().schema_type(Type::Boolean).enum_values(Some([$value])).into()
            }
        }

        impl ToSchema for $name {}

        #[cfg(test)]
        impl TS for $name {
            type WithoutGenerics = Self;
            type OptionInnerType = Self;

            fn name(_: &ts_rs::Config) -> String {
                stringify!($value).into()
            }

            fn inline(config: &ts_rs::Config) -> String {
                <Self as TS>::name(config)
            }
        }
    };
}

always!(True, true);
always!(False, false);

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model as model;

    fn word(value: impl Serialize) -> serde_json::Value {
        serde_json::to_value(value).unwrap()
    }

    #[test]
    fn the_string_forms_equal_those_of_the_model() {
        for role in [model::SiteRole::User, model::SiteRole::Admin] {
            assert_eq!(word(SiteRole::from(role)), role.as_str());
        }
        for role in [model::RoomRole::Member, model::RoomRole::Admin, model::RoomRole::Owner] {
            assert_eq!(word(RoomRole::from(role)), role.as_str());
        }
        for kind in [model::RoomKind::Group, model::RoomKind::Private] {
            assert_eq!(word(RoomKind::from(kind)), kind.as_str());
        }
        for status in model::TaskStatus::ALL {
            assert_eq!(word(TaskStatus::from(status)), status.as_str());
        }
        for policy in [model::AnswerPolicy::Mention, model::AnswerPolicy::Triage, model::AnswerPolicy::All] {
            assert_eq!(word(RoomPolicy::from(policy)), policy.as_str());
        }
        for kind in [model::MessageKind::Text, model::MessageKind::AgentResponse] {
            assert_eq!(word(MessageType::from(kind)), kind.as_str());
        }
        for level in [model::Notifications::All, model::Notifications::Mentions, model::Notifications::None] {
            assert_eq!(word(NotificationPref::from(level)), level.as_str());
        }
        for scope in model::Scope::ALL {
            assert_eq!(word(Scope::from(scope)), scope.as_str());
        }
    }
}
