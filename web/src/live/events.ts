/**
 * Translates chat events to actions, with one handler per event kind.
 *
 * The hub sends only those events whose subject has no frame: plans, questions, activities, queues and usage.
 */
import type { ChatAction, ReplyRef } from '../chat/actions';
import { isTransient } from '../chat/phase';
import type { Plan } from '../chat/parts';
import { placeOf } from '../chat/place';
import type { PlanData } from '../generated/frames';
import { stripDirectionMarks as text } from '../markdown/hiddenCharacters';
import type { UiEvent } from './frames';

type EventOf<Kind extends UiEvent['kind']> = Extract<UiEvent, { kind: Kind }>;

export function fromEvent(event: UiEvent): ChatAction[] {
  const { agent_id: agentId, session_id: room, agent_session_id: sessionId } = event;
  if (event.kind === 'run' && event.phase === 'resync') return [{ type: 'RESYNC' }];
  if (agentId === undefined) return [];
  const roomId = placeOf({ agentId, ...(room !== undefined && { roomId: room }), ...(sessionId !== undefined && { sessionId }) });
  if (roomId === undefined) return [];
  const reply: ReplyRef = { roomId, agentId };
  switch (event.kind) {
    case 'run':
      return handleRun(event, reply);
    case 'activity':
      return handleActivity(event, reply);
    case 'queue': {
      const items = event.data.items.map(({ id, preview }) => ({ id, agentId, preview: text(preview) }));
      return [{ type: 'SET_QUEUE', roomId, agentId, items }];
    }
    case 'ask_user':
      return handleAskUser(event, reply);
    case 'model_fallback': {
      const { preferred_model: preferred, actual_model: actual, reason } = event.data;
      const modelFallback = { preferredModel: text(preferred), actualModel: text(actual), reason: text(reason) };
      return [{ type: 'SET_MODEL_FALLBACK', modelFallback, ...reply }];
    }
    case 'tool_progress': {
      // Unchanged, because terminal lines are shown with hidden characters escaped.
      const { tool, line, stream } = event.data;
      return [{ type: 'TOOL_PROGRESS', tool: text(tool), line: { line, stream }, ...reply }];
    }
    case 'turn_complete':
      return [{ type: 'FINALIZE_MESSAGE', durationMs: event.data.duration_ms, ...reply }];
    default:
      return [];
  }
}

function handleRun(event: EventOf<'run'>, reply: ReplyRef): ChatAction[] {
  switch (event.phase) {
    case 'outcome':
      return [{ type: 'FINALIZE_MESSAGE', ...reply }];
    case 'context_usage': {
      const { data } = event;
      const usage = {
        inputTokens: data.actual_prompt_tokens ?? undefined,
        outputTokens: data.actual_completion_tokens ?? undefined,
        tokenLimit: data.token_limit ?? undefined,
        costMicros: data.cost_micros,
      };
      const contextTokens = data.estimated_tokens ?? undefined;
      const messageCount = data.message_count ?? undefined;
      return [{ type: 'SET_CONTEXT_USAGE', contextTokens, messageCount, usage, ...reply }];
    }
    case 'subagent_spawned': {
      const { subagent_id: id, parent_id: parentId, task } = event.data;
      const entry = { id: text(id), parentId: optional(parentId), task: text(task), status: 'running' } as const;
      return [{ type: 'ADD_SUBAGENT', entry, ...reply }];
    }
    case 'subagent_result': {
      const { subagent_id: id, outcome } = event.data;
      const { status, result } = outcome;
      return [{ type: 'MARK_SUBAGENT_DONE', subagentId: text(id), status, result: optional(result), ...reply }];
    }
    case 'plan_update':
      return [{ type: 'SET_PLAN', plan: planOf(event.data.plan), runId: event.data.run_id, ...reply }];
    case 'change_report': {
      // The diff and the path are shown with hidden characters escaped.
      const files = event.data.files.map(({ path, summary, diff }) => ({ path, summary: text(summary), diff: diff ?? undefined }));
      return [{ type: 'SET_CHANGE_REPORT', changeReport: { files, truncatedCount: event.data.truncated_count }, ...reply }];
    }
    default:
      return [];
  }
}

function handleActivity(event: EventOf<'activity'>, reply: ReplyRef): ChatAction[] {
  // `parent_id` of an activity is the subagent that performs it.
  const subagentId = 'parent_id' in event.data ? optional(event.data.parent_id) : undefined;
  const isDone = event.phase === 'done';
  if (subagentId !== undefined) {
    return [{ type: 'SET_SUBAGENT_ACTIVITY', subagentId, activity: isDone ? undefined : optional(event.text), ...reply }];
  }
  if (isDone) return [{ type: 'ACTIVITY_DONE', ...reply }];
  const { status } = event.data;
  if (status === 'thinking' || status === 'model_loading') {
    return [{ type: 'SET_THINKING', isThinking: true, ...reply }];
  }
  const summary = optional(event.text);
  if (summary === undefined || isTransient(summary)) return [];
  return [{ type: 'SET_ACTIVITY', summary, ...reply }];
}

function handleAskUser(event: EventOf<'ask_user'>, { roomId, agentId }: ReplyRef): ChatAction[] {
  const questionId = event.data.question_id;
  if (event.phase === 'resolved') {
    const { answered_by_name: name, answered_by: id, answers = [], status } = event.data;
    const chosen = answers
      .flatMap(({ selected, custom_text: custom }) => [...selected, custom])
      .flatMap((answer) => optional(answer) ?? []);
    const end = { answeredBy: optional(name) ?? optional(id), chosen, isExpired: status === 'expired' };
    return [{ type: 'QUESTION_ENDED', roomId, questionId, end }];
  }
  const questions = event.data.questions.map(({ question, header, multi_select: multiSelect, options }) => ({
    question: text(question),
    header: text(header),
    multiSelect,
    options: options.map(({ label, description, preview }) => ({
      // Unchanged, because the label is also sent back as the answer.
      label,
      description: optional(description),
      preview: optional(preview),
    })),
  }));
  const agentName = optional(event.data.agent_name);
  const reply: ReplyRef = { roomId, agentId, ...(agentName !== undefined && { agentName }) };
  return [{ type: 'SET_ASK_USER', askUser: { questionId, questions }, ...reply }];
}

/** Converts a plan of a `plan_update` event or of `GET /api/plan`. */
export function planOf({ summary, status, items, plan_text: planText }: PlanData): Plan {
  return {
    summary: text(summary),
    status,
    items: items.map((item) => ({ title: text(item.title), description: optional(item.description), status: item.status })),
    planText: optional(planText),
  };
}

/** String without direction marks, which could reverse the text beside it on a card; absent if it is empty. */
function optional(value: string | null | undefined): string | undefined {
  return text(value ?? '') || undefined;
}
