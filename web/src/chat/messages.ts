/** The list of messages of a room: where each belongs, and how one takes the place of another. */
import type { ChatMessage, RoomChat } from './state';

/** Puts a message where it belongs; one with the same id, or the unsent one it was, makes way for it. */
export function put(messages: ChatMessage[], message: ChatMessage): ChatMessage[] {
  const known = messages.findLastIndex((other) => isSame(other, message));
  const before = messages[known];
  const merged = before === undefined ? message : { ...carriedOver(before), ...message };
  if (before !== undefined && before.seq === message.seq) return messages.with(known, merged);
  const others = before === undefined ? messages : messages.toSpliced(known, 1);
  return insert(others, merged);
}

export function insert(messages: ChatMessage[], message: ChatMessage): ChatMessage[] {
  const { seq } = message;
  if (seq === undefined) return [...messages, message];
  let at = messages.length;
  while (at > 0 && (messages[at - 1]?.seq ?? Infinity) > seq) at -= 1;
  return messages.toSpliced(at, 0, message);
}

/** Puts a whole page where it belongs. */
export function merge(messages: ChatMessage[], page: ChatMessage[]): ChatMessage[] {
  const ids = new Set(page.map((message) => message.id));
  const sent = new Set(page.map((message) => message.clientMessageId).filter((id) => id !== undefined));
  const kept = messages.filter(
    (other) => !ids.has(other.id) && !(other.sending !== undefined && sent.has(other.clientMessageId ?? '')),
  );
  const before = new Map(messages.map((message) => [message.id, message]));
  const fresh = page.map((message) => ({ ...carriedOver(before.get(message.id)), ...message }));
  return [...kept, ...fresh].sort((a, b) => (a.seq ?? Infinity) - (b.seq ?? Infinity));
}

/** Replaces the message of this id; nothing changes where there is none. */
export function change(
  chat: RoomChat,
  messageId: string,
  edit: (message: ChatMessage) => ChatMessage,
): RoomChat {
  const at = chat.messages.findLastIndex((message) => message.id === messageId);
  const message = chat.messages[at];
  return message === undefined ? chat : { ...chat, messages: chat.messages.with(at, edit(message)) };
}

function isSame(other: ChatMessage, message: ChatMessage): boolean {
  if (other.id === message.id) return true;
  const sent = message.clientMessageId;
  if (sent !== undefined && other.sending !== undefined && other.clientMessageId === sent) return true;
  // What was heard of a turn before its reply had a name.
  return isUnnamed(other) && other.from === message.from && message.role === 'agent';
}

/** Before its first piece the id of a reply is not known; cards that come earlier wait under one of our own. */
export function isUnnamed(message: ChatMessage): boolean {
  return message.isGenerating === true && message.id.startsWith('reply-of:');
}

export function unnamedId(roomId: string, agentId: string): string {
  return `reply-of:${roomId}:${agentId}`;
}

/** The cards of a reply, which its text in the history does not have. */
function carriedOver(message: ChatMessage | undefined): Partial<ChatMessage> {
  if (message === undefined) return {};
  const { plan, askUser, changeReport, modelFallback, usage, subagentTree, contextTokens, messageCount } = message;
  const { durationMs, content, toolCount, finalizedTask } = message;
  const cards = { plan, askUser, changeReport, modelFallback, usage, subagentTree, contextTokens };
  const kept = { ...cards, finalizedTask, messageCount, durationMs, content, toolCount };
  return Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined));
}
