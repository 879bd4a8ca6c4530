/** State of rooms, messages and agents in this tab. Only the reducer changes it. */
import type { MemberFrame, NotificationPref, RoomFrame, RoomRole, Task } from '../generated/api';
import type { ChatMessage } from './message';
import type { Usage } from './parts';

/** Duration and token usage of a finished run. */
export interface RunUsage {
  runId: string;
  durationMs?: number;
  usage?: Usage;
}

/** Permission request of an agent, with the decision once there is one. */
export interface Permission {
  requestId: string;
  roomId: string;
  agentId: string;
  agentName: string;
  toolName: string;
  toolInput: unknown;
  inputDigest: string;
  expiresAt: string;
  decision?: 'allow' | 'deny' | 'timeout';
  decidedByName?: string;
  reason?: string;
}

export interface QueuedItem {
  id: string;
  agentId: string;
  preview: string;
}

export interface RoomChat {
  /** Oldest first. Messages without a sequence number come last. */
  messages: ChatMessage[];
  /** `stale`: messages may be missing after a resync, so the history must be loaded again. */
  history: 'unread' | 'loading' | 'ready' | 'stale';
  olderCursor?: string;
  permissions: Permission[];
  queue: QueuedItem[];
  typing: Record<string, { name: string; until: number }>;
  terminals: Record<string, { agentName: string; output: string }>;
  pinned: Record<string, true>;
  /** Tasks by id. Absent until the task page is opened. */
  tasks?: Record<string, Task>;
}

export interface RoomEntry extends RoomFrame {
  pinnedAt?: string;
  archivedAt?: string;
  notificationPref: NotificationPref;
  role: RoomRole;
  members: MemberFrame[];
  unread: number;
  mentions: number;
  /**
   * Time of the newest message that the hub had counted in `unread`. Messages up to it are not counted again.
   */
  countedUntil?: string;
  recent?: { content: string; senderName: string; createdAt: string };
}

export interface AgentState {
  name: string;
  status: string;
  model?: string;
  queueDepth: number;
}

export type Connection = 'connecting' | 'live' | 'waiting' | 'signed-out';

export interface ChatState {
  /** The signed-in user, for unread counts and mentions. */
  me?: { id: string; names: string[] };
  connection: Connection;
  /** Room on the screen. Its messages count as read. */
  openRoom?: string;
  roomsLoaded: boolean;
  /** Highest position received. The next connection resumes from it. */
  position?: string;
  rooms: Record<string, RoomEntry>;
  /** By room, and for runs without a room by the key of their session (`chat/place`). */
  chats: Record<string, RoomChat>;
  agents: Record<string, AgentState>;
  online: Record<string, boolean>;
}

export const emptyState: ChatState = {
  connection: 'connecting',
  roomsLoaded: false,
  rooms: {},
  chats: {},
  agents: {},
  online: {},
};

export const emptyChat: RoomChat = {
  messages: [],
  history: 'unread',
  permissions: [],
  queue: [],
  typing: {},
  terminals: {},
  pinned: {},
};
