/** What happens to a reply while an agent gives it. */
import type { ActionOf, ChatAction, ReplyRef } from './actions';
import { change, isUnnamed, put, unnamedId } from './messages';
import type { ChatMessage, ContentBlock, RoomChat, SubagentTreeEntry, ToolBlock } from './state';

/** So that a tool that prints without end costs no more than this. */
const MOST_PROGRESS = 200;

export function reply(chat: RoomChat, action: ChatAction & ReplyRef, now: number): RoomChat {
  if (action.type === 'FINALIZE_MESSAGE') return finalize(chat, action);
  // A card may come after the end of its turn; it belongs to what was said last.
  const late = isCard(action.type) ? latest(chat, action) : undefined;
  const target = ofRun(chat, action) ?? current(chat, action) ?? late;
  if (target !== undefined) {
    // Complete: it has all that was streamed, and more of the stream would say it twice.
    if (target.seq !== undefined && isStream(action.type)) return chat;
    const named = rename(target, action);
    const edited = edit(named, action, now);
    return { ...chat, messages: chat.messages.with(chat.messages.indexOf(target), edited) };
  }
  // What people decided about a plan of long ago begins no reply.
  if (action.type === 'SET_PLAN' && (action.plan.status === 'approved' || action.plan.status === 'rejected')) return chat;
  return { ...chat, messages: put(chat.messages, edit(begin(action, now), action, now)) };
}

function isCard(type: ChatAction['type']): boolean {
  return type === 'SET_CHANGE_REPORT' || type === 'SET_CONTEXT_USAGE' || type === 'SET_ASK_USER';
}

function isStream(type: ChatAction['type']): boolean {
  return ['BEGIN_REPLY', 'APPEND_TOKEN', 'SET_THINKING', 'SET_ACTIVITY', 'PUSH_TEXT_SEGMENT'].includes(type);
}

/** The reply that is being given; a named one also when it is over. */
function current(chat: RoomChat, { agentId, messageId }: ReplyRef): ChatMessage | undefined {
  const named = messageId === undefined ? undefined : chat.messages.findLast((one) => one.id === messageId);
  if (named !== undefined) return named;
  const given = (one: ChatMessage) => one.isGenerating === true && one.from === agentId;
  return chat.messages.findLast((one) => given(one) && (messageId === undefined || isUnnamed(one)));
}

/** A plan is decided about when the turn that made it is over. */
function ofRun(chat: RoomChat, action: ChatAction): ChatMessage | undefined {
  if (action.type !== 'SET_PLAN' || action.runId === undefined) return undefined;
  return chat.messages.findLast((one) => one.runId === action.runId);
}

function latest(chat: RoomChat, { agentId }: ReplyRef): ChatMessage | undefined {
  return chat.messages.findLast((one) => one.from === agentId && one.role === 'agent');
}

/** The first that is heard of a turn may know neither the id of the reply nor what its agent is called. */
function rename(message: ChatMessage, { messageId, agentName }: ReplyRef): ChatMessage {
  const id = messageId !== undefined && isUnnamed(message) ? messageId : message.id;
  const senderName = agentName !== undefined && message.senderName === message.from ? agentName : message.senderName;
  return id === message.id && senderName === message.senderName ? message : { ...message, id, senderName };
}

function begin({ roomId, agentId, agentName, messageId }: ReplyRef, now: number): ChatMessage {
  return {
    role: 'agent',
    id: messageId ?? unnamedId(roomId, agentId),
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

function edit(message: ChatMessage, action: ChatAction, now: number): ChatMessage {
  switch (action.type) {
    case 'BEGIN_REPLY': {
      const { content: _, activityEntries: __, activitySummary: ___, toolCount: ____, ...kept } = message;
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
      return { ...message, content: [...blocks(message), { type: 'error', text: action.text }] };
    case 'SET_CONTEXT_USAGE': {
      const { contextTokens = message.contextTokens, messageCount = message.messageCount } = action;
      return { ...message, contextTokens, messageCount, usage: { ...message.usage, ...action.usage } };
    }
    case 'ADD_SUBAGENT': {
      const others = (message.subagentTree ?? []).filter((entry) => entry.id !== action.entry.id);
      return { ...message, subagentTree: [...others, action.entry] };
    }
    case 'MARK_SUBAGENT_DONE': {
      const { status, result } = action;
      return subagent(message, action.subagentId, ({ activity: _, ...entry }) => ({ ...entry, status, result }));
    }
    case 'SET_SUBAGENT_ACTIVITY':
      return subagent(message, action.subagentId, (entry) => ({ ...entry, activity: action.activity }));
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
  const all = blocks(message);
  const last = all.at(-1);
  const thought: ContentBlock =
    last?.type === 'thinking'
      ? { ...last, text: last.text + action.token }
      : { type: 'thinking', text: action.token };
  const content = last?.type === 'thinking' ? all.with(-1, thought) : [...all, thought];
  return { ...message, content, isThinking: true, durationMs };
}

/** A finished part of the text; what was streamed of it already is not said twice. */
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
    activityEntries: [...(message.activityEntries ?? []), tool.name],
    toolCount: (message.toolCount ?? 0) + 1,
    content: [...blocks(message), block],
  };
}

/** Without an id the activity as a whole is over. */
function activityDone(message: ChatMessage, action: ActionOf<'ACTIVITY_DONE'>): ChatMessage {
  const { toolId, output, isError } = action;
  if (toolId === undefined) return { ...message, activitySummary: undefined };
  const done = (block: ToolBlock): ToolBlock => ({ ...block, output, isError, isRunning: false });
  return tool({ ...message, activitySummary: undefined }, (block) => block.id === toolId, done);
}

function toolProgress(message: ChatMessage, action: ActionOf<'TOOL_PROGRESS'>): ChatMessage {
  return tool(
    message,
    (block) => block.name === action.tool && block.isRunning,
    (block) => ({ ...block, progress: [...block.progress, action.line].slice(-MOST_PROGRESS) }),
  );
}

function tool(
  message: ChatMessage,
  isMeant: (block: ToolBlock) => boolean,
  edited: (block: ToolBlock) => ToolBlock,
): ChatMessage {
  const all = blocks(message);
  const at = all.findLastIndex((block) => block.type === 'tool' && isMeant(block));
  const found = all[at];
  return found?.type === 'tool' ? { ...message, content: all.with(at, edited(found)) } : message;
}

function subagent(
  message: ChatMessage,
  id: string,
  edited: (entry: SubagentTreeEntry) => SubagentTreeEntry,
): ChatMessage {
  const tree = message.subagentTree?.map((entry) => (entry.id === id ? edited(entry) : entry));
  return tree === undefined ? message : { ...message, subagentTree: tree };
}

function finalize(chat: RoomChat, action: ActionOf<'FINALIZE_MESSAGE'>): RoomChat {
  const target = current(chat, action);
  if (target === undefined) return chat;
  // Nothing but a beginning was heard of it.
  const isEmpty = target.text === '' && target.content === undefined && target.plan === undefined;
  if (isEmpty && isUnnamed(target)) {
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

function blocks(message: ChatMessage): ContentBlock[] {
  return message.content ?? [];
}
