/**
 * State of rooms, messages and agents in this tab. Only the reducer changes it.
 *
 * The first fields of `ChatMessage` are those of the documented chat client. Those from `id` on are needed
 * for rooms with several users.
 */
import type {
  Attachment,
  Forwarded,
  MemberFrame,
  NotificationPref,
  Reaction,
  Relayed,
  RoomFrame,
  RoomRole,
  SenderType,
  Task,
} from '../generated/api';

export interface ChatMessage {
  role: 'user' | 'agent';
  /** Sender: id of a user or an agent. */
  from: string;
  to?: string;
  text: string;
  timestamp: string;
  timestampMs: number;

  isGenerating?: boolean;
  isThinking?: boolean;

  activitySummary?: string;
  activityEntries?: string[];
  toolCount?: number;

  contextTokens?: number;
  messageCount?: number;
  durationMs?: number;

  images?: string[];
  subagentTree?: SubagentTreeEntry[];
  content?: ContentBlock[];

  id: string;
  roomId: string;
  senderName: string;
  senderType: SenderType;
  /** Sequence number in the log. Absent while the message is sent or streamed. */
  seq?: number;
  clientMessageId?: string;
  sending?: 'waiting' | 'failed';
  failure?: string;
  mentions: string[];
  attachments: Attachment[];
  reactions: Reaction[];
  replyToId?: string;
  threadId?: string;
  editedAt?: string;
  forwardedFrom?: Forwarded;
  /** Author and addressees, if an account relayed the message for an author outside the hub. */
  relayed?: Relayed;
  runId?: string;
  /** Outcome of the run: `complete`, `failed`, `cancelled` or `interrupted`. */
  outcome?: string;
  plan?: Plan;
  askUser?: AskUser;
  changeReport?: ChangeReport;
  modelFallback?: ModelFallback;
  usage?: Usage;
  /** Task that the agent completed or failed with this reply. */
  finalizedTask?: FinalizedTask;
}

export interface FinalizedTask {
  title: string;
  status: 'completed' | 'failed';
  result?: string;
}

export type ContentBlock = ThinkingBlock | ToolBlock | ErrorBlock;

export interface ThinkingBlock {
  type: 'thinking';
  text: string;
}

export interface ToolBlock {
  type: 'tool';
  id: string;
  name: string;
  input: string;
  output?: string;
  isError?: boolean;
  isRunning: boolean;
  progress: ProgressLine[];
}

export interface ErrorBlock {
  type: 'error';
  text: string;
}

export interface ProgressLine {
  line: string;
  stream: 'stdout' | 'stderr';
}

export interface SubagentTreeEntry {
  id: string;
  parentId?: string;
  task: string;
  status: 'running' | 'complete' | 'failed' | 'cancelled';
  activity?: string;
  result?: string;
}

export interface Plan {
  summary: string;
  status: 'planned' | 'approved' | 'rejected' | 'executing' | 'completed';
  items: PlanItem[];
  planText?: string;
}

export interface PlanItem {
  title: string;
  description?: string;
  status: 'pending' | 'in_progress' | 'done' | 'skipped';
}

export interface AskUser {
  questionId: string;
  questions: AskedQuestion[];
  /** How the question ended: answered, expired, or withdrawn. Absent while it is open. */
  end?: { answeredBy?: string; chosen: string[]; isExpired: boolean };
}

export interface AskedQuestion {
  question: string;
  header: string;
  options: { label: string; description?: string; preview?: string }[];
  multiSelect: boolean;
}

export interface ChangeReport {
  files: { path: string; summary: string; diff?: string }[];
  truncatedCount: number;
}

export interface ModelFallback {
  preferredModel: string;
  actualModel: string;
  reason: string;
}

export interface Usage {
  inputTokens?: number;
  outputTokens?: number;
  costMicros?: number;
  tokenLimit?: number;
}

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
  position?: string;
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
  rooms: Record<string, RoomEntry>;
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
