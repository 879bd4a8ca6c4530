//! `delegate_lookups!`: implements `Lookup` for a type that reads through another one.

/// Implements `Lookup` by delegating each read. `$read` is a method that returns the target as
/// `Result<&mut impl Lookup, Fault>`. `$read_keys` is the same for `first_use`: a store that buffers rows need
/// not write them for it, because idempotency keys are never buffered, and every message may look one up.
#[macro_export]
macro_rules! delegate_lookups {
    ($type:ty, $read:ident, $read_keys:ident) => {
        $crate::delegate_lookups!(@each $type, $read, $read_keys,
            user(id: &parlor_model::UserId) -> Option<parlor_model::User>;
            user_named(username: &str) -> Option<parlor_model::User>;
            admins() -> u64;
            sign_in(id: &parlor_model::SignInId) -> Option<parlor_model::SignIn>;
            refresh_token(token: &parlor_model::SecretHash) -> Option<parlor_model::RefreshToken>;
            key(id: &parlor_model::KeyId) -> Option<parlor_model::ApiKey>;
            key_with(secret: &parlor_model::SecretHash) -> Option<parlor_model::ApiKey>;
            setup() -> Option<(parlor_model::SecretHash, parlor_model::Time)>;
            invitation(id: &parlor_model::InvitationId) -> Option<parlor_model::Invitation>;
            invitation_with(secret: &parlor_model::SecretHash) -> Option<parlor_model::Invitation>;
            pairing(code: &parlor_model::SecretHash) -> Option<parlor_model::Pairing>;
            router(id: &parlor_model::RouterId) -> Option<parlor_model::Router>;
            routers(user: &parlor_model::UserId) -> Vec<parlor_model::Router>;
            service(agent: &parlor_model::AgentId) -> Option<parlor_model::Service>;
            last_failed_sign_in(user: Option<&parlor_model::UserId>) -> Option<parlor_model::audit::AuditRecord>;
            settings() -> parlor_model::HubSettings;
            second_factor(user: &parlor_model::UserId) -> Option<parlor_model::SecondFactor>;
            has_backup_code(user: &parlor_model::UserId, code: &parlor_model::SecretHash) -> bool;
            room(id: &parlor_model::RoomId) -> Option<parlor_model::Room>;
            member(room: &parlor_model::RoomId, member: &parlor_model::MemberId) -> Option<parlor_model::Member>;
            members(room: &parlor_model::RoomId, limit: usize, offset: usize) -> Vec<parlor_model::Member>;
            memberships(member: &parlor_model::MemberId) -> Vec<parlor_model::Member>;
            message(id: &parlor_model::MessageId) -> Option<std::sync::Arc<parlor_model::Message>>;
            was_said(id: &parlor_model::MessageId) -> bool;
            said_since(room: &parlor_model::RoomId, from: parlor_model::Seq, limit: usize)
                -> Vec<std::sync::Arc<parlor_model::Message>>;
            pin(message: &parlor_model::MessageId) -> Option<parlor_model::Pin>;
            pin_count(room: &parlor_model::RoomId) -> usize;
            bookmark(user: &parlor_model::UserId, message: &parlor_model::MessageId)
                -> Option<parlor_model::Bookmark>;
            bookmark_count(user: &parlor_model::UserId) -> usize;
            newest_message(room: &parlor_model::RoomId) -> Option<parlor_model::Seq>;
            agent(id: &parlor_model::AgentId) -> Option<parlor_model::Agent>;
            agents_of(owner: &parlor_model::UserId) -> Vec<parlor_model::Agent>;
            agents_in(room: &parlor_model::RoomId) -> Vec<parlor_model::AgentId>;
            share_a_room(first: &parlor_model::MemberId, second: &parlor_model::MemberId) -> bool;
            deliveries(message: &parlor_model::MessageId) -> Vec<parlor_model::Delivery>;
            agents_below(id: &parlor_model::AgentId) -> Vec<parlor_model::Agent>;
            task(id: &parlor_model::TaskId) -> Option<parlor_model::Task>;
            task_count(room: &parlor_model::RoomId) -> usize;
            gateway(id: &parlor_model::GatewayId) -> Option<parlor_model::Gateway>;
            gateways(owner: Option<&parlor_model::UserId>) -> Vec<parlor_model::Gateway>;
            sessions(agent: &parlor_model::AgentId) -> Vec<parlor_model::Session>;
            subscriptions_of(mailbox: &parlor_model::Mailbox) -> Vec<parlor_model::Subscription>;
            delivery(mailbox: &parlor_model::Mailbox, message: &parlor_model::MessageId)
                -> Option<parlor_model::Delivery>;
            pending(mailbox: &parlor_model::Mailbox, now: parlor_model::Time, limit: usize)
                -> Vec<(std::sync::Arc<parlor_model::Message>, parlor_model::Delivery)>;
            upload(id: &parlor_model::UploadId) -> Option<parlor_model::Upload>;
            uploads_waiting(owner: &parlor_model::UserId) -> usize;
            avatars(owner: &parlor_model::UserId) -> Vec<parlor_model::Upload>;
            released(limit: usize) -> Vec<parlor_model::BlobDigest>;
            approval(id: &parlor_model::ApprovalId) -> Option<parlor_model::Approval>;
            approvals_called(gateway: &parlor_model::GatewayId, request: &str)
                -> Vec<parlor_model::Approval>;
            open_approvals(of: $crate::ports::OpenApprovalsOf<'_>) -> Vec<parlor_model::Approval>;
            open_approval_count() -> usize;
            plan(room: &parlor_model::RoomId, agent: &parlor_model::AgentId)
                -> Option<parlor_model::CurrentPlan>;
            mission(id: &parlor_model::MissionId) -> Option<parlor_model::Mission>;
            missions(mission_scope: &parlor_model::MissionScope, limit: usize) -> Vec<parlor_model::Mission>;
            rooms_about(root: &str) -> Vec<parlor_model::Room>;
            idle(mission_scope: &parlor_model::MissionScope, agent: &parlor_model::AgentId) -> Option<parlor_model::IdlePrompt>;
            approval_rule(room: &parlor_model::RoomId, agent: &parlor_model::AgentId, tool: &str)
                -> Option<parlor_model::ApprovalRule>;
            run(id: &parlor_model::RunId) -> Option<parlor_model::Run>;
            runs_of(message: &parlor_model::MessageId) -> Vec<parlor_model::Run>;
            ended_turn(agent: &parlor_model::AgentId, conversation: &parlor_model::ConversationId)
                -> Option<parlor_model::Run>;
            open_runs_in(room: &parlor_model::RoomId) -> Vec<parlor_model::Run>;
            has_open_run(agent: &parlor_model::AgentId) -> bool;
            spent(room: &parlor_model::RoomId, agent: &parlor_model::AgentId, since: parlor_model::Time)
                -> $crate::ports::BudgetUsage;
            asked(room: &parlor_model::RoomId, by: &parlor_model::AgentId, agent: &parlor_model::AgentId,
                since: parlor_model::Time) -> u64;
            spoken(agent: &parlor_model::AgentId, since: parlor_model::Time) -> u64;
        );
    };
    (@each $type:ty, $read:ident, $read_keys:ident, $($name:ident($($value:ident: $kind:ty),*) -> $found:ty;)*) => {
        impl $crate::ports::Lookup for $type {
            $(fn $name(&mut self, $($value: $kind),*) -> Result<$found, $crate::Fault> {
                $crate::ports::Lookup::$name(self.$read()?, $($value),*)
            })*

            fn first_use(
                &mut self,
                key: &$crate::ports::IdempotencyKey,
            ) -> Result<Option<$crate::ports::FirstRequest>, $crate::Fault> {
                $crate::ports::Lookup::first_use(self.$read_keys()?, key)
            }
        }
    };
}
