/** The part of the reducer for replies: finds the reply that an action concerns, or starts one, and ends it. */
import type { ActionOf, ChatAction, ReplyRef } from './actions';
import { isReply, isStoredReply, isStreaming, type ChatMessage, type Reply, type StoredReply, type StreamingReply } from './message';
import { isPlaceholder, placeholderId, put, replace } from './messages';
import { applyPart, applyStream, isStream } from './replyParts';
import type { RoomChat } from './state';

export function reduceReply(chat: RoomChat, action: ChatAction & ReplyRef, now: number): RoomChat {
  if (action.type === 'FINALIZE_MESSAGE') return finalize(chat, action);
  const target = targetOf(chat, action);
  if (target !== undefined) {
    const named = withIdentity(target, action);
    if (!isStream(action)) return replace(chat, target, applyPart(named, action));
    // The reply is complete. Applying late chunks would duplicate its text.
    return named.state === 'stored' ? chat : replace(chat, target, applyStream(named, action, now));
  }
  // A decision about a plan whose reply is not loaded must not start a new reply.
  if (action.type === 'SET_PLAN' && (action.plan.status === 'approved' || action.plan.status === 'rejected')) return chat;
  const started = newReply(action, now);
  const reply = isStream(action) ? applyStream(started, action, now) : applyPart(started, action);
  return { ...chat, messages: put(chat.messages, reply) };
}

function targetOf(chat: RoomChat, action: ChatAction & ReplyRef): Reply | undefined {
  // A plan is decided after its run has ended, so that its reply is found by the run.
  const ofRun = action.type === 'SET_PLAN' && action.runId !== undefined ? replyOfRun(chat, action.runId) : undefined;
  // A card may arrive after the end of its run. It belongs to the last message of the agent.
  return ofRun ?? currentReply(chat, action) ?? (isLateCard(action) ? latestReply(chat, action) : undefined);
}

function isLateCard({ type }: ChatAction): boolean {
  return type === 'SET_CHANGE_REPORT' || type === 'SET_CONTEXT_USAGE' || type === 'SET_ASK_USER';
}

/** The streaming reply of the agent, or the reply with the given id, finished or not. */
function currentReply(chat: RoomChat, { agentId, messageId }: ReplyRef): Reply | undefined {
  const hasId = (other: ChatMessage): other is Reply => isReply(other) && other.id === messageId;
  const isCurrent = (other: ChatMessage): other is StreamingReply =>
    isStreaming(other) && other.from === agentId && (messageId === undefined || isPlaceholder(other));
  return chat.messages.findLast(hasId) ?? chat.messages.findLast(isCurrent);
}

export function replyOfRun(chat: RoomChat, runId: string): StoredReply | undefined {
  return chat.messages.findLast((other): other is StoredReply => isStoredReply(other) && other.runId === runId);
}

function latestReply(chat: RoomChat, { agentId }: ReplyRef): Reply | undefined {
  return chat.messages.findLast((other): other is Reply => isReply(other) && other.from === agentId);
}

/** Sets the message id and the agent's name, which the first event of a run may lack. */
function withIdentity<T extends Reply>(reply: T, { messageId, agentName }: ReplyRef): T {
  const id = messageId !== undefined && isPlaceholder(reply) ? messageId : reply.id;
  const senderName = agentName !== undefined && reply.senderName === reply.from ? agentName : reply.senderName;
  return id === reply.id && senderName === reply.senderName ? reply : { ...reply, id, senderName };
}

function newReply({ roomId, agentId, agentName, messageId }: ReplyRef, now: number): StreamingReply {
  return {
    state: 'streaming',
    role: 'agent',
    id: messageId ?? placeholderId(roomId, agentId),
    roomId,
    from: agentId,
    senderName: agentName ?? agentId,
    senderType: 'agent',
    text: '',
    content: [],
    timestamp: new Date(now).toISOString(),
    timestampMs: now,
    isThinking: false,
  };
}

function finalize(chat: RoomChat, action: ActionOf<'FINALIZE_MESSAGE'>): RoomChat {
  const target = currentReply(chat, action);
  if (target?.state !== 'streaming') return chat;
  // The run produced no output: remove its placeholder.
  const isEmpty = target.text === '' && target.content.length === 0 && target.plan === undefined;
  if (isEmpty && isPlaceholder(target)) {
    return { ...chat, messages: chat.messages.filter((message) => message !== target) };
  }
  const { isThinking: _, activitySummary: __, ...reply } = target;
  const content = reply.content.map((block) => (block.type === 'tool' ? { ...block, isRunning: false } : block));
  const durationMs = action.durationMs ?? reply.durationMs;
  return replace(chat, target, { ...reply, state: 'ended', content, durationMs });
}
