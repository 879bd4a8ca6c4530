/** The one reducer: a state and an action make the next state, and nothing else decides it. */
import type { ActionOf, ChatAction } from './actions';
import { change, merge, put } from './messages';
import { reply } from './reply';
import { rooms, said } from './rooms';
import { emptyChat, emptyState, type ChatState, type RoomChat } from './state';
import { isAfter } from './position';
import type { Task } from '../generated/api';

/** Bytes of a terminal that are kept. */
const MOST_OUTPUT = 20_000;
/** Decisions that stay to be seen in a room. */
const MOST_PERMISSIONS = 50;

/** `now` comes from outside, so that the same actions always make the same state. */
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
      const { message, isNews } = action;
      const isKnown = state.chats[message.roomId]?.messages.some(
        (other) => other.id === message.id && other.seq === message.seq,
      );
      // One's own is known from its acknowledgement, and only now shown in the list.
      const counted = isNews && (!isKnown || message.from === state.me?.id) ? said(state, message) : state;
      return inRoom(counted, message.roomId, (chat) => ({
        ...chat,
        messages: put(chat.messages, message),
        typing: without(chat.typing, message.from),
      }));
    }
    case 'SEND_ACKNOWLEDGED':
    case 'SEND_FAILED':
      return everywhere(state, (chat) => sent(chat, action));
    case 'PERMISSION_RESOLVED':
      return everywhere(state, (chat) => resolved(chat, action));
    case 'PERMISSION_ASKED':
      return inRoom(state, action.permission.roomId, (chat) => asked(chat, action.permission));
    case 'ROOMS_LOADED':
    case 'ROOM_UPDATED':
    case 'ROOM_REMOVED':
    case 'ROOM_ARRANGED':
    case 'ROOM_READ':
    case 'ROOM_OPENED':
      return rooms(state, action);
    default:
      return inRoom(state, action.roomId, (chat) => inChat(chat, named(state, action), now));
  }
}

type OfTheList = 'ROOM_REMOVED' | 'ROOM_ARRANGED' | 'ROOM_READ' | 'ROOM_OPENED';
type InRoom = Exclude<Extract<ChatAction, { roomId: string }>, { type: OfTheList }>;

/** Events tell the id of an agent; what people call it, its room knows. */
function named(state: ChatState, action: InRoom): InRoom {
  if (!('agentId' in action) || ('agentName' in action && action.agentName !== undefined)) return action;
  const member = state.rooms[action.roomId]?.members.find((one) => one.memberId === action.agentId);
  const agentName = member?.displayName ?? state.agents[action.agentId]?.name;
  return agentName === undefined || action.type === 'SET_QUEUE' ? action : { ...action, agentName };
}

function inChat(chat: RoomChat, action: InRoom, now: number): RoomChat {
  switch (action.type) {
    case 'CLEAR_MESSAGES':
      return { ...chat, messages: [], olderCursor: undefined };
    case 'HISTORY_LOADING':
      return { ...chat, history: 'loading' };
    case 'HISTORY_FAILED':
      return { ...chat, history: chat.messages.some((message) => message.seq) ? 'stale' : 'unread' };
    case 'HISTORY_LOADED': {
      const unsaid = chat.messages.filter((message) => message.seq === undefined);
      const messages = merge(action.anew ? unsaid : chat.messages, action.messages);
      return { ...chat, messages, history: 'ready', olderCursor: action.olderCursor };
    }
    case 'REMOVE_MESSAGES': {
      const removed = new Set(action.messageIds);
      return { ...chat, messages: chat.messages.filter((message) => !removed.has(message.id)) };
    }
    case 'SET_REACTIONS':
      return change(chat, action.messageId, (message) => ({ ...message, reactions: action.reactions }));
    case 'SET_PINNED': {
      const others = without(chat.pinned, action.messageId);
      return { ...chat, pinned: action.pinned ? { ...others, [action.messageId]: true } : others };
    }
    case 'PINS_LOADED':
      return { ...chat, pinned: Object.fromEntries(action.messageIds.map((id) => [id, true])) };
    case 'PLANS_LOADED':
      return planned(chat, action.plans);
    case 'RUNS_LOADED':
      return spent(chat, action.runs);
    case 'TASKS_LOADED':
      return { ...chat, tasks: Object.fromEntries(action.tasks.map((task) => [task.id, newer(chat, task)])) };
    case 'TASK_CHANGED': {
      const told = finalized(chat, action.task);
      if (told.tasks === undefined) return told;
      return { ...told, tasks: { ...told.tasks, [action.task.id]: newer(told, action.task) } };
    }
    case 'TASK_REMOVED':
      return chat.tasks === undefined ? chat : { ...chat, tasks: without(chat.tasks, action.taskId) };
    case 'SEND_AGAIN':
      return sent(chat, action);
    case 'SET_QUEUE': {
      const others = chat.queue.filter((item) => item.agentId !== action.agentId);
      return { ...chat, queue: [...others, ...action.items] };
    }
    case 'QUESTION_OVER':
      return over(chat, action);
    case 'TERMINAL_DATA': {
      const { agentId, agentName, data } = action;
      const output = ((chat.terminals[agentId]?.output ?? '') + data).slice(-MOST_OUTPUT);
      return { ...chat, terminals: { ...chat.terminals, [agentId]: { agentName, output } } };
    }
    case 'TYPING': {
      const { userId, name, until } = action;
      return { ...chat, typing: { ...chat.typing, [userId]: { name, until } } };
    }
    case 'POSITION':
      return isAfter(action.position, chat.position) ? { ...chat, position: action.position } : chat;
    case 'RESYNC':
      return {
        ...chat,
        position: action.position,
        history: chat.history === 'unread' ? 'unread' : 'stale',
        tasks: undefined,
      };
    default:
      return reply(chat, action, now);
  }
}

/** An answer may be older than what was told since it was asked for. */
function newer(chat: RoomChat, task: Task): Task {
  const known = chat.tasks?.[task.id];
  return known !== undefined && known.updatedAt > task.updatedAt ? known : task;
}

/** An agent that ends a task has said so in what it said last. */
function finalized(chat: RoomChat, { assigneeId, assigneeType, title, status, result }: Task): RoomChat {
  if (assigneeType !== 'agent' || (status !== 'completed' && status !== 'failed')) return chat;
  const said = chat.messages.findLast((message) => message.from === assigneeId && message.role === 'agent');
  if (said === undefined) return chat;
  return change(chat, said.id, (message) => ({ ...message, finalizedTask: { title, status, result } }));
}

type Sent = Extract<ChatAction, { type: 'SEND_ACKNOWLEDGED' | 'SEND_FAILED' | 'SEND_AGAIN' }>;

function sent(chat: RoomChat, action: Sent): RoomChat {
  const waiting = chat.messages.find(
    (message) => message.sending !== undefined && message.clientMessageId === action.clientMessageId,
  );
  if (waiting === undefined) return chat;
  switch (action.type) {
    case 'SEND_ACKNOWLEDGED': {
      const { sending: _, failure: __, ...said } = waiting;
      const messages = chat.messages.filter((message) => message !== waiting);
      return { ...chat, messages: put(messages, { ...said, id: action.messageId, seq: action.seq }) };
    }
    case 'SEND_FAILED':
      return change(chat, waiting.id, (message) => ({ ...message, sending: 'failed', failure: action.failure }));
    case 'SEND_AGAIN':
      return change(chat, waiting.id, ({ failure: _, ...message }) => ({ ...message, sending: 'waiting' }));
  }
}

function asked(chat: RoomChat, permission: RoomChat['permissions'][number]): RoomChat {
  const others = chat.permissions.filter((other) => other.requestId !== permission.requestId);
  return { ...chat, permissions: [...others, permission].slice(-MOST_PERMISSIONS) };
}

function resolved(chat: RoomChat, action: Extract<ChatAction, { type: 'PERMISSION_RESOLVED' }>): RoomChat {
  const { requestId, decision, decidedByName, reason } = action;
  if (!chat.permissions.some((permission) => permission.requestId === requestId)) return chat;
  const permissions = chat.permissions.map((permission) =>
    permission.requestId === requestId ? { ...permission, decision, decidedByName, reason } : permission,
  );
  return { ...chat, permissions };
}

function over(chat: RoomChat, { questionId, end }: ActionOf<'QUESTION_OVER'>): RoomChat {
  const asking = chat.messages.find((message) => message.askUser?.questionId === questionId);
  if (asking?.askUser === undefined) return chat;
  const askUser = { ...asking.askUser, end };
  return change(chat, asking.id, (message) => ({ ...message, askUser }));
}

/** Plans are kept beside the messages, and come back with them after a reload. */
function planned(chat: RoomChat, plans: ActionOf<'PLANS_LOADED'>['plans']): RoomChat {
  return plans.reduce((next, { runId, plan }) => {
    const said = next.messages.findLast((message) => message.runId === runId);
    return said === undefined ? next : change(next, said.id, (message) => ({ ...message, plan }));
  }, chat);
}

/** So is what a turn took. What was told live is not less. */
function spent(chat: RoomChat, runs: ActionOf<'RUNS_LOADED'>['runs']): RoomChat {
  return runs.reduce((next, { runId, durationMs, usage }) => {
    const said = next.messages.findLast((message) => message.runId === runId);
    if (said === undefined || said.isGenerating === true) return next;
    return change(next, said.id, (message) => ({
      ...message,
      durationMs: message.durationMs ?? durationMs,
      usage: message.usage ?? usage,
    }));
  }, chat);
}

function inRoom(state: ChatState, roomId: string, edit: (chat: RoomChat) => RoomChat): ChatState {
  const before = state.chats[roomId] ?? emptyChat;
  const chat = edit(before);
  return chat === before ? state : { ...state, chats: { ...state.chats, [roomId]: chat } };
}

function everywhere(state: ChatState, edit: (chat: RoomChat) => RoomChat): ChatState {
  return Object.keys(state.chats).reduce((next, roomId) => inRoom(next, roomId, edit), state);
}

function without<T>(record: Record<string, T>, key: string): Record<string, T> {
  if (!(key in record)) return record;
  const { [key]: _, ...others } = record;
  return others;
}
