/** Parts of an agent's reply besides its text: thinking, tool calls, and cards. */

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
