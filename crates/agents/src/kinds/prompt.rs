//! The prompt for agent programs that take a single text.

use super::SlashCommand;
use crate::context::prompt;
use crate::run::RunInput;
use parlor_wire::agentim::gateway::host::ingress::SenderType;

/// Returns the conversation, or only the slash command if a user's message consists of one that the agent
/// knows.
pub(super) fn prompt_text(run_input: &RunInput, commands: &[SlashCommand]) -> String {
    slash_command(run_input, commands).map_or_else(|| prompt(run_input), str::to_owned)
}

/// The slash command in the message to answer, if a user addressed it to this agent alone and it is one line.
fn slash_command<'a>(run_input: &'a RunInput, commands: &[SlashCommand]) -> Option<&'a str> {
    let text = run_input.request.content.trim();
    if run_input.request.sender != SenderType::User || text.contains('\n') {
        return None;
    }
    let members = run_input.room.iter().flat_map(|room| &room.members);
    let name =
        members.filter(|member| *member.id == *run_input.request.agent.as_str()).map(|own| &*own.name).next();
    let rest = match text.strip_prefix('@') {
        Some(rest) => {
            name.and_then(|name| rest.strip_prefix(name)).or_else(|| Some(rest.split_once(' ')?.1))?
        }
        // A message without a mention counts if it was not distributed by the room's answer policy.
        None if !run_input.request.by_policy => text,
        None => return None,
    };
    let command = rest.trim_start();
    let word = command.strip_prefix('/')?.split(' ').next()?;
    commands.iter().any(|known| &*known.name == word).then_some(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{AgentId, MessageId, RoomId, RunContext};
    use parlor_wire::agentim::gateway::host::ingress::{MemberView, RoomView, RunRequest};
    use std::sync::Arc;

    fn run_input(text: &str, sender: SenderType) -> RunInput {
        let request = RunRequest {
            agent: AgentId::stored("a1"),
            context: RunContext::Room(RoomId::stored("r")),
            message: MessageId::stored("m"),
            run: None,
            content: text.into(),
            sender_name: "Ada".into(),
            sender,
            by_policy: false,
            conversation: None,
            depth: 0,
            earlier: Vec::new(),
        };
        let own = MemberView {
            id: "a1".into(),
            name: "Code Reviewer".into(),
            kind: SenderType::Agent,
            role: None,
            role_description: None,
            agent_type: None,
            capabilities: None,
            status: None,
        };
        let room =
            RoomView { room: RoomId::stored("r"), name: "r".into(), system_prompt: None, members: vec![own] };
        RunInput { request, room: Some(Arc::new(room)), session: None }
    }

    #[test]
    fn only_a_user_message_without_other_text_is_a_command() {
        let known = [SlashCommand { name: "compact".into(), description: "".into() }];
        let check = |text: &str, sender, expected: Option<&str>| {
            let run_input = run_input(text, sender);
            assert_eq!(
                prompt_text(&run_input, &known),
                expected.map_or_else(|| prompt(&run_input), str::to_owned),
                "{text}"
            );
        };
        check("@coder /compact", SenderType::User, Some("/compact"));
        check(" @Code Reviewer  /compact keep the names ", SenderType::User, Some("/compact keep the names"));
        check("@coder /compact", SenderType::Agent, None);
        check("@coder please /compact", SenderType::User, None);
        check("@coder /compact\nUser: and more", SenderType::User, None);
        check("@coder /unknown", SenderType::User, None);
        check("/compact", SenderType::User, Some("/compact"));
        let mut by_policy = run_input("/compact", SenderType::User);
        by_policy.request.by_policy = true;
        assert_eq!(
            prompt_text(&by_policy, &known),
            prompt(&by_policy),
            "the message was not addressed to the agent alone"
        );
        check("@coder", SenderType::User, None);
    }
}
