/** Requests for rooms and agents, with their answers in the format of the chat state. */
import { apiResult } from '../api/http';
import type { AgentState, RoomEntry } from '../chat/state';
import type { Agent, MemberFrame, PinnedMessage, RecentRooms, RoomFrame, RoomOfMember, RoomWithMembers } from '../generated/api';

/** All rooms of the user. */
export async function requestRooms(): Promise<RoomEntry[]> {
  const [rooms, recent] = await Promise.all([
    apiResult<RoomOfMember[]>('GET', '/api/rooms'),
    apiResult<RecentRooms>('GET', '/api/messages/recent'),
  ]);
  return rooms.map((room) => roomEntry(room, recent[room.id]));
}

export interface RoomDetails {
  room: RoomFrame;
  members: MemberFrame[];
  /** Ids of the pinned messages. */
  pins: string[];
}

export async function requestRoom(roomId: string): Promise<RoomDetails> {
  const [{ members, ...room }, pins] = await Promise.all([
    apiResult<RoomWithMembers>('GET', `/api/rooms/${roomId}`),
    apiResult<PinnedMessage[]>('GET', `/api/rooms/${roomId}/pins`),
  ]);
  return {
    room: { ...room, systemPrompt: room.systemPrompt ?? undefined, routerId: room.routerId ?? undefined },
    members: members.map((member) => ({
      ...member,
      roleDescription: member.roleDescription ?? undefined,
      lastReadAt: member.lastReadAt ?? undefined,
    })),
    pins: pins.map((pin) => pin.messageId),
  };
}

export async function requestAgent(agentId: string): Promise<AgentState> {
  const { name, status, model } = await apiResult<Agent>('GET', `/api/agents/${agentId}`);
  return { name, status, model: model ?? undefined, queueDepth: 0 };
}

function roomEntry(room: RoomOfMember, last: RecentRooms[string] | undefined): RoomEntry {
  return {
    ...room,
    systemPrompt: room.systemPrompt ?? undefined,
    routerId: room.routerId ?? undefined,
    pinnedAt: room.pinnedAt ?? undefined,
    archivedAt: room.archivedAt ?? undefined,
    members: [],
    unread: last?.unread ?? 0,
    mentions: last?.mentions ?? 0,
    ...(last !== undefined && { recent: last }),
  };
}
