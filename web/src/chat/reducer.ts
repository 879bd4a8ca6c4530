/** The chat reducer: a pure function from a state and an action to the next state. */
import type { ActionOf, ChatAction } from './actions';
import { isReply, isStored, isUnsent, type ChatMessage, type SendingMessage, type StoredMessage, type UnsentMessage } from './message';
import { defined, merge, put, replace } from './messages';
import { reduceReply, replyOfRun } from './reply';
import { countMessage, reduceRooms } from './rooms';
import { emptyChat, emptyState, type ChatState, type RoomChat } from './state';
import { isAfter } from './position';
import type { Task } from '../generated/api';

/** Maximum characters of terminal output kept per agent. */
const MAX_TERMINAL_CHARS = 20_000;
/** Maximum number of approvals kept per room. */
const MAX_PERMISSIONS = 50;

/** `now` is a parameter, so that the same actions always produce the same state. */
export function reduce(state: ChatState, action: ChatAction, now: number): ChatState {
  switch (action.type) {
    case 'CONNECTION':
      return { ...state, connection: action.connection };
    case 'SIGNED_IN':
      return { ...state, me: { id: action.id, names: action.names } };
    case 'SIGNED_OUT':
      return { ...emptyState, connection: 'signed-out' };
    case 'PRESENCE':
      return { ...state, online: { ...state.online, [action.userId]: action.online } };
    case 'AGENT_STATUS':
      return { ...state, agents: { ...state.agents, [action.agentId]: action.agent } };
    case 'PUSH_MESSAGE': {
      const { message, isNew } = action;
      const isKnown = state.chats[message.roomId]?.messages.some(
        (other) => isStored(other) && other.id === message.id && other.seq === message.seq,
      );
      // The user's own message is known since its acknowledgement, but the room list does not show it yet.
      const counted = isNew && (!isKnown || message.from === state.me?.id) ? countMessage(state, message) : state;
      return showMessage(counted, message);
    }
    case 'SEND_STARTED':
      return showMessage(state, action.message);
    case 'SEND_ACKNOWLEDGED':
    case 'SEND_FAILED':
      return inEveryRoom(state, (chat) => applySendResult(chat, action));
    case 'RESYNC': {
      const { roomId, position } = action;
      const markStale = (chat: RoomChat) => resynced(chat, position);
      return roomId === undefined ? inEveryRoom(state, markStale) : inRoom(state, roomId, markStale);
    }
    case 'PERMISSION_RESOLVED':
      return inEveryRoom(state, (chat) => resolvePermission(chat, action));
    case 'PERMISSION_REQUESTED':
      return inRoom(state, action.permission.roomId, (chat) => addPermission(chat, action.permission));
    case 'ROOMS_LOADED':
    case 'ROOM_UPDATED':
    case 'ROOM_REMOVED':
    case 'ROOM_PREFERENCES_SET':
    case 'ROOM_READ':
    case 'ROOM_OPENED':
      return reduceRooms(state, action);
    default:
      return inRoom(state, action.roomId, (chat) => reduceChat(chat, withAgentName(state, action), now));
  }
}

type RoomListAction = 'ROOM_REMOVED' | 'ROOM_PREFERENCES_SET' | 'ROOM_READ' | 'ROOM_OPENED';
type InRoom = Exclude<Extract<ChatAction, { roomId: string }>, { type: RoomListAction }>;

/** Adds the agent's name to an action. Events carry only the agent id; the name is in the room's members. */
function withAgentName(state: ChatState, action: InRoom): InRoom {
  if (!('agentId' in action) || ('agentName' in action && action.agentName !== undefined)) return action;
  const member = state.rooms[action.roomId]?.members.find((other) => other.memberId === action.agentId);
  const agentName = member?.displayName ?? state.agents[action.agentId]?.name;
  return agentName === undefined || action.type === 'SET_QUEUE' ? action : { ...action, agentName };
}

/** Adds a message to its room. Its sender is no longer typing. */
function showMessage(state: ChatState, message: ChatMessage): ChatState {
  return inRoom(state, message.roomId, (chat) => ({
    ...chat,
    messages: put(chat.messages, message),
    typing: without(chat.typing, message.from),
  }));
}

function reduceChat(chat: RoomChat, action: InRoom, now: number): RoomChat {
  switch (action.type) {
    case 'CLEAR_MESSAGES':
      return { ...chat, messages: [], olderCursor: undefined };
    case 'HISTORY_LOADING':
      return { ...chat, history: 'loading' };
    case 'HISTORY_FAILED':
      return { ...chat, history: chat.messages.some(isStored) ? 'stale' : 'unread' };
    case 'HISTORY_LOADED': {
      const kept = action.replace ? chat.messages.filter((message) => !isStored(message)) : chat.messages;
      const messages = merge(kept, action.messages);
      return { ...chat, messages, history: 'ready', olderCursor: action.olderCursor };
    }
    case 'REMOVE_MESSAGES': {
      const removed = new Set(action.messageIds);
      return { ...chat, messages: chat.messages.filter((message) => !removed.has(message.id)) };
    }
    case 'SET_REACTIONS': {
      const target = chat.messages.filter(isStored).findLast((message) => message.id === action.messageId);
      return target === undefined ? chat : replace(chat, target, { ...target, reactions: action.reactions });
    }
    case 'SET_PINNED': {
      const others = without(chat.pinned, action.messageId);
      return { ...chat, pinned: action.pinned ? { ...others, [action.messageId]: true } : others };
    }
    case 'PINS_LOADED':
      return { ...chat, pinned: Object.fromEntries(action.messageIds.map((id) => [id, true])) };
    case 'PLANS_LOADED':
      return applyPlans(chat, action.plans);
    case 'RUNS_LOADED':
      return applyRunUsage(chat, action.runs);
    case 'TASKS_LOADED':
      return { ...chat, tasks: Object.fromEntries(action.tasks.map((task) => [task.id, newerTask(chat, task)])) };
    case 'TASK_CHANGED': {
      const next = showFinalizedTask(chat, action.task);
      if (next.tasks === undefined) return next;
      return { ...next, tasks: { ...next.tasks, [action.task.id]: newerTask(next, action.task) } };
    }
    case 'TASK_REMOVED':
      return chat.tasks === undefined ? chat : { ...chat, tasks: without(chat.tasks, action.taskId) };
    case 'RETRY_SEND':
      return applySendResult(chat, action);
    case 'SET_QUEUE': {
      const others = chat.queue.filter((item) => item.agentId !== action.agentId);
      return { ...chat, queue: [...others, ...action.items] };
    }
    case 'QUESTION_ENDED':
      return endQuestion(chat, action);
    case 'TERMINAL_DATA': {
      const { agentId, agentName, data } = action;
      const output = ((chat.terminals[agentId]?.output ?? '') + data).slice(-MAX_TERMINAL_CHARS);
      return { ...chat, terminals: { ...chat.terminals, [agentId]: { agentName, output } } };
    }
    case 'TYPING': {
      const { userId, name, until } = action;
      return { ...chat, typing: { ...chat.typing, [userId]: { name, until } } };
    }
    case 'POSITION':
      return isAfter(action.position, chat.position) ? { ...chat, position: action.position } : chat;
    default:
      return reduceReply(chat, action, now);
  }
}

/** Marks loaded state as stale. A position is set if the hub continues from there. */
function resynced(chat: RoomChat, position = chat.position): RoomChat {
  return { ...chat, position, history: chat.history === 'unread' ? 'unread' : 'stale', tasks: undefined };
}

/**
 * The newer of a task and its known version: a response may be older than events received since the request.
 */
function newerTask(chat: RoomChat, task: Task): Task {
  const known = chat.tasks?.[task.id];
  return known !== undefined && known.updatedAt > task.updatedAt ? known : task;
}

/** Shows a task that an agent has ended on the last message of that agent. */
function showFinalizedTask(chat: RoomChat, { assigneeId, assigneeType, title, status, result }: Task): RoomChat {
  if (assigneeType !== 'agent' || (status !== 'completed' && status !== 'failed')) return chat;
  const target = chat.messages.filter(isReply).findLast((message) => message.from === assigneeId);
  return target === undefined ? chat : replace(chat, target, { ...target, finalizedTask: { title, status, result } });
}

type Sent = Extract<ChatAction, { type: 'SEND_ACKNOWLEDGED' | 'SEND_FAILED' | 'RETRY_SEND' }>;

function applySendResult(chat: RoomChat, action: Sent): RoomChat {
  const unsent = chat.messages.filter(isUnsent).find((message) => message.clientMessageId === action.clientMessageId);
  if (unsent === undefined) return chat;
  const sending = asSending(unsent);
  switch (action.type) {
    case 'SEND_ACKNOWLEDGED': {
      const { messageId: id, seq } = action;
      const messages = chat.messages.filter((message) => message !== unsent);
      const stored: StoredMessage = { ...sending, state: 'stored', id, seq, mentions: [], reactions: [] };
      return { ...chat, messages: put(messages, stored) };
    }
    case 'SEND_FAILED':
      return replace(chat, unsent, { ...sending, state: 'rejected', failure: action.failure });
    case 'RETRY_SEND':
      return replace(chat, unsent, sending);
  }
}

function asSending(unsent: UnsentMessage): SendingMessage {
  if (unsent.state === 'sending') return unsent;
  const { failure: _, ...message } = unsent;
  return { ...message, state: 'sending' };
}

function addPermission(chat: RoomChat, permission: RoomChat['permissions'][number]): RoomChat {
  const others = chat.permissions.filter((other) => other.requestId !== permission.requestId);
  return { ...chat, permissions: [...others, permission].slice(-MAX_PERMISSIONS) };
}

function resolvePermission(chat: RoomChat, action: Extract<ChatAction, { type: 'PERMISSION_RESOLVED' }>): RoomChat {
  const { requestId, decision, decidedByName, reason } = action;
  if (!chat.permissions.some((permission) => permission.requestId === requestId)) return chat;
  const permissions = chat.permissions.map((permission) =>
    permission.requestId === requestId ? { ...permission, decision, decidedByName, reason } : permission,
  );
  return { ...chat, permissions };
}

function endQuestion(chat: RoomChat, { questionId, end }: ActionOf<'QUESTION_ENDED'>): RoomChat {
  const asking = chat.messages.filter(isReply).find((message) => message.askUser?.questionId === questionId);
  if (asking?.askUser === undefined) return chat;
  return replace(chat, asking, { ...asking, askUser: { ...asking.askUser, end } });
}

/** Adds stored plans to the replies of their runs, so that they are shown after a reload. */
function applyPlans(chat: RoomChat, plans: ActionOf<'PLANS_LOADED'>['plans']): RoomChat {
  return plans.reduce((next, { runId, plan }) => {
    const target = replyOfRun(next, runId);
    return target === undefined ? next : replace(next, target, { ...target, plan });
  }, chat);
}

/** Adds duration and token usage to the replies of finished runs. Values received live take precedence. */
function applyRunUsage(chat: RoomChat, runs: ActionOf<'RUNS_LOADED'>['runs']): RoomChat {
  return runs.reduce((next, run) => {
    const target = replyOfRun(next, run.runId);
    if (target === undefined) return next;
    const durationMs = target.durationMs ?? run.durationMs;
    const usage = run.usage === undefined ? target.usage : { ...run.usage, ...defined(target.usage) };
    return replace(next, target, { ...target, durationMs, usage });
  }, chat);
}

function inRoom(state: ChatState, roomId: string, edit: (chat: RoomChat) => RoomChat): ChatState {
  const before = state.chats[roomId] ?? emptyChat;
  const chat = edit(before);
  return chat === before ? state : { ...state, chats: { ...state.chats, [roomId]: chat } };
}

function inEveryRoom(state: ChatState, edit: (chat: RoomChat) => RoomChat): ChatState {
  return Object.keys(state.chats).reduce((next, roomId) => inRoom(next, roomId, edit), state);
}

function without<T>(record: Record<string, T>, key: string): Record<string, T> {
  if (!(key in record)) return record;
  const { [key]: _, ...others } = record;
  return others;
}
