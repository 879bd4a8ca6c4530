/** The chat reducer: a pure function from a state and an action to the next state. */
import type { ChatAction } from './actions';
import { isStored, type ChatMessage } from './message';
import { put } from './messages';
import { sessionOf } from './place';
import { isAfter } from './position';
import { addPermission, reduceChat, resolvePermission, resynced, without, type RoomAction } from './roomChat';
import { countMessage, reduceRooms } from './rooms';
import { applySendResult } from './sending';
import { emptyChat, emptyState, type ChatState, type RoomChat } from './state';

/** Maximum number of replies kept for each session of an agent. */
const MAX_SESSION_REPLIES = 20;

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
    case 'POSITION':
      return isAfter(action.position, state.position) ? { ...state, position: action.position } : state;
    case 'RESYNC':
      // The hub does not know the old position. It continues from the one that follows.
      return inEveryRoom({ ...state, position: undefined }, resynced);
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

/** Adds the agent's name to an action. Events carry only the agent id; the name is in the room's members. */
function withAgentName(state: ChatState, action: RoomAction): RoomAction {
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

function inRoom(state: ChatState, roomId: string, edit: (chat: RoomChat) => RoomChat): ChatState {
  const before = state.chats[roomId] ?? emptyChat;
  const chat = bounded(edit(before), roomId);
  return chat === before ? state : { ...state, chats: { ...state.chats, [roomId]: chat } };
}

/** Drops the oldest replies of a session, which no history loads again. */
function bounded(chat: RoomChat, key: string): RoomChat {
  if (chat.messages.length <= MAX_SESSION_REPLIES || sessionOf(key) === undefined) return chat;
  return { ...chat, messages: chat.messages.slice(-MAX_SESSION_REPLIES) };
}

function inEveryRoom(state: ChatState, edit: (chat: RoomChat) => RoomChat): ChatState {
  return Object.keys(state.chats).reduce((next, roomId) => inRoom(next, roomId, edit), state);
}
