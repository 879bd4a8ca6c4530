//! What a program that takes one prompt is told.

use super::SlashCommand;
use crate::context::prompt;
use crate::run::RunInput;
use parlor_wire::agentim::gateway::host::ingress::SenderType;

/// The conversation; or, where a person says nothing to the agent but one of its own commands, that command.
pub(super) fn prompt_text(turn: &RunInput, commands: &[SlashCommand]) -> String {
    own_command(turn, commands).map_or_else(|| prompt(turn), str::to_owned)
}

fn own_command<'a>(turn: &'a RunInput, commands: &[SlashCommand]) -> Option<&'a str> {
    let said = turn.request.content.trim();
    if turn.request.sender != SenderType::User || said.contains('\n') {
        return None;
    }
    let members = turn.room.iter().flat_map(|room| &room.members);
    let name =
        members.filter(|member| *member.id == *turn.request.agent.as_str()).map(|own| &*own.name).next();
    let rest = match said.strip_prefix('@') {
        Some(rest) => {
            name.and_then(|name| rest.strip_prefix(name)).or_else(|| Some(rest.split_once(' ')?.1))?
        }
        // Said to this agent alone, in a call that names it elsewhere.
        None if !turn.request.by_policy => said,
        None => return None,
    };
    let command = rest.trim_start();
    let word = command.strip_prefix('/')?.split(' ').next()?;
    commands.iter().any(|known| &*known.name == word).then_some(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{AgentId, MessageId, RoomId};
    use parlor_wire::agentim::gateway::host::ingress::{MemberView, RoomView, RunRequest};
    use std::sync::Arc;

    fn turn(said: &str, sender: SenderType) -> RunInput {
        let request = RunRequest {
            agent: AgentId::stored("a1"),
            room: RoomId::stored("r"),
            message: MessageId::stored("m"),
            run: None,
            content: said.into(),
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
            status: None,
        };
        let room =
            RoomView { room: RoomId::stored("r"), name: "r".into(), system_prompt: None, members: vec![own] };
        RunInput { request, room: Some(Arc::new(room)), session: None }
    }

    #[test]
    fn only_a_person_who_says_nothing_else_gives_a_command() {
        let known = [SlashCommand { name: "compact".into(), description: "".into() }];
        let check = |said: &str, sender, expected: Option<&str>| {
            let turn = turn(said, sender);
            assert_eq!(
                prompt_text(&turn, &known),
                expected.map_or_else(|| prompt(&turn), str::to_owned),
                "{said}"
            );
        };
        check("@coder /compact", SenderType::User, Some("/compact"));
        check(" @Code Reviewer  /compact keep the names ", SenderType::User, Some("/compact keep the names"));
        check("@coder /compact", SenderType::Agent, None);
        check("@coder please /compact", SenderType::User, None);
        check("@coder /compact\nUser: and more", SenderType::User, None);
        check("@coder /unknown", SenderType::User, None);
        check("/compact", SenderType::User, Some("/compact"));
        let mut by_policy = turn("/compact", SenderType::User);
        by_policy.request.by_policy = true;
        assert_eq!(prompt_text(&by_policy, &known), prompt(&by_policy), "not said to it alone");
        check("@coder", SenderType::User, None);
    }
}
