import { useEffect, useState } from 'react';
import type { RoomChat, RoomEntry } from '../chat/state';
import { text } from '../text';

/** Names of the users who are typing. Keeps its height when empty, so that the layout does not jump. */
export function TypingLine({ chat, room }: { chat: RoomChat; room: RoomEntry }) {
  const [now, setNow] = useState(Date.now);
  const typing = Object.entries(chat.typing).filter(([, { until }]) => until > now);
  const next = Math.min(...typing.map(([, { until }]) => until));
  useEffect(() => {
    setNow(Date.now());
  }, [chat.typing]);
  useEffect(() => {
    if (!Number.isFinite(next)) return;
    const timer = setTimeout(() => setNow(Date.now()), next - Date.now() + 10);
    return () => clearTimeout(timer);
  }, [next]);
  const nameOf = (userId: string, name: string) =>
    room.members.find((member) => member.memberId === userId)?.displayName ?? name;
  return (
    <p role="status" className="h-5 truncate px-3 pt-0.5 text-xs text-faint">
      {typing.length > 0 && text.composer.typing(typing.map(([userId, { name }]) => nameOf(userId, name)))}
    </p>
  );
}
