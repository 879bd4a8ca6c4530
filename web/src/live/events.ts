/**
 * Translates chat events to actions, with one handler per event kind.
 *
 * Chat events carry plans, questions, activity and usage, which room frames do not have. Messages and text
 * chunks are in both, and are taken from the frames.
 */
import type { ChatAction, ReplyRef } from '../chat/actions';
import { isTransient } from '../chat/phase';
import type { Plan, PlanItem, SubagentTreeEntry } from '../chat/parts';
import { stripDirectionMarks } from '../markdown/hiddenCharacters';

/** A chat event (`UiSseMessage`), as the hub sends it in `server:event` and on `/api/events`. */
export interface UiEvent {
  id: string;
  seq: number;
  rev: number;
  ts_ms: number;
  kind: string;
  phase?: string;
  text?: string;
  agent_id?: string;
  session_id?: string;
  project_root?: string;
  data?: Fields;
}

export type Fields = Record<string, unknown>;

export function fromEvent(event: UiEvent): ChatAction[] {
  const { agent_id: agentId, session_id: roomId } = event;
  if (event.kind === 'run' && event.phase === 'resync') return [{ type: 'RESYNC' }];
  if (agentId === undefined || roomId === undefined) return [];
  const data = event.data ?? {};
  const agentName = optional(data['agent_name']);
  const reply: ReplyRef = { roomId, agentId, ...(agentName !== undefined && { agentName }) };
  switch (event.kind) {
    case 'run':
      return handleRun(event.phase, data, reply);
    case 'activity':
      return handleActivity(event, data, reply);
    case 'queue':
      return handleQueue(data, reply);
    case 'ask_user':
      return handleAskUser(event.phase, data, reply);
    case 'model_fallback':
      return handleModelFallback(data, reply);
    case 'tool_progress':
      return handleToolProgress(data, reply);
    case 'turn_complete':
      return [{ type: 'FINALIZE_MESSAGE', durationMs: number(data['duration_ms']), ...reply }];
    default:
      return [];
  }
}

function handleRun(phase: string | undefined, data: Fields, reply: ReplyRef): ChatAction[] {
  switch (phase) {
    case 'outcome':
      return [{ type: 'FINALIZE_MESSAGE', ...reply }];
    case 'context_usage': {
      const usage = {
        inputTokens: number(data['actual_prompt_tokens']),
        outputTokens: number(data['actual_completion_tokens']),
        tokenLimit: number(data['token_limit']),
        costMicros: number(data['cost_micros']),
      };
      const contextTokens = number(data['estimated_tokens']);
      const messageCount = number(data['message_count']);
      return [{ type: 'SET_CONTEXT_USAGE', contextTokens, messageCount, usage, ...reply }];
    }
    case 'subagent_spawned': {
      const entry: SubagentTreeEntry = {
        id: text(data['subagent_id']),
        parentId: optional(data['parent_id']),
        task: text(data['task']),
        status: 'running',
      };
      return [{ type: 'ADD_SUBAGENT', entry, ...reply }];
    }
    case 'subagent_result': {
      const outcome = fields(data['outcome']);
      const status = oneOf(outcome['status'], ['failed', 'cancelled'], 'complete');
      const result = optional(outcome['result']);
      const subagentId = text(data['subagent_id']);
      return [{ type: 'MARK_SUBAGENT_DONE', subagentId, status, result, ...reply }];
    }
    case 'plan_update':
      return [{ type: 'SET_PLAN', plan: planOf(fields(data['plan'])), runId: optional(data['run_id']), ...reply }];
    case 'change_report': {
      const files = list(data['files']).map((file) => ({
        path: rawText(file['path']),
        summary: text(file['summary']),
        diff: rawText(file['diff']) || undefined,
      }));
      const truncatedCount = number(data['truncated_count']) ?? 0;
      return [{ type: 'SET_CHANGE_REPORT', changeReport: { files, truncatedCount }, ...reply }];
    }
    default:
      return [];
  }
}

function handleActivity(event: UiEvent, data: Fields, reply: ReplyRef): ChatAction[] {
  // `parent_id` of an activity is the subagent that performs it.
  const subagentId = optional(data['parent_id']);
  const isDone = event.phase === 'done';
  if (subagentId !== undefined) {
    return [{ type: 'SET_SUBAGENT_ACTIVITY', subagentId, activity: isDone ? undefined : optional(event.text), ...reply }];
  }
  const status = text(data['status']);
  if (isDone) return [{ type: 'ACTIVITY_DONE', ...reply }];
  if (status === 'thinking' || status === 'model_loading') {
    return [{ type: 'SET_THINKING', isThinking: true, ...reply }];
  }
  const summary = optional(event.text);
  if (summary === undefined || isTransient(summary)) return [];
  return [{ type: 'SET_ACTIVITY', summary, ...reply }];
}

function handleQueue(data: Fields, { roomId, agentId }: ReplyRef): ChatAction[] {
  const items = list(data['items']).map((item) => ({
    id: text(item['id']),
    agentId,
    preview: text(item['preview']),
  }));
  return [{ type: 'SET_QUEUE', roomId, agentId, items }];
}

function handleAskUser(phase: string | undefined, data: Fields, reply: ReplyRef): ChatAction[] {
  const questionId = text(data['question_id']);
  if (phase === 'resolved') {
    const answeredBy = optional(data['answered_by_name']) ?? optional(data['answered_by']);
    const chosen = list(data['answers']).flatMap((answer) => [...texts(answer['selected']), ...texts([answer['custom_text']])]);
    const end = { answeredBy, chosen, isExpired: data['status'] === 'expired' };
    return [{ type: 'QUESTION_ENDED', roomId: reply.roomId, questionId, end }];
  }
  const questions = list(data['questions']).map((question) => ({
    question: text(question['question']),
    header: text(question['header']),
    multiSelect: question['multi_select'] === true,
    options: list(question['options']).map((option) => ({
      // Unchanged, because the label is also sent back as the answer.
      label: rawText(option['label']),
      description: optional(option['description']),
      preview: optional(option['preview']),
    })),
  }));
  return [{ type: 'SET_ASK_USER', askUser: { questionId, questions }, ...reply }];
}

function handleModelFallback(data: Fields, reply: ReplyRef): ChatAction[] {
  const modelFallback = {
    preferredModel: text(data['preferred_model']),
    actualModel: text(data['actual_model']),
    reason: text(data['reason']),
  };
  return [{ type: 'SET_MODEL_FALLBACK', modelFallback, ...reply }];
}

function handleToolProgress(data: Fields, reply: ReplyRef): ChatAction[] {
  const stream = data['stream'] === 'stderr' ? 'stderr' : 'stdout';
  const line = { line: rawText(data['line']), stream } as const;
  return [{ type: 'TOOL_PROGRESS', tool: text(data['tool']), line, ...reply }];
}

/** Parses a plan from a `plan_update` event or from `GET /api/plan`. */
export function planOf(data: Fields): Plan {
  const items = list(data['items']).map((item) => ({
    title: text(item['title']),
    description: optional(item['description']),
    status: oneOf<PlanItem['status']>(item['status'], ['in_progress', 'done', 'skipped'], 'pending'),
  }));
  const status = oneOf<Plan['status']>(data['status'], ['approved', 'rejected', 'executing', 'completed'], 'planned');
  return { summary: text(data['summary']), status, items, planText: optional(data['plan_text']) };
}

function oneOf<const T extends string>(value: unknown, known: readonly T[], fallback: T): T {
  return known.find((candidate) => candidate === value) ?? fallback;
}

function list(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(fields) : [];
}

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

/** String without direction marks, which could reverse the text beside it on a card. */
function text(value: unknown): string {
  return stripDirectionMarks(rawText(value));
}

function optional(value: unknown): string | undefined {
  return text(value) === '' ? undefined : text(value);
}

/** Unchanged string, for text that is shown with hidden characters escaped. */
function rawText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.flatMap((item) => optional(item) ?? []) : [];
}

function number(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
