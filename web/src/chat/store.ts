/**
 * Store for the chat state of this tab. Batches actions, so that React renders at most once per animation
 * frame.
 */
import { create } from 'zustand';
import type { ChatAction } from './actions';
import { reduce } from './reducer';
import { emptyState, type ChatState } from './state';

export const useChat = create<ChatState>(() => emptyState);

/** Minimum time between two batched updates. Leaves time for scrolling and typing while replies stream. */
const MIN_FLUSH_INTERVAL_MS = 30;

let batch: ChatAction[] = [];
let isFlushScheduled = false;
let flushedAt = 0;

/** Applies an action immediately, after all batched ones. For actions of the user. */
export function dispatch(action: ChatAction): void {
  flush();
  apply([action]);
}

/**
 * Batches actions until one of the next animation frames. For frames from the hub, which may be hundreds a
 * second.
 */
export function dispatchSoon(actions: ChatAction[]): void {
  batch.push(...actions);
  if (isFlushScheduled || batch.length === 0) return;
  isFlushScheduled = true;
  // Hidden tabs get no animation frames.
  if (document.hidden) setTimeout(flush, 50);
  else requestAnimationFrame(flushWhenDue);
}

function flushWhenDue(now: number): void {
  if (now - flushedAt < MIN_FLUSH_INTERVAL_MS && !document.hidden) requestAnimationFrame(flushWhenDue);
  else flush();
}

export function flush(): void {
  isFlushScheduled = false;
  flushedAt = performance.now();
  const actions = batch;
  batch = [];
  if (actions.length > 0) apply(actions);
}

function apply(actions: ChatAction[]): void {
  const now = Date.now();
  useChat.setState((state) => actions.reduce((next, action) => reduce(next, action, now), state), true);
}
