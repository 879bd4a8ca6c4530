/** From messages to the rows of the list: days between them, and who goes on without being named anew. */
import type { ChatMessage } from '../chat/state';
import { dayOf } from '../ui/time';

export type Row =
  | { kind: 'beginning'; key: string }
  | { kind: 'day'; key: string; ms: number }
  | { kind: 'message'; key: string; message: ChatMessage; isContinued: boolean };

/** Later than this, who speaks is named again. */
const PAUSE_MS = 5 * 60_000;

export function rowsOf(messages: ChatMessage[], isWhole: boolean): Row[] {
  const rows: Row[] = isWhole ? [{ kind: 'beginning', key: 'beginning' }] : [];
  let before: ChatMessage | undefined;
  for (const message of messages) {
    const isNewDay = before === undefined || dayOf(before.timestampMs) !== dayOf(message.timestampMs);
    if (isNewDay) rows.push({ kind: 'day', key: `day-${dayOf(message.timestampMs)}`, ms: message.timestampMs });
    const isContinued = !isNewDay && before !== undefined && continues(before, message);
    rows.push({ kind: 'message', key: keyOf(message), message, isContinued });
    before = message;
  }
  return rows;
}

/** One that was sent keeps its row when the hub has given it an id. */
function keyOf(message: ChatMessage): string {
  return message.clientMessageId ?? message.id;
}

function continues(before: ChatMessage, message: ChatMessage): boolean {
  return (
    before.from === message.from &&
    before.role === message.role &&
    message.role === 'user' &&
    message.replyToId === undefined &&
    message.forwardedFrom === undefined &&
    message.timestampMs - before.timestampMs < PAUSE_MS
  );
}
