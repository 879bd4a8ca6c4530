/** Factories of messages, frames and states for tests, with defaults for all other fields. */
import type { ChatAction } from '../src/chat/actions';
import { reduce } from '../src/chat/reducer';
import { isReply, type ChatMessage, type Reply } from '../src/chat/message';
import { emptyState, type ChatState, type RoomEntry } from '../src/chat/state';
import type { Message } from '../src/generated/api';
import type { ServerFrame } from '../src/live/frames';
import { translate } from '../src/live/translate';

export const NOW = Date.parse('2026-01-02T12:00:00Z');
export const ROOM = 'kitchen';
export const AGENT = 'coder';

export function message(fields: Partial<Message> & { id: string; seq: number }): Message {
  return {
    roomId: ROOM,
    senderId: 'grace',
    senderType: 'user',
    senderName: 'Grace',
    type: 'text',
    content: `text of ${fields.id}`,
    mentions: [],
    attachments: [],
    reactions: [],
    chunks: [],
    createdAt: new Date(NOW + fields.seq * 1000).toISOString(),
    ...fields,
  };
}

export function reply(fields: Partial<Message> & { id: string; seq: number }): Message {
  return message({ senderId: AGENT, senderType: 'agent', senderName: 'Coder', type: 'agent_response', ...fields });
}

export function chunk(messageId: string, type: string, content: string, more: { first?: boolean; metadata?: object } = {}): ServerFrame {
  const part = { type, content, ...(more.metadata !== undefined && { metadata: { ...more.metadata } }) };
  const frame = { roomId: ROOM, agentId: AGENT, agentName: 'Coder', messageId, chunk: part };
  return { type: 'server:message_chunk', ...frame, ...(more.first === true && { first: true }) };
}

export function newMessage(logged: Message): ServerFrame {
  const type = logged.senderType === 'agent' ? 'server:message_complete' : 'server:new_message';
  return { type, message: logged, position: `e-${logged.seq}` };
}

export function room(fields: Partial<RoomEntry> = {}): RoomEntry {
  const at = new Date(NOW).toISOString();
  return {
    id: ROOM,
    name: 'Kitchen',
    type: 'group',
    broadcastMode: false,
    policy: 'mention',
    agentCommandRole: 'member',
    approveRole: 'member',
    createdById: 'ada',
    createdAt: at,
    updatedAt: at,
    notificationPref: 'all',
    role: 'member',
    members: [],
    unread: 0,
    mentions: 0,
    ...fields,
  };
}

/** State of the signed-in user Ada with one room. */
export const signedIn: ChatState = after(
  emptyState,
  { type: 'SIGNED_IN', id: 'ada', names: ['Ada Lovelace', 'ada'] },
  { type: 'ROOMS_LOADED', rooms: [room()] },
);

export function after(state: ChatState, ...actions: ChatAction[]): ChatState {
  return actions.reduce((next, action) => reduce(next, action, NOW), state);
}

export function receive(state: ChatState, ...frames: ServerFrame[]): ChatState {
  return frames.reduce((next, frame) => after(next, ...translate(frame, NOW)), state);
}

export function messagesOf(state: ChatState): ChatMessage[] {
  return state.chats[ROOM]?.messages ?? [];
}

export function only(state: ChatState): ChatMessage {
  const [first, ...others] = messagesOf(state);
  if (first === undefined || others.length > 0) throw new Error(`${others.length + 1} messages`);
  return first;
}

/** Replies of agents in the room. */
export function repliesOf(state: ChatState): Reply[] {
  return messagesOf(state).filter(isReply);
}

export function onlyReply(state: ChatState): Reply {
  const message = only(state);
  if (!isReply(message)) throw new Error(`${message.id} is not a reply`);
  return message;
}
