/** Queries and labels for the mailboxes of agents and for dead letters. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { apiResult } from '../api/http';
import type {
  AgentSessions,
  AutoRunChanges,
  AutoRunSetting,
  ConversationPage,
  DeadLetterPage,
  LogEntry,
  MailboxKey,
  MailPage,
  RoutedMessage,
  TurnPage,
} from '../generated/api';
import { text } from '../text';

/** Mailboxes have no events for the web app, so that an open list is refetched. */
const REFRESH_INTERVAL_MS = 4000;
const PAGE_LENGTH = 50;
const LOG_PAGE_LENGTH = 10;
const EXCERPT_CHARS = 160;
export const MAX_ID_CHARS = 64;
export const MAX_TITLE_CHARS = 200;
/** Length and number of lines of an entry that is folded. */
const FOLDED_CHARS = 1200;
const FOLDED_LINES = 12;

export function agentUrl(agentId: string): string {
  return `/api/agents/${encodeURIComponent(agentId)}`;
}

export function sessionsOf(agentId: string) {
  return queryOptions({
    queryKey: ['agents', agentId, 'sessions'],
    queryFn: () => apiResult<AgentSessions>('GET', `${agentUrl(agentId)}/sessions`),
    refetchInterval: REFRESH_INTERVAL_MS,
  });
}

/** Messages in the mailbox of a session, or in the agent's own without a session. */
export function mailOf(agentId: string, session: string | undefined) {
  return infiniteQueryOptions({
    queryKey: ['agents', agentId, 'mail', session ?? ''],
    queryFn: ({ pageParam }) => {
      const query = { limit: String(PAGE_LENGTH), offset: String(pageParam), ...(session !== undefined && { session }) };
      return apiResult<MailPage>('GET', `${agentUrl(agentId)}/mail?${new URLSearchParams(query)}`);
    },
    initialPageParam: 0,
    getNextPageParam: (last, pages) => nextOffset(last, pages),
    refetchInterval: REFRESH_INTERVAL_MS,
  });
}

/** Conversation log of a session, newest entry first. */
export function logOf(agentId: string, session: string) {
  return infiniteQueryOptions({
    queryKey: ['agents', agentId, 'log', session],
    queryFn: ({ pageParam }) => {
      const query = new URLSearchParams({ limit: String(LOG_PAGE_LENGTH), ...(pageParam !== '' && { cursor: pageParam }) });
      return apiResult<ConversationPage>('GET', `${agentUrl(agentId)}/sessions/${encodeURIComponent(session)}/log?${query}`);
    },
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor,
    refetchInterval: REFRESH_INTERVAL_MS,
  });
}

/** Decisions about automatic turns of an agent. */
export function turnsOf(agentId: string) {
  return infiniteQueryOptions({
    queryKey: ['agents', agentId, 'turns'],
    queryFn: ({ pageParam }) => {
      const query = { limit: String(PAGE_LENGTH), agentId, ...(pageParam !== '' && { cursor: pageParam }) };
      return apiResult<TurnPage>('GET', `/api/turns?${new URLSearchParams(query)}`);
    },
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor,
    refetchInterval: REFRESH_INTERVAL_MS,
  });
}

export const deadLetters = infiniteQueryOptions({
  queryKey: ['dead-letters'],
  queryFn: ({ pageParam }) => {
    const query = new URLSearchParams({ limit: String(PAGE_LENGTH), offset: String(pageParam) });
    return apiResult<DeadLetterPage>('GET', `/api/dead-letters?${query}`);
  },
  initialPageParam: 0,
  getNextPageParam: (last, pages) => nextOffset(last, pages),
  refetchInterval: REFRESH_INTERVAL_MS,
});

interface Page {
  items: unknown[];
  hasMore: boolean;
}

function nextOffset(last: Page, pages: Page[]): number | undefined {
  return last.hasMore ? pages.reduce((sum, page) => sum + page.items.length, 0) : undefined;
}

/** Items of all pages, each once: an item moves to the next page when a newer one arrives between two requests. */
export function itemsOf<Item>(pages: { items: Item[] }[] | undefined, keyOf: (item: Item) => string): Item[] {
  const found = new Map<string, Item>();
  for (const item of pages?.flatMap((page) => page.items) ?? []) {
    if (!found.has(keyOf(item))) found.set(keyOf(item), item);
  }
  return [...found.values()];
}

/** `agent` or `agent:session`, as the broker writes a mailbox. */
export function mailboxName({ agentId, sessionId }: MailboxKey): string {
  return sessionId === undefined ? agentId : `${agentId}:${sessionId}`;
}

/** Whether the hub accepts an id for a session. */
export function isSessionId(id: string): boolean {
  return id.length <= MAX_ID_CHARS && /^[A-Za-z0-9_-]+$/.test(id);
}

/** Text of an entry. An error without a reason of its own has the name of its outcome. */
export function entryText({ role, text: written }: Pick<LogEntry, 'role' | 'text'>): string {
  return (role === 'system' ? text.sessions.outcomes[written] : undefined) ?? written.trim();
}

/** Whether a text is folded until the user expands it. */
export function isLong(written: string): boolean {
  return written.length > FOLDED_CHARS || written.split('\n').length > FOLDED_LINES;
}

/** First line of a message: its text, or its payload in one line. */
export function excerpt({ payload, text: written }: RoutedMessage): string {
  const line = (written ?? textOf(payload) ?? JSON.stringify(payload) ?? '').trim().split('\n')[0] ?? '';
  return line.length > EXCERPT_CHARS ? `${line.slice(0, EXCERPT_CHARS)}…` : line;
}

function textOf(payload: unknown): string | undefined {
  if (typeof payload !== 'object' || payload === null || !('text' in payload)) return undefined;
  return typeof payload.text === 'string' && payload.text.trim() !== '' ? payload.text : undefined;
}

/** Content of a message as text: a payload as indented JSON. */
export function content({ payload, text: written }: RoutedMessage): string {
  return written ?? JSON.stringify(payload, null, 2) ?? '';
}

/** Editable form of the setting for automatic turns. Empty fields have their default. */
export interface AutoRunForm {
  /** `inherit` uses the setting of the agent. */
  mode: 'inherit' | 'on' | 'off';
  model: string;
  seconds: string;
  batch: string;
}

export function formOf(autoRun: AutoRunSetting | null): AutoRunForm {
  return {
    mode: autoRun === null ? 'inherit' : autoRun.enabled ? 'on' : 'off',
    model: autoRun?.triageModel ?? '',
    seconds: autoRun === null ? '' : String(autoRun.debounceMs / 1000),
    batch: autoRun === null ? '' : String(autoRun.maxBatchSize),
  };
}

export function changesOf({ mode, model, seconds, batch }: AutoRunForm): AutoRunChanges | null {
  if (mode === 'inherit') return null;
  return {
    enabled: mode === 'on',
    ...(model.trim() !== '' && { triageModel: model.trim() }),
    ...(seconds !== '' && { debounceMs: Math.round(Number(seconds) * 1000) }),
    ...(batch !== '' && { maxBatchSize: Number(batch) }),
  };
}

/** The setting that applies to a session: its own, or that of the agent. */
export function hasAutomaticTurns(own: AutoRunSetting | null, ofAgent: AutoRunSetting | null): boolean {
  return (own ?? ofAgent)?.enabled ?? false;
}

/** Numbers of decisions that ended a batch of messages, in one line. Other decisions are steps on the way. */
export function turnSummary(statistics: TurnPage['statistics']): string {
  const counted = Object.entries(text.turns.totals).flatMap(([kind, label]) => {
    const count = statistics[kind] ?? 0;
    return count === 0 ? [] : [label(count)];
  });
  return counted.join(' · ');
}

export function reasonName(reason: string): string {
  return text.mail.reasons[reason] ?? reason.replaceAll('_', ' ');
}
