/** The part of the reducer for the chat of one room: history, tasks, approvals, queues and terminals. */
import type { Task } from '../generated/api';
import type { ActionOf, ChatAction } from './actions';
import { isReply, isStored } from './message';
import { defined, merge, replace } from './messages';
import { reduceReply, replyOfRun } from './reply';
import { applySendResult } from './sending';
import type { Permission, RoomChat } from './state';

/** Maximum characters of terminal output kept per agent. */
const MAX_TERMINAL_CHARS = 20_000;
/** Maximum number of approvals kept per room. */
const MAX_PERMISSIONS = 50;

type RoomListAction = 'ROOM_REMOVED' | 'ROOM_PREFERENCES_SET' | 'ROOM_READ' | 'ROOM_OPENED';
/** Action that changes the chat of one room. */
export type RoomAction = Exclude<Extract<ChatAction, { roomId: string }>, { type: RoomListAction }>;

export function reduceChat(chat: RoomChat, action: RoomAction, now: number): RoomChat {
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
    default:
      return reduceReply(chat, action, now);
  }
}

/** Marks loaded state as stale. */
export function resynced(chat: RoomChat): RoomChat {
  return { ...chat, history: chat.history === 'unread' ? 'unread' : 'stale', tasks: undefined };
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

export function addPermission(chat: RoomChat, permission: Permission): RoomChat {
  const others = chat.permissions.filter((other) => other.requestId !== permission.requestId);
  return { ...chat, permissions: [...others, permission].slice(-MAX_PERMISSIONS) };
}

export function resolvePermission(chat: RoomChat, action: Extract<ChatAction, { type: 'PERMISSION_RESOLVED' }>): RoomChat {
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

export function without<T>(record: Record<string, T>, key: string): Record<string, T> {
  if (!(key in record)) return record;
  const { [key]: _, ...others } = record;
  return others;
}
