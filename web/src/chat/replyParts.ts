/** Applies actions to one reply: text and activity while it streams, and its tool calls and cards at any time. */
import type { ActionOf, ChatAction } from './actions';
import type { EndedReply, Reply, StreamingReply } from './message';
import { defined } from './messages';
import type { ContentBlock, SubagentTreeEntry, ToolBlock } from './parts';

/** Maximum number of progress lines kept per tool call. */
const MAX_PROGRESS_LINES = 200;

const STREAM = ['BEGIN_REPLY', 'APPEND_TOKEN', 'SET_THINKING', 'SET_ACTIVITY', 'PUSH_TEXT_SEGMENT'] as const;
type StreamAction = ActionOf<(typeof STREAM)[number]>;
type OpenReply = StreamingReply | EndedReply;

/** Whether the action is a part of the reply's stream, which a stored reply already contains. */
export function isStream(action: ChatAction): action is StreamAction {
  return STREAM.some((type) => type === action.type);
}

export function applyStream(reply: OpenReply, action: StreamAction, now: number): OpenReply {
  switch (action.type) {
    case 'BEGIN_REPLY':
      // The hub sends the reply again from its first chunk.
      return { isThinking: false, ...reply, state: 'streaming', text: '', content: [], activitySummary: undefined };
    case 'APPEND_TOKEN':
      return appendToken({ ...reply, durationMs: now - reply.timestampMs }, action);
    case 'SET_THINKING':
      return withActivity(reply, { isThinking: action.isThinking });
    case 'PUSH_TEXT_SEGMENT':
      return pushSegment(reply, action.text);
    case 'SET_ACTIVITY':
      return setActivity(reply, action);
  }
}

export function applyPart<T extends Reply>(reply: T, action: ChatAction): T {
  switch (action.type) {
    case 'ACTIVITY_DONE':
      return activityDone(withActivity(reply, { activitySummary: undefined }), action);
    case 'TOOL_PROGRESS':
      return toolProgress(reply, action);
    case 'APPEND_ERROR':
      return { ...reply, content: [...reply.content, { type: 'error', text: action.text }] };
    case 'SET_CONTEXT_USAGE': {
      const { contextTokens = reply.contextTokens, messageCount = reply.messageCount } = action;
      return { ...reply, contextTokens, messageCount, usage: { ...reply.usage, ...defined(action.usage) } };
    }
    case 'ADD_SUBAGENT': {
      const others = (reply.subagentTree ?? []).filter((entry) => entry.id !== action.entry.id);
      return { ...reply, subagentTree: [...others, action.entry] };
    }
    case 'MARK_SUBAGENT_DONE': {
      const { status, result } = action;
      return editSubagent(reply, action.subagentId, ({ activity: _, ...entry }) => ({ ...entry, status, result }));
    }
    case 'SET_SUBAGENT_ACTIVITY':
      return editSubagent(reply, action.subagentId, (entry) => ({ ...entry, activity: action.activity }));
    case 'SET_PLAN':
      return { ...reply, plan: action.plan };
    case 'SET_ASK_USER':
      return { ...reply, askUser: action.askUser };
    case 'SET_MODEL_FALLBACK':
      return { ...reply, modelFallback: action.modelFallback };
    case 'SET_CHANGE_REPORT':
      return { ...reply, changeReport: action.changeReport };
    default:
      return reply;
  }
}

type Activity = Pick<StreamingReply, 'isThinking' | 'activitySummary'>;

/** Only a streaming reply has an activity. */
function withActivity<T extends Reply>(reply: T, activity: Partial<Activity>): T {
  return reply.state === 'streaming' ? { ...reply, ...activity } : reply;
}

function appendToken(reply: OpenReply, { token, thinking }: ActionOf<'APPEND_TOKEN'>): OpenReply {
  if (!thinking) {
    return withActivity({ ...reply, text: reply.text + token }, { isThinking: false, activitySummary: undefined });
  }
  const last = reply.content.at(-1);
  const isContinued = last?.type === 'thinking';
  const thought: ContentBlock = { type: 'thinking', text: isContinued ? last.text + token : token };
  const content = isContinued ? reply.content.with(-1, thought) : [...reply.content, thought];
  return withActivity({ ...reply, content }, { isThinking: true });
}

/** Appends a finished text segment, unless it was already streamed. */
function pushSegment(reply: OpenReply, text: string): OpenReply {
  if (reply.text.endsWith(text)) return reply;
  const joint = reply.text === '' ? '' : '\n\n';
  return withActivity({ ...reply, text: reply.text + joint + text }, { isThinking: false });
}

function setActivity(reply: OpenReply, { summary, tool }: ActionOf<'SET_ACTIVITY'>): OpenReply {
  const shown = summary ?? tool?.name;
  if (tool === undefined) return shown === undefined ? reply : withActivity(reply, { activitySummary: shown });
  const block: ToolBlock = { type: 'tool', ...tool, isRunning: true, progress: [] };
  return withActivity({ ...reply, content: [...reply.content, block] }, { isThinking: false, activitySummary: shown });
}

/** Ends one tool call. Without a tool id only the current activity has ended. */
function activityDone<T extends Reply>(reply: T, { toolId, output, isError }: ActionOf<'ACTIVITY_DONE'>): T {
  if (toolId === undefined) return reply;
  const done = (block: ToolBlock): ToolBlock => ({ ...block, output, isError, isRunning: false });
  return editTool(reply, (block) => block.id === toolId, done);
}

function toolProgress<T extends Reply>(reply: T, action: ActionOf<'TOOL_PROGRESS'>): T {
  return editTool(
    reply,
    (block) => block.name === action.tool && block.isRunning,
    (block) => ({ ...block, progress: [...block.progress, action.line].slice(-MAX_PROGRESS_LINES) }),
  );
}

function editTool<T extends Reply>(
  reply: T,
  matches: (block: ToolBlock) => boolean,
  edited: (block: ToolBlock) => ToolBlock,
): T {
  const at = reply.content.findLastIndex((block) => block.type === 'tool' && matches(block));
  const found = reply.content[at];
  return found?.type === 'tool' ? { ...reply, content: reply.content.with(at, edited(found)) } : reply;
}

function editSubagent<T extends Reply>(
  reply: T,
  id: string,
  edited: (entry: SubagentTreeEntry) => SubagentTreeEntry,
): T {
  const tree = reply.subagentTree?.map((entry) => (entry.id === id ? edited(entry) : entry));
  return tree === undefined ? reply : { ...reply, subagentTree: tree };
}
