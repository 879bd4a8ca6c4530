/** Operations on the message list of a room: insert in log order, replace, merge pages of the history. */
import { clientIdOf, isReply, isUnsent, type ChatMessage, type Reply, type ReplyCards } from './message';
import type { RoomChat } from './state';

/** Inserts a message in log order. It replaces a message with the same id, or its own unsent copy. */
export function put(messages: ChatMessage[], message: ChatMessage): ChatMessage[] {
  const known = messages.findLastIndex((other) => isSame(other, message));
  const before = messages[known];
  const merged = withCardsOf(before, message);
  if (before !== undefined && seqOf(before) === seqOf(message)) return messages.with(known, merged);
  const others = before === undefined ? messages : messages.toSpliced(known, 1);
  return insert(others, merged);
}

export function insert(messages: ChatMessage[], message: ChatMessage): ChatMessage[] {
  let at = messages.length;
  while (at > 0 && orderOf(messages[at - 1]) > orderOf(message)) at -= 1;
  return messages.toSpliced(at, 0, message);
}

/** Inserts a page of the history in log order. */
export function merge(messages: ChatMessage[], page: ChatMessage[]): ChatMessage[] {
  const ids = new Set(page.map((message) => message.id));
  const sent = new Set(page.map(clientIdOf));
  const kept = messages.filter((other) => !ids.has(other.id) && !(isUnsent(other) && sent.has(other.clientMessageId)));
  const before = new Map(messages.map((message) => [message.id, message]));
  const fresh = page.map((message) => withCardsOf(before.get(message.id), message));
  return [...kept, ...fresh].sort((a, b) => orderOf(a) - orderOf(b));
}

/** Replaces one message of the room with an edited version. */
export function replace(chat: RoomChat, message: ChatMessage, edited: ChatMessage): RoomChat {
  return { ...chat, messages: chat.messages.with(chat.messages.indexOf(message), edited) };
}

function isSame(other: ChatMessage, message: ChatMessage): boolean {
  if (other.id === message.id) return true;
  if (isUnsent(other)) return other.clientMessageId === clientIdOf(message);
  // A placeholder holds the events of a run that arrived before the id of its reply.
  return isPlaceholder(other) && isReply(message) && other.from === message.from;
}

/**
 * The id of a reply is unknown before its first chunk. Earlier cards are kept in a message with a placeholder
 * id.
 */
export function isPlaceholder(message: ChatMessage): boolean {
  return message.state === 'streaming' && message.id.startsWith('reply-of:');
}

export function placeholderId(roomId: string, agentId: string): string {
  return `reply-of:${roomId}:${agentId}`;
}

function seqOf(message: ChatMessage): number | undefined {
  return message.state === 'stored' ? message.seq : undefined;
}

/** Messages that are not stored come last. */
function orderOf(message: ChatMessage | undefined): number {
  return message?.state === 'stored' ? message.seq : Infinity;
}

/** Adds the cards of an earlier version of a reply, and its content if the new version has none. */
function withCardsOf(before: ChatMessage | undefined, message: ChatMessage): ChatMessage {
  if (before === undefined || !isReply(before) || !isReply(message)) return message;
  const content = message.content.length > 0 ? message.content : before.content;
  return { ...cardsOf(before), ...message, content };
}

function cardsOf(reply: Reply): ReplyCards {
  const { plan, askUser, changeReport, modelFallback, subagentTree, finalizedTask } = reply;
  const { usage, contextTokens, messageCount, durationMs } = reply;
  const cards = { plan, askUser, changeReport, modelFallback, subagentTree, finalizedTask };
  return defined({ ...cards, usage, contextTokens, messageCount, durationMs });
}

/** The fields that have a value, for spreading over an object without erasing its values. */
export function defined<T extends object>(fields: T | undefined): Partial<T> {
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([, value]) => value !== undefined)) as Partial<T>;
}
