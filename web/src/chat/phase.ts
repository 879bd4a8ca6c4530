/** Which of its four phases a message is in: what is drawn follows from it. */
import type { ChatMessage } from './state';

export type MessagePhase = 'thinking' | 'working' | 'streaming' | 'done';

/** Said while nothing is done yet: no activity. */
const TRANSIENT = new Set(['Thinking...', 'Thinking…', 'Model loading...', 'Model loading…', 'Running']);

export function isTransient(status: string): boolean {
  return TRANSIENT.has(status.trim());
}

export function getMessagePhase(message: ChatMessage): MessagePhase {
  if (!message.isGenerating) return 'done';
  if (message.isThinking) return 'thinking';
  return hasActivity(message) ? 'working' : 'streaming';
}

function hasActivity(message: ChatMessage): boolean {
  const statuses = [...(message.activityEntries ?? []), message.activitySummary ?? ''];
  return statuses.some((status) => status !== '' && !isTransient(status));
}
