import { useChat } from '../chat/store';
import { isReply, isStreaming, type Reply } from '../chat/message';
import { sessionOf } from '../chat/place';
import type { RoomChat } from '../chat/state';
import { AgentBody } from '../runs/AgentBody';
import { PermissionList } from '../runs/PermissionCard';
import { Block } from '../settings/Block';
import { text } from '../text';
import { Boundary } from '../ui/boundary';
import { clock } from '../ui/time';

const NO_NAMES: readonly string[] = [];
/** Replies shown for each session. */
const SHOWN_REPLIES = 3;

/** Runs of an agent that have no room, as its owner sees them: live text, approvals and questions. */
export function SessionRuns({ agentId }: { agentId: string }) {
  const chats = useChat((state) => state.chats);
  const here = Object.entries(chats).flatMap(([key, chat]) => {
    const session = sessionOf(key);
    return session?.agentId === agentId && !isEmpty(chat) ? [{ key, sessionId: session.sessionId, chat }] : [];
  });
  if (here.length === 0) return null;
  return (
    <Block title={text.agents.atWork} lead={text.agents.atWorkLead}>
      {here.map(({ key, sessionId, chat }) => (
        <Boundary key={key}>
          <section aria-label={text.agents.inSession(sessionId)} className="space-y-3 rounded-xl border p-4">
            <h3 className="font-mono text-xs text-faint">{sessionId}</h3>
            {chat.messages
              .filter(isReply)
              .slice(-SHOWN_REPLIES)
              .map((message) => (
                <SessionReply key={message.id} message={message} />
              ))}
            <PermissionList permissions={chat.permissions} />
          </section>
        </Boundary>
      ))}
    </Block>
  );
}

function SessionReply({ message }: { message: Reply }) {
  return (
    <article aria-label={`${message.senderName}, ${clock(message.timestampMs)}`} aria-busy={isStreaming(message)}>
      <AgentBody message={message} names={NO_NAMES} mine={NO_NAMES} />
    </article>
  );
}

function isEmpty(chat: RoomChat): boolean {
  return chat.messages.length === 0 && chat.permissions.length === 0;
}
