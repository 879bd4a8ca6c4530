/** A message of a room, and the parts of an agent's reply. */
import type { Attachment, Forwarded, Reaction, Relayed, SenderType } from '../generated/api';

export interface ChatMessage {
  role: 'user' | 'agent';
  /** Sender: id of a user or an agent. */
  from: string;
  text: string;
  timestamp: string;
  timestampMs: number;

  isGenerating?: boolean;
  isThinking?: boolean;

  activitySummary?: string;

  contextTokens?: number;
  messageCount?: number;
  durationMs?: number;

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

/** Names of the tools that a reply has called, in order. */
export function toolNames({ content }: ChatMessage): string[] {
  return (content ?? []).flatMap((block) => (block.type === 'tool' ? [block.name] : []));
}
