/** The part of the reducer for the room list. */
import type { ActionOf, ChatAction } from './actions';
import type { LoggedMessage } from './message';
import type { ChatState, RoomEntry } from './state';

export function reduceRooms(state: ChatState, action: ChatAction): ChatState {
  switch (action.type) {
    case 'ROOMS_LOADED':
      return roomsLoaded(state, action.rooms);
    case 'ROOM_UPDATED':
      return roomUpdated(state, action);
    case 'ROOM_REMOVED': {
      const { [action.roomId]: _, ...others } = state.rooms;
      const { [action.roomId]: __, ...chats } = state.chats;
      return { ...state, rooms: others, chats };
    }
    case 'ROOM_PREFERENCES_SET': {
      const { pinnedAt, archivedAt, notificationPref } = action;
      return editRoom(state, action.roomId, (room) => ({ ...room, pinnedAt, archivedAt, notificationPref }));
    }
    case 'ROOM_READ':
      return roomRead(state, action);
    case 'ROOM_OPENED': {
      const opened = { ...state, openRoom: action.roomId };
      return action.roomId === undefined ? opened : markSeen(opened, action.roomId);
    }
    default:
      return state;
  }
}

/** Updates unread counts and the preview of a room for a new message. */
export function countMessage(state: ChatState, message: LoggedMessage): ChatState {
  const { me, openRoom } = state;
  const { text, senderName, timestamp, attachments } = message;
  const content = text === '' ? (attachments[0]?.filename ?? '') : text;
  const isMine = message.from === me?.id;
  const isCounted = timestamp <= (state.rooms[message.roomId]?.countedUntil ?? '');
  const isSeen = isMine || openRoom === message.roomId || isCounted;
  const mentioned = message.mentions.some((name) => me?.names.includes(name) ?? false);
  return editRoom(state, message.roomId, (room) => ({
    ...room,
    recent: timestamp < (room.recent?.createdAt ?? '') ? room.recent : { content, senderName, createdAt: timestamp },
    unread: isSeen ? room.unread : room.unread + 1,
    mentions: isSeen || !mentioned ? room.mentions : room.mentions + 1,
  }));
}

function roomsLoaded(state: ChatState, list: RoomEntry[]): ChatState {
  const entries = list.map((room): [string, RoomEntry] => {
    const before = state.rooms[room.id];
    const isOpen = state.openRoom === room.id;
    // The response may be older than messages received since the request.
    const isOlder = (before?.recent?.createdAt ?? '') > (room.recent?.createdAt ?? '');
    const recent = isOlder ? before?.recent : room.recent;
    const unread = isOpen ? 0 : isOlder ? Math.max(before?.unread ?? 0, room.unread) : room.unread;
    const counted = isOlder ? Math.max(before?.mentions ?? 0, room.mentions) : room.mentions;
    const mentions = isOpen ? 0 : counted;
    const countedUntil = room.recent?.createdAt;
    return [room.id, { ...room, recent, unread, mentions, countedUntil, members: before?.members ?? [] }];
  });
  return { ...state, roomsLoaded: true, rooms: Object.fromEntries(entries) };
}

function roomUpdated(state: ChatState, { room, members }: ActionOf<'ROOM_UPDATED'>): ChatState {
  const before = state.rooms[room.id];
  const own = members?.find((member) => member.memberId === state.me?.id);
  const role = own?.role ?? before?.role ?? 'member';
  const fresh: RoomEntry = {
    ...(before ?? { notificationPref: 'all', members: [], unread: 0, mentions: 0 }),
    // A room frame is complete: fields that it lacks have been cleared.
    systemPrompt: undefined,
    frozenAt: undefined,
    frozenBy: undefined,
    projectRoot: undefined,
    routerId: undefined,
    ...room,
    role,
  };
  const withMembers = members === undefined || members.length === 0 ? fresh : { ...fresh, members };
  return { ...state, rooms: { ...state.rooms, [room.id]: withMembers } };
}

function roomRead(state: ChatState, { roomId, userId, lastReadAt }: ActionOf<'ROOM_READ'>): ChatState {
  const mine = userId === state.me?.id ? markSeen(state, roomId) : state;
  return editRoom(mine, roomId, (room) => ({
    ...room,
    members: room.members.map((member) => (member.memberId === userId ? { ...member, lastReadAt } : member)),
  }));
}

function markSeen(state: ChatState, roomId: string): ChatState {
  return editRoom(state, roomId, (room) =>
    room.unread === 0 && room.mentions === 0 ? room : { ...room, unread: 0, mentions: 0 },
  );
}

function editRoom(state: ChatState, roomId: string, edited: (room: RoomEntry) => RoomEntry): ChatState {
  const room = state.rooms[roomId];
  return room === undefined ? state : { ...state, rooms: { ...state.rooms, [roomId]: edited(room) } };
}
