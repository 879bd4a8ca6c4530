/**
 * What the page knows of conversations. Changed by the reducer alone.
 *
 * `ChatMessage` is the documented form of a message in a chat; below it stands what a room of people needs besides.
 */
import type {
  Attachment,
  Forwarded,
  MemberFrame,
  NotificationPref,
  Reaction,
  RoomFrame,
  RoomRole,
  SenderType,
  Task,
} from '../generated/api';

export interface ChatMessage {
  role: 'user' | 'agent';
  /** Who said it: an id of a person or an agent. */
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
  /** Its place in the log; absent while it is being said or sent. */
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
  runId?: string;
  /** How the turn of an agent ended: `complete`, `failed`, `cancelled` or `interrupted`. */
  outcome?: string;
  plan?: Plan;
  askUser?: AskUser;
  changeReport?: ChangeReport;
  modelFallback?: ModelFallback;
  usage?: Usage;
  /** A task that the agent brought to its end with this reply. */
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
  /** What became of it: somebody answered, or nobody can any more. */
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

/** What a turn of an agent took, as far as it is known afterwards. */
export interface RunUsage {
  runId: string;
  durationMs?: number;
  usage?: Usage;
}

/** What an agent wants to do, and what became of it. */
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
  /** Oldest first; what has no place in the log yet comes last. */
  messages: ChatMessage[];
  /** `stale`: what is shown may have holes, and the history is to be read anew. */
  history: 'unread' | 'loading' | 'ready' | 'stale';
  olderCursor?: string;
  position?: string;
  permissions: Permission[];
  queue: QueuedItem[];
  typing: Record<string, { name: string; until: number }>;
  terminals: Record<string, { agentName: string; output: string }>;
  pinned: Record<string, true>;
  /** By their ids; absent until somebody looked. */
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
  /** When the newest message was said that `unread` counts because the hub did, and not because it was told. */
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
  /** Who is looking: decides what is unread, and what mentions them. */
  me?: { id: string; names: string[] };
  connection: Connection;
  /** The room on screen, in which nothing is unread. */
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
