/** Builds the rows of the message list: messages, day separators, and the beginning of the room. */
import { clientIdOf, isStored, type ChatMessage } from '../chat/message';
import { dayOf } from '../ui/time';

export type Row =
  | { kind: 'beginning'; key: string }
  | { kind: 'day'; key: string; ms: number }
  | { kind: 'message'; key: string; message: ChatMessage; isContinued: boolean };

/** Gap between two messages of a sender after which the name is shown again. */
const BYLINE_GAP_MS = 5 * 60_000;

export function rowsOf(messages: ChatMessage[], isComplete: boolean): Row[] {
  const rows: Row[] = isComplete ? [{ kind: 'beginning', key: 'beginning' }] : [];
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

/** Stable key: a sent message keeps its row when the hub assigns its id. */
function keyOf(message: ChatMessage): string {
  return clientIdOf(message) ?? message.id;
}

function continues(before: ChatMessage, message: ChatMessage): boolean {
  return (
    before.from === message.from &&
    before.role === 'user' &&
    message.role === 'user' &&
    message.replyToId === undefined &&
    !(isStored(message) && (message.forwardedFrom !== undefined || message.relayed !== undefined)) &&
    !(isStored(before) && before.relayed !== undefined) &&
    message.timestampMs - before.timestampMs < BYLINE_GAP_MS
  );
}
