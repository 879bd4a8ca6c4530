/** What happens to the list of rooms. */
import type { ActionOf, ChatAction } from './actions';
import type { ChatMessage, ChatState, RoomEntry } from './state';

export function rooms(state: ChatState, action: ChatAction): ChatState {
  switch (action.type) {
    case 'ROOMS_LOADED':
      return loaded(state, action.rooms);
    case 'ROOM_UPDATED':
      return updated(state, action);
    case 'ROOM_REMOVED': {
      const { [action.roomId]: _, ...others } = state.rooms;
      const { [action.roomId]: __, ...chats } = state.chats;
      return { ...state, rooms: others, chats };
    }
    case 'ROOM_ARRANGED': {
      const { pinnedAt, archivedAt, notificationPref } = action;
      return edit(state, action.roomId, (room) => ({ ...room, pinnedAt, archivedAt, notificationPref }));
    }
    case 'ROOM_READ':
      return read(state, action);
    case 'ROOM_OPENED': {
      const opened = { ...state, openRoom: action.roomId };
      return action.roomId === undefined ? opened : seen(opened, action.roomId);
    }
    default:
      return state;
  }
}

/** Counts what was said, and shows it in the list. */
export function said(state: ChatState, message: ChatMessage): ChatState {
  const { me, openRoom } = state;
  const { text, senderName, timestamp, attachments } = message;
  const content = text === '' ? (attachments[0]?.filename ?? '') : text;
  const isMine = message.from === me?.id;
  const isCounted = timestamp <= (state.rooms[message.roomId]?.countedUntil ?? '');
  const isSeen = isMine || openRoom === message.roomId || isCounted;
  const mentioned = message.mentions.some((name) => me?.names.includes(name) ?? false);
  return edit(state, message.roomId, (room) => ({
    ...room,
    recent: timestamp < (room.recent?.createdAt ?? '') ? room.recent : { content, senderName, createdAt: timestamp },
    unread: isSeen ? room.unread : room.unread + 1,
    mentions: isSeen || !mentioned ? room.mentions : room.mentions + 1,
  }));
}

function loaded(state: ChatState, list: RoomEntry[]): ChatState {
  const known = list.map((room): [string, RoomEntry] => {
    const before = state.rooms[room.id];
    const isOpen = state.openRoom === room.id;
    // The list may be older than what was told while it was on its way.
    const isOlder = (before?.recent?.createdAt ?? '') > (room.recent?.createdAt ?? '');
    const recent = isOlder ? before?.recent : room.recent;
    const unread = isOpen ? 0 : isOlder ? Math.max(before?.unread ?? 0, room.unread) : room.unread;
    const counted = isOlder ? Math.max(before?.mentions ?? 0, room.mentions) : room.mentions;
    const mentions = isOpen ? 0 : counted;
    const countedUntil = room.recent?.createdAt;
    return [room.id, { ...room, recent, unread, mentions, countedUntil, members: before?.members ?? [] }];
  });
  return { ...state, roomsLoaded: true, rooms: Object.fromEntries(known) };
}

function updated(state: ChatState, { room, members }: ActionOf<'ROOM_UPDATED'>): ChatState {
  const before = state.rooms[room.id];
  const own = members?.find((member) => member.memberId === state.me?.id);
  const role = own?.role ?? before?.role ?? 'member';
  const fresh: RoomEntry = {
    ...(before ?? { notificationPref: 'all', members: [], unread: 0, mentions: 0 }),
    // What is absent in a frame is gone.
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

function read(state: ChatState, { roomId, userId, lastReadAt }: ActionOf<'ROOM_READ'>): ChatState {
  const mine = userId === state.me?.id ? seen(state, roomId) : state;
  return edit(mine, roomId, (room) => ({
    ...room,
    members: room.members.map((one) => (one.memberId === userId ? { ...one, lastReadAt } : one)),
  }));
}

function seen(state: ChatState, roomId: string): ChatState {
  return edit(state, roomId, (room) =>
    room.unread === 0 && room.mentions === 0 ? room : { ...room, unread: 0, mentions: 0 },
  );
}

function edit(state: ChatState, roomId: string, edited: (room: RoomEntry) => RoomEntry): ChatState {
  const room = state.rooms[roomId];
  return room === undefined ? state : { ...state, rooms: { ...state.rooms, [roomId]: edited(room) } };
}
