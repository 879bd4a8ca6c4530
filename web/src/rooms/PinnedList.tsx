import type { RoomChat } from '../chat/state';
import { stripDirectionMarks } from '../markdown/hiddenCharacters';
import { navigate, roomPath } from '../router';
import { text } from '../text';
import { Section } from './Section';

export function PinnedList({ chat }: { chat: RoomChat }) {
  const pinned = chat.messages.filter((message) => chat.pinned[message.id] === true);
  if (pinned.length === 0) return null;
  return (
    <Section title={text.details.pinned}>
      <ul className="space-y-1.5">
        {pinned.map((message) => (
          <li key={message.id}>
            <button
              type="button"
              className="w-full rounded-lg border px-3 py-2 text-left text-sm hover:bg-hover"
              onClick={() => navigate(roomPath(message.roomId, message.id))}
            >
              <span className="font-medium">{message.senderName}</span>
              <span className="line-clamp-2 text-soft">{stripDirectionMarks(message.text)}</span>
            </button>
          </li>
        ))}
      </ul>
    </Section>
  );
}
