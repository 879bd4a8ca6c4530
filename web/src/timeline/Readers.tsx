import { useChat } from '../chat/store';
import { isStored, type ChatMessage } from '../chat/message';
import type { RoomEntry } from '../chat/state';
import { text } from '../text';

/** Members who have read the last message, if the user sent it. */
export function Readers({ room, messages }: { room: RoomEntry; messages: ChatMessage[] }) {
  const me = useChat((state) => state.me?.id);
  const last = messages.findLast(isStored);
  if (last === undefined || last.from !== me) return null;
  const readers = room.members.filter(
    (member) => member.memberId !== me && member.memberType === 'user' && (member.lastReadAt ?? '') >= last.timestamp,
  );
  if (readers.length === 0) return null;
  const names = readers.map((member) => member.displayName).join(', ');
  return (
    <p className="mx-auto max-w-3xl truncate px-5 pb-1 text-right text-xs text-faint">{text.timeline.seenBy(names)}</p>
  );
}
