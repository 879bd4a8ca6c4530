/** The four phases of a reply. They decide how the message is rendered. */
import { toolNames, type Reply, type StreamingReply } from './message';

export type MessagePhase = 'thinking' | 'working' | 'streaming' | 'done';

/** Status texts that agents send before they do anything. They do not count as activity. */
const TRANSIENT = new Set(['Thinking...', 'Thinking…', 'Model loading...', 'Model loading…', 'Running']);

export function isTransient(status: string): boolean {
  return TRANSIENT.has(status.trim());
}

export function getMessagePhase(message: Reply): MessagePhase {
  if (message.state !== 'streaming') return 'done';
  if (message.isThinking) return 'thinking';
  return hasActivity(message) ? 'working' : 'streaming';
}

function hasActivity(message: StreamingReply): boolean {
  const statuses = [...toolNames(message), message.activitySummary ?? ''];
  return statuses.some((status) => status !== '' && !isTransient(status));
}
