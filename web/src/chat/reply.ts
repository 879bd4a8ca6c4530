/** The part of the reducer for streaming replies: text, activity, cards, and the end of the run. */
import type { ActionOf, ChatAction, ReplyRef } from './actions';
import { change, defined, isPlaceholder, put, placeholderId } from './messages';
import type { ChatMessage, ContentBlock, SubagentTreeEntry, ToolBlock } from './message';
import type { RoomChat } from './state';

/** Maximum number of progress lines kept per tool call. */
const MAX_PROGRESS_LINES = 200;

export function reduceReply(chat: RoomChat, action: ChatAction & ReplyRef, now: number): RoomChat {
  if (action.type === 'FINALIZE_MESSAGE') return finalize(chat, action);
  // A card may arrive after the end of its run. It belongs to the last message of the agent.
  const late = isCard(action.type) ? latestReply(chat, action) : undefined;
  const target = replyOfRun(chat, action) ?? currentReply(chat, action) ?? late;
  if (target !== undefined) {
    // The reply is complete. Applying late chunks would duplicate its text.
    if (target.seq !== undefined && isStream(action.type)) return chat;
    const named = withIdentity(target, action);
    const edited = applyAction(named, action, now);
    return { ...chat, messages: chat.messages.with(chat.messages.indexOf(target), edited) };
  }
  // A decision about a plan whose reply is not loaded must not start a new reply.
  if (action.type === 'SET_PLAN' && (action.plan.status === 'approved' || action.plan.status === 'rejected')) return chat;
  return { ...chat, messages: put(chat.messages, applyAction(newReply(action, now), action, now)) };
}

function isCard(type: ChatAction['type']): boolean {
  return type === 'SET_CHANGE_REPORT' || type === 'SET_CONTEXT_USAGE' || type === 'SET_ASK_USER';
}

function isStream(type: ChatAction['type']): boolean {
  return ['BEGIN_REPLY', 'APPEND_TOKEN', 'SET_THINKING', 'SET_ACTIVITY', 'PUSH_TEXT_SEGMENT'].includes(type);
}

/** The streaming reply of the agent, or the message with the given id, finished or not. */
function currentReply(chat: RoomChat, { agentId, messageId }: ReplyRef): ChatMessage | undefined {
  const named = messageId === undefined ? undefined : chat.messages.findLast((other) => other.id === messageId);
  if (named !== undefined) return named;
  const isStreamingReply = (other: ChatMessage) => other.isGenerating === true && other.from === agentId;
  return chat.messages.findLast((other) => isStreamingReply(other) && (messageId === undefined || isPlaceholder(other)));
}

/** Finds the reply of a plan by its run: plans are decided after the run has ended. */
function replyOfRun(chat: RoomChat, action: ChatAction): ChatMessage | undefined {
  if (action.type !== 'SET_PLAN' || action.runId === undefined) return undefined;
  return chat.messages.findLast((other) => other.runId === action.runId);
}

function latestReply(chat: RoomChat, { agentId }: ReplyRef): ChatMessage | undefined {
  return chat.messages.findLast((other) => other.from === agentId && other.role === 'agent');
}

/** Sets the message id and the agent's name, which the first event of a run may lack. */
function withIdentity(message: ChatMessage, { messageId, agentName }: ReplyRef): ChatMessage {
  const id = messageId !== undefined && isPlaceholder(message) ? messageId : message.id;
  const senderName = agentName !== undefined && message.senderName === message.from ? agentName : message.senderName;
  return id === message.id && senderName === message.senderName ? message : { ...message, id, senderName };
}

function newReply({ roomId, agentId, agentName, messageId }: ReplyRef, now: number): ChatMessage {
  return {
    role: 'agent',
    id: messageId ?? placeholderId(roomId, agentId),
    roomId,
    from: agentId,
    senderName: agentName ?? agentId,
    senderType: 'agent',
    text: '',
    timestamp: new Date(now).toISOString(),
    timestampMs: now,
    isGenerating: true,
    mentions: [],
    attachments: [],
    reactions: [],
  };
}

function applyAction(message: ChatMessage, action: ChatAction, now: number): ChatMessage {
  switch (action.type) {
    case 'BEGIN_REPLY': {
      const { content: _, activitySummary: __, ...kept } = message;
      return { ...kept, text: '', isGenerating: true };
    }
    case 'APPEND_TOKEN':
      return appendToken(message, action, now);
    case 'SET_THINKING':
      return { ...message, isThinking: action.isThinking };
    case 'PUSH_TEXT_SEGMENT':
      return pushSegment(message, action.text);
    case 'SET_ACTIVITY':
      return setActivity(message, action);
    case 'ACTIVITY_DONE':
      return activityDone(message, action);
    case 'TOOL_PROGRESS':
      return toolProgress(message, action);
    case 'APPEND_ERROR':
      return { ...message, content: [...contentBlocks(message), { type: 'error', text: action.text }] };
    case 'SET_CONTEXT_USAGE': {
      const { contextTokens = message.contextTokens, messageCount = message.messageCount } = action;
      return { ...message, contextTokens, messageCount, usage: { ...message.usage, ...defined(action.usage) } };
    }
    case 'ADD_SUBAGENT': {
      const others = (message.subagentTree ?? []).filter((entry) => entry.id !== action.entry.id);
      return { ...message, subagentTree: [...others, action.entry] };
    }
    case 'MARK_SUBAGENT_DONE': {
      const { status, result } = action;
      return editSubagent(message, action.subagentId, ({ activity: _, ...entry }) => ({ ...entry, status, result }));
    }
    case 'SET_SUBAGENT_ACTIVITY':
      return editSubagent(message, action.subagentId, (entry) => ({ ...entry, activity: action.activity }));
    case 'SET_PLAN':
      return { ...message, plan: action.plan };
    case 'SET_ASK_USER':
      return { ...message, askUser: action.askUser };
    case 'SET_MODEL_FALLBACK':
      return { ...message, modelFallback: action.modelFallback };
    case 'SET_CHANGE_REPORT':
      return { ...message, changeReport: action.changeReport };
    default:
      return message;
  }
}

function appendToken(message: ChatMessage, action: ActionOf<'APPEND_TOKEN'>, now: number): ChatMessage {
  const durationMs = now - message.timestampMs;
  if (!action.thinking) {
    const text = message.text + action.token;
    return { ...message, text, isThinking: false, durationMs, activitySummary: undefined };
  }
  const all = contentBlocks(message);
  const last = all.at(-1);
  const thought: ContentBlock =
    last?.type === 'thinking'
      ? { ...last, text: last.text + action.token }
      : { type: 'thinking', text: action.token };
  const content = last?.type === 'thinking' ? all.with(-1, thought) : [...all, thought];
  return { ...message, content, isThinking: true, durationMs };
}

/** Appends a finished text segment, unless it was already streamed. */
function pushSegment(message: ChatMessage, text: string): ChatMessage {
  if (message.text.endsWith(text)) return message;
  const joint = message.text === '' ? '' : '\n\n';
  return { ...message, text: message.text + joint + text, isThinking: false };
}

function setActivity(message: ChatMessage, { summary, tool }: ActionOf<'SET_ACTIVITY'>): ChatMessage {
  const shown = summary ?? tool?.name ?? message.activitySummary;
  if (tool === undefined) return { ...message, activitySummary: shown };
  const block: ToolBlock = { type: 'tool', ...tool, isRunning: true, progress: [] };
  return {
    ...message,
    isThinking: false,
    activitySummary: shown,
    content: [...contentBlocks(message), block],
  };
}

/** Ends one tool call, or without a tool id the current activity. */
function activityDone(message: ChatMessage, action: ActionOf<'ACTIVITY_DONE'>): ChatMessage {
  const { toolId, output, isError } = action;
  if (toolId === undefined) return { ...message, activitySummary: undefined };
  const done = (block: ToolBlock): ToolBlock => ({ ...block, output, isError, isRunning: false });
  return editTool({ ...message, activitySummary: undefined }, (block) => block.id === toolId, done);
}

function toolProgress(message: ChatMessage, action: ActionOf<'TOOL_PROGRESS'>): ChatMessage {
  return editTool(
    message,
    (block) => block.name === action.tool && block.isRunning,
    (block) => ({ ...block, progress: [...block.progress, action.line].slice(-MAX_PROGRESS_LINES) }),
  );
}

function editTool(
  message: ChatMessage,
  matches: (block: ToolBlock) => boolean,
  edited: (block: ToolBlock) => ToolBlock,
): ChatMessage {
  const all = contentBlocks(message);
  const at = all.findLastIndex((block) => block.type === 'tool' && matches(block));
  const found = all[at];
  return found?.type === 'tool' ? { ...message, content: all.with(at, edited(found)) } : message;
}

function editSubagent(
  message: ChatMessage,
  id: string,
  edited: (entry: SubagentTreeEntry) => SubagentTreeEntry,
): ChatMessage {
  const tree = message.subagentTree?.map((entry) => (entry.id === id ? edited(entry) : entry));
  return tree === undefined ? message : { ...message, subagentTree: tree };
}

function finalize(chat: RoomChat, action: ActionOf<'FINALIZE_MESSAGE'>): RoomChat {
  const target = currentReply(chat, action);
  if (target === undefined) return chat;
  // The run produced no output: remove its placeholder.
  const isEmpty = target.text === '' && target.content === undefined && target.plan === undefined;
  if (isEmpty && isPlaceholder(target)) {
    return { ...chat, messages: chat.messages.filter((message) => message !== target) };
  }
  return change(chat, target.id, (message) => ({
    ...message,
    isGenerating: false,
    isThinking: false,
    activitySummary: undefined,
    durationMs: action.durationMs ?? message.durationMs,
    content: message.content?.map((block) => (block.type === 'tool' ? { ...block, isRunning: false } : block)),
  }));
}

function contentBlocks(message: ChatMessage): ContentBlock[] {
  return message.content ?? [];
}
