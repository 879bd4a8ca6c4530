//! Executes requests of the operator by submitting commands and queries to the hub.

use crate::admin::{AdminReply, AdminRequest, AgentRow, AuditRow, Role, TokenRow, UserRow};
use crate::agents::local::{self, LocalAgents};
use crate::doctor;
use crate::instance::Instance;
use crate::secret::Secret;
use anyhow::bail;
use parlor_engine::{Health, Hub, password_errors};
use parlor_model::audit::{Action, Actor, AuditFilter, AuditRecord};
use parlor_model::command::{
    ChangeUser, CreateKey, CreateUser, FreezeRoom, NewUser, RecordBackup, RemoveAgent, RemoveSecondFactor,
    RemoveUser, RevokeKey, ThawRoom, UserChanges,
};
use parlor_model::query::{FindAccount, ListAuditRecords, ListKeys, ListUsers};
use parlor_model::{
    AgentId, AgentStatus, ApiKey, Caller, EntityKind, Field, KeyId, Refusal, RoomId, Scope, Seq, SiteRole,
    User,
};
use parlor_server::{NewSigningKey, Passwords, SigningKeys, secrets};
use parlor_wire::agentim::codes;
use parlor_wire::time::iso;
use std::sync::Arc;
use std::time::Duration;

const OPERATOR: Caller = Caller::OPERATOR;

#[derive(Clone)]
pub struct AdminExecutor {
    hub: Hub,
    passwords: Passwords,
    signing_keys: Arc<SigningKeys>,
    local_agents: Arc<LocalAgents>,
    /// Whether this process hosts agents; `false` when it only opened the store for one request.
    hosts: bool,
}

impl AdminExecutor {
    pub fn new(instance: &Instance, local_agents: Arc<LocalAgents>, hosts: bool) -> Self {
        let (hub, passwords) = (instance.hub.clone(), instance.passwords.clone());
        Self { hub, passwords, signing_keys: instance.signing_keys.clone(), local_agents, hosts }
    }

    pub async fn perform(&self, request: AdminRequest) -> AdminReply {
        match self.try_perform(request).await {
            Ok(reply) => reply,
            Err(refusal) => AdminReply::Refused { reason: refusal_text(&refusal) },
        }
    }

    pub async fn create_admin(&self, username: &str, password: &Secret) -> anyhow::Result<()> {
        let created = self.add_user(username, Role::Admin, None, password).await;
        match created {
            Ok(_) => Ok(()),
            Err(refusal) => bail!("cannot create the first admin: {}", refusal_text(&refusal)),
        }
    }

    /// Adds, removes or lists the agents that the hub hosts itself. They are stored in a file next to the
    /// database, so errors are plain messages instead of refusals.
    async fn execute_agent_request(&self, request: AdminRequest) -> anyhow::Result<AdminReply> {
        Ok(match request {
            AdminRequest::AddAgent { agent } => {
                let owner = local::owner(&self.hub, agent.owner.as_deref()).await;
                if let (Err(refusal), true) = (owner, agent.owner.is_some()) {
                    bail!("{}", refusal_text(&refusal));
                }
                let name = agent.entry.name.clone();
                self.local_agents.add(agent)?;
                let running = self.hosts && self.comes_online(&name).await;
                AdminReply::AgentAdded { name, running }
            }
            AdminRequest::RemoveAgent { name } => {
                let id = self.local_agents.id(&name);
                self.local_agents.remove(&name)?;
                if let Some(id) = id {
                    let removed = self.hub.execute(&OPERATOR, RemoveAgent { id }).await;
                    if let Err(refusal) = removed
                        && refusal != Refusal::NotFound(EntityKind::Agent)
                        && refusal != Refusal::NotSignedIn
                    {
                        bail!("{}", refusal_text(&refusal));
                    }
                }
                AdminReply::AgentRemoved { name }
            }
            AdminRequest::MoveAgent { from, to } => {
                if !self.hosts {
                    bail!("start the hub first: it moves the folder and the mail of the agent together");
                }
                let [old, new] = [&from, &to].map(|id| AgentId::parse(id));
                let (Ok(old), Ok(new)) = (old, new) else {
                    bail!("an id has up to eight names joined by /, of letters, digits, _ and -");
                };
                self.local_agents.move_folder(old, new).await?;
                AdminReply::AgentMoved { from, to }
            }
            _ => {
                let mut agents = Vec::new();
                for local::LocalAgent { entry, .. } in self.local_agents.list()? {
                    let status = self
                        .local_agents
                        .id(&entry.name)
                        .map(|id| self.hub.hosting().agent_status(&id).as_str());
                    agents.push(AgentRow {
                        status: status.unwrap_or("offline").into(),
                        kind: entry.config.kind,
                        directory: entry.config.directory.map(|path| path.display().to_string()),
                        name: entry.name,
                    });
                }
                AdminReply::Agents { agents }
            }
        })
    }

    /// Returns whether a new agent comes online within 3 seconds. It polls, because only the CLI waits for
    /// this.
    async fn comes_online(&self, name: &str) -> bool {
        let online = async {
            let is_online = |id| self.hub.hosting().agent_status(&id) != AgentStatus::Offline;
            while !self.local_agents.id(name).is_some_and(is_online) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(3), online).await.is_ok()
    }

    async fn try_perform(&self, request: AdminRequest) -> Result<AdminReply, Refusal> {
        Ok(match request {
            AdminRequest::Status => AdminReply::Status {
                version: env!("CARGO_PKG_VERSION").into(),
                store: match self.hub.health() {
                    Health::Good => "ok".into(),
                    Health::Full => "full".into(),
                    Health::Broken => "failed".into(),
                },
                open_files: doctor::open_files_limit(),
            },
            AdminRequest::AddUser { username, role, display_name, password } => {
                let user = self.add_user(&username, role, display_name, &password).await?;
                AdminReply::UserAdded { user: user_row(&user) }
            }
            AdminRequest::ListUsers => {
                AdminReply::Users { users: self.users().await?.iter().map(user_row).collect() }
            }
            AdminRequest::ResetPassword { username, password } => {
                let user = self.user_by_name(&username).await?;
                let password_hash = Some(self.hash(&password).await?);
                let changes = UserChanges { password_hash, ..UserChanges::default() };
                self.hub.execute(&OPERATOR, ChangeUser { user: user.id, changes }).await?;
                AdminReply::PasswordReset { username: user.username.into() }
            }
            AdminRequest::DisableSecondFactor { username } => {
                let user = self.user_by_name(&username).await?;
                let command = RemoveSecondFactor { user: user.id, verified_password_hash: None };
                self.hub.execute(&OPERATOR, command).await?;
                AdminReply::SecondFactorDisabled { username: user.username.into() }
            }
            AdminRequest::RemoveUser { username } => {
                let user = self.user_by_name(&username).await?;
                self.hub.execute(&OPERATOR, RemoveUser { user: user.id }).await?;
                AdminReply::UserRemoved { username: user.username.into() }
            }
            AdminRequest::Audit { limit, action, actor, subject } => {
                let action = match action {
                    Some(text) => {
                        let action = Action::parse(&text)
                            .ok_or(Refusal::invalid(Field::Action, "is not an action"))?;
                        Some(action)
                    }
                    None => None,
                };
                let (actor, subject) = (actor.map(Into::into), subject.map(Into::into));
                let filter =
                    AuditFilter { limit: limit.into(), action, actor, subject, ..AuditFilter::default() };
                let page = self.hub.read(&OPERATOR, ListAuditRecords { filter }).await?;
                AdminReply::Audit { entries: page.records.iter().map(audit_row).collect() }
            }
            AdminRequest::AddToken { name, user, scopes } => self.add_token(name, &user, &scopes).await?,
            AdminRequest::Freeze { room, frozen } => {
                let id = RoomId::parse(&room).map_err(|_| Refusal::NotFound(EntityKind::Room))?;
                match frozen {
                    true => self.hub.execute(&OPERATOR, FreezeRoom { room: id }).await?,
                    false => self.hub.execute(&OPERATOR, ThawRoom { room: id }).await?,
                };
                AdminReply::RoomFrozen { room, frozen }
            }
            AdminRequest::NoteBackup { through } => {
                self.hub.execute(&OPERATOR, RecordBackup { through: Seq(through) }).await?;
                AdminReply::Noted
            }
            AdminRequest::ListTokens => {
                let keys = self.hub.read(&OPERATOR, ListKeys).await?;
                let users = self.users().await?;
                let keys = keys.iter().filter(|key| key.grant.is_none());
                AdminReply::Tokens { tokens: keys.map(|key| token_row(key, &users)).collect() }
            }
            request @ (AdminRequest::AddAgent { .. }
            | AdminRequest::ListAgents
            | AdminRequest::RemoveAgent { .. }
            | AdminRequest::MoveAgent { .. }) => match self.execute_agent_request(request).await {
                Ok(reply) => reply,
                Err(problem) => AdminReply::Refused { reason: format!("{problem:#}") },
            },
            AdminRequest::AddAblyKey { name, user, capability } => {
                self.add_ably_key(name, &user, &capability).await?
            }
            AdminRequest::ListAblyKeys => {
                let (keys, users) = (self.hub.read(&OPERATOR, ListKeys).await?, self.users().await?);
                let keys = keys.iter().filter(|key| key.grant.is_some());
                AdminReply::AblyKeys { tokens: keys.map(|key| token_row(key, &users)).collect() }
            }
            AdminRequest::RevokeToken { id } => {
                let key = KeyId::parse(&id).map_err(|_| Refusal::NotFound(EntityKind::Key))?;
                self.hub.execute(&OPERATOR, RevokeKey { key }).await?;
                AdminReply::TokenRevoked { id }
            }
        })
    }

    async fn add_user(
        &self,
        username: &str,
        role: Role,
        display_name: Option<String>,
        password: &Secret,
    ) -> Result<User, Refusal> {
        let account = NewUser {
            username: username.into(),
            display_name: display_name.map(Into::into),
            role: match role {
                Role::Admin => SiteRole::Admin,
                Role::User => SiteRole::User,
            },
            password_hash: self.hash(password).await?,
        };
        let user = self.hub.execute(&OPERATOR, CreateUser { account }).await?;
        Ok(User::clone(&user))
    }

    async fn add_token(&self, name: String, user: &str, scopes: &[String]) -> Result<AdminReply, Refusal> {
        let user = self.user_by_name(user).await?;
        let scopes: Option<Vec<Scope>> = scopes.iter().map(|scope| Scope::parse(scope)).collect();
        let scopes = scopes.ok_or(Refusal::invalid(Field::Scope, Scope::ALLOWED_VALUES))?;
        let key = secrets::api_key();
        let secret = secrets::hash(&key);
        let command = CreateKey { owner: Some(user.id.clone()), name: name.into(), scopes, secret };
        let created = self.hub.execute(&OPERATOR, command).await?;
        Ok(AdminReply::TokenAdded { token: token_row(&created, &[user]), key: Secret::new(key) })
    }

    async fn add_ably_key(&self, name: String, user: &str, capability: &str) -> Result<AdminReply, Refusal> {
        let user = self.user_by_name(user).await?;
        if user.role != SiteRole::Admin {
            return Err(Refusal::invalid(Field::Scope, "the owner of the key must be an admin"));
        }
        let new = self.signing_keys.generate(Some(user.id.clone()), name.into(), capability);
        let invalid = |_| Refusal::invalid(Field::Scopes, "must be operations by channel, as JSON");
        let NewSigningKey { command, text } = new.map_err(invalid)?;
        let created = self.hub.execute(&OPERATOR, command).await?;
        Ok(AdminReply::TokenAdded { token: token_row(&created, &[user]), key: Secret::new(text) })
    }

    async fn hash(&self, password: &Secret) -> Result<Box<str>, Refusal> {
        let errors = password_errors(password.expose());
        if !errors.is_empty() {
            return Err(Refusal::Invalid(errors));
        }
        self.passwords.hash(password.expose()).await
    }

    async fn user_by_name(&self, username: &str) -> Result<User, Refusal> {
        let found = self.hub.read(&OPERATOR, FindAccount { username: username.into() }).await?;
        found.ok_or(Refusal::NotFound(EntityKind::User))
    }

    async fn users(&self) -> Result<Vec<User>, Refusal> {
        Ok(self.hub.read(&OPERATOR, ListUsers { limit: 1_000_000, offset: 0 }).await?.users)
    }
}

fn user_row(user: &User) -> UserRow {
    UserRow {
        id: user.id.to_string(),
        username: user.username.to_string(),
        display_name: Some(user.display_name.to_string()),
        role: match user.role {
            SiteRole::Admin => Role::Admin,
            SiteRole::User => Role::User,
        },
        created_at: iso(user.created_at),
    }
}

fn audit_row(record: &AuditRecord) -> AuditRow {
    let note = &record.note;
    let subject = note.subject.as_ref().map(|subject| match &subject.name {
        Some(name) => format!("{} {name}", subject.kind.as_str()),
        None => format!("{} {}", subject.kind.as_str(), subject.id),
    });
    AuditRow {
        at: iso(record.last_at),
        actor: match &note.actor {
            Actor::Nobody => "-".into(),
            Actor::Operator => "operator".into(),
            Actor::Person { name, .. } => name.to_string(),
            Actor::Program { name, key, .. } => format!("{name} (key {key})"),
        },
        action: note.action.as_str().into(),
        subject: subject.unwrap_or_default(),
        detail: note.detail.as_deref().unwrap_or_default().into(),
        address: note.address.map(|address| address.to_string()).unwrap_or_default(),
        count: record.count,
    }
}

fn token_row(key: &ApiKey, users: &[User]) -> TokenRow {
    let owner = users.iter().find(|user| user.id == key.owner);
    TokenRow {
        id: key.id.to_string(),
        name: key.name.to_string(),
        user: owner.map(|user| user.username.to_string()).unwrap_or_default(),
        scopes: key.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
        capability: key.grant.as_ref().map(|grant| grant.notation.to_string()),
        created_at: iso(key.created_at),
    }
}

/// Returns the violated rules, or for any other refusal the message of the REST API.
fn refusal_text(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Invalid(errors) => codes::field_errors(errors),
        other => codes::status(other).1,
    }
}
