import { Hash } from 'lucide-react';
import { useState } from 'react';
import { apiRequest } from '../api/http';
import { useChat } from '../chat/store';
import type { LoggedMessage } from '../chat/message';
import { stripDirectionMarks } from '../markdown/hiddenCharacters';
import { matching } from '../palette/matching';
import { navigate, roomPath } from '../router';
import { Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Dialog } from '../ui/dialog';
import { SearchField } from '../ui/field';

const MAX_ROOMS = 8;

/** Forwards a message to another room. */
export function ForwardDialog({ message, onClose }: { message: LoggedMessage; onClose: () => void }) {
  const [written, setWritten] = useState('');
  const rooms = useChat((state) => state.rooms);
  const { attempt, problem, isBusy } = useSubmit();
  const others = Object.values(rooms).filter((room) => room.id !== message.roomId && room.archivedAt === undefined);
  const found = matching(others.map((room) => ({ ...room, words: room.name })), written).slice(0, MAX_ROOMS);
  const forward = (targetRoomId: string) =>
    attempt(async () => {
      await apiRequest('POST', `/api/messages/${message.id}/forward`, { targetRoomId });
      onClose();
      navigate(roomPath(targetRoomId));
    });
  return (
    <Dialog open onClose={onClose} title={text.timeline.forward} lead={text.timeline.forwardLead}>
      <p className="mb-4 line-clamp-3 rounded-lg bg-code px-3 py-2 text-sm whitespace-pre-wrap">{stripDirectionMarks(message.text)}</p>
      <SearchField label={text.timeline.forwardTo} value={written} onChange={setWritten} autoFocus />
      <ul className="mt-2">
        {found.length === 0 && <li className="px-2 py-3 text-sm text-faint">{text.palette.noResults}</li>}
        {found.map((room) => (
          <li key={room.id}>
            <button
              type="button"
              disabled={isBusy}
              onClick={() => void forward(room.id)}
              className="flex w-full items-center gap-2.5 rounded-lg px-2 py-2 text-left text-sm hover:bg-hover"
            >
              <Hash size={15} aria-hidden className="text-faint" />
              <span className="truncate">{room.name}</span>
            </button>
          </li>
        ))}
      </ul>
      <Problem>{problem}</Problem>
    </Dialog>
  );
}
