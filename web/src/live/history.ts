/** Loads the messages of a room in pages, with the plans and the usage of their runs. */
import { apiRequest, apiResult } from '../api/http';
import { dispatch, flush, useChat } from '../chat/store';
import { isStoredReply } from '../chat/message';
import type { RoomChat } from '../chat/state';
import type { History, TurnDelivery } from '../generated/api';
import type { PlanData } from '../generated/frames';
import { planOf } from './events';
import { fromMessage, runOf } from './messages';

const PAGE_SIZE = 50;
const SEARCH_PAGE_SIZE = 200;
/** Maximum number of history pages loaded to find the message of a link. */
const MAX_PAGES = 40;
/** Maximum number of agents per room whose runs are requested. */
const MAX_AGENTS = 20;
const RETRY_DELAY_MS = 3000;

interface StoredPlan {
  run_id: string;
  plan: PlanData;
}

export class HistoryLoader {
  #retryTimer: ReturnType<typeof setTimeout> | undefined;

  stop(): void {
    clearTimeout(this.#retryTimer);
  }

  /** Loads the newest messages of a room, unless they are loaded and current. */
  async load(roomId: string): Promise<void> {
    const history = chatOf(roomId)?.history ?? 'unread';
    if (history !== 'unread' && history !== 'stale') return;
    await this.#loadPage(roomId, undefined, PAGE_SIZE);
    const plans = await apiRequest<StoredPlan[]>('GET', `/api/plan?session_id=${encodeURIComponent(roomId)}`).catch(() => []);
    dispatch({
      type: 'PLANS_LOADED',
      roomId,
      plans: plans.map(({ run_id: runId, plan }) => ({ runId, plan: planOf(plan) })),
    });
    await loadRuns(roomId);
  }

  async loadOlder(roomId: string): Promise<void> {
    const chat = chatOf(roomId);
    if (chat?.history !== 'ready' || chat.olderCursor === undefined) return;
    await this.#loadPage(roomId, chat.olderCursor, PAGE_SIZE);
  }

  /** Loads older messages until the given one is loaded. Returns whether it was found. */
  async find(roomId: string, messageId: string): Promise<boolean> {
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const chat = chatOf(roomId);
      if (chat?.messages.some((message) => message.id === messageId)) return true;
      if (chat?.history !== 'ready' || chat.olderCursor === undefined) return false;
      await this.#loadPage(roomId, chat.olderCursor, SEARCH_PAGE_SIZE);
    }
    return false;
  }

  async #loadPage(roomId: string, cursor: string | undefined, limit: number): Promise<void> {
    // After a resync, messages may be missing or deleted: the loaded page replaces them.
    const replace = chatOf(roomId)?.history === 'stale';
    dispatch({ type: 'HISTORY_LOADING', roomId });
    const query = new URLSearchParams({ limit: String(limit), ...(cursor !== undefined && { cursor }) });
    try {
      const page = await apiResult<History>('GET', `/api/messages/rooms/${roomId}?${query}`);
      // Applies frames received since the request before the page is merged.
      flush();
      const olderCursor = page.hasMore ? page.nextCursor : undefined;
      dispatch({ type: 'HISTORY_LOADED', roomId, messages: page.items.map(fromMessage), olderCursor, replace });
    } catch {
      dispatch({ type: 'HISTORY_FAILED', roomId });
      this.#retryTimer = setTimeout(() => {
        if (roomId === useChat.getState().openRoom) void this.load(roomId);
      }, RETRY_DELAY_MS);
    }
  }
}

/** Loads duration and token usage of the runs behind the loaded replies. */
async function loadRuns(roomId: string): Promise<void> {
  const replies = chatOf(roomId)?.messages.filter(isStoredReply).filter((reply) => reply.runId !== undefined) ?? [];
  const agents = [...new Set(replies.map((reply) => reply.from))].slice(0, MAX_AGENTS);
  const requests = agents.map((id) => apiResult<TurnDelivery[]>('GET', `/api/agents/${encodeURIComponent(id)}/runs?limit=200`));
  // The request fails for an agent that was removed: its runs are skipped.
  const runs = (await Promise.allSettled(requests)).flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
  dispatch({ type: 'RUNS_LOADED', roomId, runs: runs.map(runOf) });
}

function chatOf(roomId: string): RoomChat | undefined {
  return useChat.getState().chats[roomId];
}
