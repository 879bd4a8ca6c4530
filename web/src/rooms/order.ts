/** In which order rooms stand, and which one is shown first. */
import type { RoomEntry } from '../chat/state';

export interface RoomGroups {
  pinned: RoomEntry[];
  others: RoomEntry[];
  archived: RoomEntry[];
}

export function groups(rooms: RoomEntry[]): RoomGroups {
  const sorted = rooms.toSorted((a, b) => lastSaid(b).localeCompare(lastSaid(a)));
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

function lastSaid(room: RoomEntry): string {
  return room.recent?.createdAt ?? room.createdAt;
}
