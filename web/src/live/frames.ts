/** Frames of `/ws/client`. Their payload types are generated from the hub's Rust types. */
import type { Message, MemberFrame, NotificationPref, Reaction, RoomFrame, Task } from '../generated/api';
import type { UiEvent } from './events';

export type ClientFrame =
  | { type: 'client:auth'; token: string; protocolVersion: '1' }
  | { type: 'client:join_room'; roomId: string; since?: string }
  | {
      type: 'client:send_message';
      roomId: string;
      content: string;
      clientMessageId: string;
      replyToId?: string;
      attachmentIds?: string[];
    }
  | { type: 'client:subscribe_events'; since?: string }
  | { type: 'client:typing'; roomId: string }
  | { type: 'client:stop_generation'; roomId: string; agentId: string }
  | {
      type: 'client:permission_response';
      requestId: string;
      decision: 'allow' | 'deny';
      allowAlways?: boolean;
      denyReason?: string;
      inputDigest: string;
    }
  | { type: 'client:ping'; ts: number };

/** Chunk of a streaming reply. */
export interface ReplyChunk {
  type: string;
  content: string;
  metadata?: Record<string, unknown>;
}

export type ServerFrame =
  | { type: 'server:auth_result'; ok: true; userId: string }
  | { type: 'server:auth_result'; ok: false; error: string }
  | { type: 'server:new_message' | 'server:message_complete' | 'server:message_edited'; message: Message; position: string }
  | { type: 'server:message_deleted'; roomId: string; messageId: string; position: string }
  | { type: 'server:message_ack'; clientMessageId: string; messageId: string; seq: number; epoch: string }
  | { type: 'server:reaction_update'; roomId: string; messageId: string; reactions: Reaction[]; position: string }
  | { type: 'server:message_pinned' | 'server:message_unpinned'; roomId: string; messageId: string; position: string }
  | { type: 'server:room_joined' | 'server:resync'; roomId: string; position: string }
  | { type: 'server:room_update'; room: RoomFrame; members?: MemberFrame[]; position: string }
  | { type: 'server:room_removed'; roomId: string }
  | { type: 'server:read_receipt'; roomId: string; userId: string; lastReadAt: string; position: string }
  | {
      type: 'server:room_state';
      roomId: string;
      notificationPref: NotificationPref;
      pinnedAt?: string;
      archivedAt?: string;
      position: string;
    }
  | { type: 'server:room_cleared'; roomId: string; clearedAt: string; position: string }
  | { type: 'server:bookmark_update'; roomId: string; messageId: string; bookmarked: boolean; position: string }
  | { type: 'server:task_update'; roomId: string; task: Task; removed?: boolean; position: string }
  | { type: 'server:typing'; roomId: string; userId: string; username: string }
  | { type: 'server:presence'; userId: string; username: string; online: boolean }
  | {
      type: 'server:message_chunk';
      roomId: string;
      agentId: string;
      agentName: string;
      messageId: string;
      chunk: ReplyChunk;
      first?: boolean;
    }
  | { type: 'server:terminal_data'; roomId: string; agentId: string; agentName: string; data: string }
  | {
      type: 'server:agent_status';
      agent: { id: string; name: string; type: string; status: string; model?: string; queueDepth: number };
    }
  | {
      type: 'server:permission_request';
      requestId: string;
      agentId: string;
      agentName: string;
      roomId: string;
      toolName: string;
      toolInput?: unknown;
      inputDigest: string;
      expiresAt: string;
    }
  | { type: 'server:permission_request_expired'; requestId: string }
  | {
      type: 'server:permission_resolved';
      requestId: string;
      roomId: string;
      decision: 'allow' | 'deny';
      decidedByName?: string;
      reason?: string;
    }
  | { type: 'server:room_rewound'; roomId: string; removedMessageIds: string[] }
  | { type: 'server:event'; event: UiEvent; position?: string }
  | { type: 'server:events_subscribed'; position: string }
  | { type: 'server:pong'; ts: number }
  | { type: 'server:error'; code: string; message: string; clientMessageId?: string };

/** Parses a frame without validation: the hub is trusted, and `translate` ignores frames of unknown types. */
export function parseFrame(text: string): ServerFrame | undefined {
  try {
    const frame: unknown = JSON.parse(text);
    return typeof frame === 'object' && frame !== null && 'type' in frame ? (frame as ServerFrame) : undefined;
  } catch {
    return undefined;
  }
}
