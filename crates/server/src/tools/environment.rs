//! Access to the hub for programs that work for an agent: the hub's address and a token that is limited to the agent.

use crate::App;
use parlor_model::{AgentCredential, AgentId, Caller, Principal, RunId, SessionId, UserId};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Maximum lifetime of a token for a run, which usually ends earlier.
const RUN_TOKEN_TTL: Duration = Duration::from_secs(24 * 3600);
/// Time for which a token is valid after the time limit of its call.
const CALL_MARGIN: Duration = Duration::from_secs(30);

/// Environment variables of a program that works for an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentEnvironment(pub BTreeMap<&'static str, String>);

/// Prints the names of the variables only: one of them is a token.
impl fmt::Debug for AgentEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl App {
    /// The environment of a program that executes a run. The token ends with the run.
    pub fn environment_of_run(
        &self,
        owner: UserId,
        agent: AgentId,
        session: Option<SessionId>,
        run: RunId,
    ) -> AgentEnvironment {
        let now = self.hub.now();
        let expires_at = now.plus(RUN_TOKEN_TTL);
        let run = Some(run);
        self.environment(AgentCredential { owner, agent, session, run, issued_at: now, expires_at })
    }

    /// The environment of a program that is called as a tool. If the caller is a program of the agent, the token also
    /// ends when that of the caller ends.
    pub(super) fn environment_of_call(
        &self,
        caller: &Caller,
        agent: AgentId,
        session: Option<SessionId>,
        timeout: Duration,
    ) -> Option<AgentEnvironment> {
        let owner = caller.user()?.clone();
        let now = self.hub.now();
        let (mut run, mut issued_at, mut expires_at) = (None, now, now.plus(timeout + CALL_MARGIN));
        if let Principal::Agent(credential) = &caller.principal {
            run = credential.run.clone();
            issued_at = credential.issued_at;
            expires_at = expires_at.min(credential.expires_at);
        }
        Some(self.environment(AgentCredential { owner, agent, session, run, issued_at, expires_at }))
    }

    fn environment(&self, credential: AgentCredential) -> AgentEnvironment {
        let mut variables = BTreeMap::from([
            ("PARLOR_URL", self.config.local_url.clone()),
            ("TOOL_AGENT_ID", credential.agent.to_string()),
        ]);
        if let Some(session) = &credential.session {
            variables.insert("TOOL_SESSION_ID", session.to_string());
        }
        variables.insert("PARLOR_TOKEN", self.tokens.issue_to_agent(&credential));
        AgentEnvironment(variables)
    }
}
