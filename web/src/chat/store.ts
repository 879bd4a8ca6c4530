/** The state of this tab. Actions that come in one frame of the screen are one change of it. */
import { create } from 'zustand';
import type { ChatAction } from './actions';
import { reduce } from './reducer';
import { emptyState, type ChatState } from './state';

export const useChat = create<ChatState>(() => emptyState);

/** A picture in between stays as it was: scrolling and typing need the time, and eyes do not see it. */
const LEAST_MS = 30;

let waiting: ChatAction[] = [];
let isPlanned = false;
let flushedAt = 0;

/** At once: for what the person in front of the screen does. */
export function dispatch(action: ChatAction): void {
  flush();
  apply([action]);
}

/** With one of the next frames: hundreds of pieces of text a second are one change for each picture. */
export function dispatchSoon(actions: ChatAction[]): void {
  waiting.push(...actions);
  if (isPlanned || waiting.length === 0) return;
  isPlanned = true;
  // A page that is not to be seen draws no frames.
  if (document.hidden) setTimeout(flush, 50);
  else requestAnimationFrame(flushInTime);
}

function flushInTime(now: number): void {
  if (now - flushedAt < LEAST_MS && !document.hidden) requestAnimationFrame(flushInTime);
  else flush();
}

export function flush(): void {
  isPlanned = false;
  flushedAt = performance.now();
  const actions = waiting;
  waiting = [];
  if (actions.length > 0) apply(actions);
}

function apply(actions: ChatAction[]): void {
  const now = Date.now();
  useChat.setState((state) => actions.reduce((next, action) => reduce(next, action, now), state), true);
}
