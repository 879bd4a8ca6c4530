//! Look-ups of the credentials that clients present. Only this file acts as the hub's authentication code.

use parlor_engine::Hub;
use parlor_model::query::{
    AccountWithSecondFactor, FindAccount, FindKey, FindSigningKey, GetSecondFactor, GetSettings,
};
use parlor_model::{ApiKey, Caller, HubSettings, KeyId, Refusal, SecretHash, SigningKey, User, UserId};

/// The account with this username, with the password hash to verify.
pub async fn account(hub: &Hub, username: &str) -> Result<Option<User>, Refusal> {
    hub.read(&Caller::AUTHENTICATOR, FindAccount { username: username.into() }).await
}

pub async fn second_factor(hub: &Hub, user: &UserId) -> Result<Option<AccountWithSecondFactor>, Refusal> {
    hub.read(&Caller::AUTHENTICATOR, GetSecondFactor { user: user.clone() }).await
}

pub async fn key(hub: &Hub, secret: SecretHash) -> Result<Option<ApiKey>, Refusal> {
    hub.read(&Caller::AUTHENTICATOR, FindKey { secret }).await
}

/// The key with this id, if its secret signs tokens.
pub async fn signing_key(hub: &Hub, key: &KeyId) -> Result<Option<SigningKey>, Refusal> {
    hub.read(&Caller::AUTHENTICATOR, FindSigningKey { key: key.clone() }).await
}

/// Settings that admins changed at run time, among them those of the lockout of accounts.
pub async fn settings(hub: &Hub) -> Result<HubSettings, Refusal> {
    hub.read(&Caller::AUTHENTICATOR, GetSettings).await
}
