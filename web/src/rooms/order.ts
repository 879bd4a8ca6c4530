/** Order of the rooms in the sidebar, and the room to open first. */
import type { RoomEntry } from '../chat/state';

export interface RoomGroups {
  pinned: RoomEntry[];
  others: RoomEntry[];
  archived: RoomEntry[];
}

export function groups(rooms: RoomEntry[]): RoomGroups {
  const sorted = rooms.toSorted((a, b) => lastMessageAt(b).localeCompare(lastMessageAt(a)));
  const isArchived = (room: RoomEntry) => room.archivedAt !== undefined;
  const isPinned = (room: RoomEntry) => room.pinnedAt !== undefined && !isArchived(room);
  return {
    pinned: sorted.filter(isPinned),
    others: sorted.filter((room) => !isPinned(room) && !isArchived(room)),
    archived: sorted.filter(isArchived),
  };
}

export function homeRoom(rooms: RoomEntry[]): RoomEntry | undefined {
  const { pinned, others } = groups(rooms);
  return pinned[0] ?? others[0];
}

const KEY = 'parlor.room';

export function lastRoom(): string | undefined {
  return localStorage.getItem(KEY) ?? undefined;
}

export function rememberRoom(roomId: string): void {
  localStorage.setItem(KEY, roomId);
}

function lastMessageAt(room: RoomEntry): string {
  return room.recent?.createdAt ?? room.createdAt;
}
