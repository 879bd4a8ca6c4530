//! Sends a message to an agent, in a room or in a new private room.

use super::addressee::Addressee;
use super::new_chat::NewChat;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::{PromptAgent, PromptMode, Prompted};
use parlor_model::{AgentId, Event, Post, Refusal, Run};
use std::sync::Arc;

/// Start of a message that asks an agent for a plan.
const PLAN_COMMAND: &str = "/plan ";

pub struct Facts {
    /// The addressed agent.
    agent: AgentId,
    target: Target,
}

/// Room that the message is posted in.
enum Target {
    Room(Post, Box<<Post as Command>::Facts>),
    NewRoom(NewChat),
}

impl Command for PromptAgent {
    type Facts = Facts;
    type Receipt = Prompted;

    /// Allowed for members of the room. In a new room, allowed for the owner of the agent and for users that the
    /// agent is shared with. This step also validates the text, because a leading name of an agent does not count.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let Addressee { room, agent, text } =
            Addressee::find(&self.agent, &self.rooms, &self.text, caller, view)?;
        let text = with_mode(text, self.mode);
        let mut field_errors = FieldErrors::default();
        field_errors.content(&text, &self.attachments, view.limits)?;
        field_errors.attachments(&self.attachments, view.limits);
        field_errors.into_result()?;
        let target = match room {
            Some(room) => {
                let (mentions, attachments) = (vec![agent.as_str().into()], self.attachments.clone());
                let post = Post {
                    id: None,
                    room,
                    text,
                    mentions,
                    reply_to: None,
                    attachments,
                    client_message_id: None,
                    origin: None,
                    author: None,
                };
                let facts = post.permit(caller, view)?;
                Target::Room(post, Box::new(facts))
            }
            None => Target::NewRoom(NewChat::load(&agent, text, &self.attachments, caller, view)?),
        };
        Ok(Facts { agent, target })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Prompted, Refusal> {
        let (room, posted) = match facts.target {
            Target::Room(post, facts) => (post.room.clone(), post.decide(*facts, effects)?),
            Target::NewRoom(chat) => chat.start(effects)?,
        };
        Ok(Prompted { posted, room, run: new_run_of(&facts.agent, effects) })
    }
}

/// The text as the agent receives it.
fn with_mode(text: Arc<str>, mode: PromptMode) -> Arc<str> {
    match mode {
        PromptMode::Plan if !text.starts_with(PLAN_COMMAND) => format!("{PLAN_COMMAND}{text}").into(),
        PromptMode::Plan | PromptMode::Normal => text,
    }
}

/// The run that the posted message has created for the agent, if any.
fn new_run_of(agent: &AgentId, effects: &EffectsBuilder<'_>) -> Option<Arc<Run>> {
    effects.events.iter().find_map(|logged_event| match &logged_event.event {
        Event::RunChanged(run) if run.agent == *agent => Some(run.clone()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_mode_puts_the_command_before_the_text_once() {
        let text = |text: &str, mode| with_mode(text.into(), mode).to_string();
        assert_eq!(text("tea", PromptMode::Normal), "tea");
        assert_eq!(text("tea", PromptMode::Plan), "/plan tea");
        assert_eq!(text("/plan tea", PromptMode::Plan), "/plan tea");
        assert_eq!(text("/planet", PromptMode::Plan), "/plan /planet");
    }
}
