/** Operations on the message list of a room: insert in log order, replace, merge pages of the history. */
import type { ChatMessage } from './message';
import type { RoomChat } from './state';

/** Inserts a message in log order. It replaces a message with the same id, or its own unsent copy. */
export function put(messages: ChatMessage[], message: ChatMessage): ChatMessage[] {
  const known = messages.findLastIndex((other) => isSame(other, message));
  const before = messages[known];
  const merged = before === undefined ? message : { ...liveFields(before), ...message };
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

/** Inserts a page of the history in log order. */
export function merge(messages: ChatMessage[], page: ChatMessage[]): ChatMessage[] {
  const ids = new Set(page.map((message) => message.id));
  const sent = new Set(page.map((message) => message.clientMessageId).filter((id) => id !== undefined));
  const kept = messages.filter(
    (other) => !ids.has(other.id) && !(other.sending !== undefined && sent.has(other.clientMessageId ?? '')),
  );
  const before = new Map(messages.map((message) => [message.id, message]));
  const fresh = page.map((message) => ({ ...liveFields(before.get(message.id)), ...message }));
  return [...kept, ...fresh].sort((a, b) => (a.seq ?? Infinity) - (b.seq ?? Infinity));
}

/** Edits the message with this id, if the room has one. */
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
  // A placeholder holds the events of a run that arrived before the id of its reply.
  return isPlaceholder(other) && other.from === message.from && message.role === 'agent';
}

/**
 * The id of a reply is unknown before its first chunk. Earlier cards are kept in a message with a placeholder
 * id.
 */
export function isPlaceholder(message: ChatMessage): boolean {
  return message.isGenerating === true && message.id.startsWith('reply-of:');
}

export function placeholderId(roomId: string, agentId: string): string {
  return `reply-of:${roomId}:${agentId}`;
}

/** Fields of a live reply that its message in the history lacks, such as its cards. */
function liveFields(message: ChatMessage | undefined): Partial<ChatMessage> {
  if (message === undefined) return {};
  const { plan, askUser, changeReport, modelFallback, usage, subagentTree, contextTokens, messageCount } = message;
  const { durationMs, content, finalizedTask } = message;
  const cards = { plan, askUser, changeReport, modelFallback, usage, subagentTree, contextTokens };
  const kept = { ...cards, finalizedTask, messageCount, durationMs, content };
  return defined(kept);
}

/** The fields that have a value, for spreading over an object without erasing its values. */
export function defined<T extends object>(fields: T | undefined): Partial<T> {
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([, value]) => value !== undefined)) as Partial<T>;
}
