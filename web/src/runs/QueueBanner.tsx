import { ChevronRight, Hourglass, X } from 'lucide-react';
import { apiRequest } from '../api/http';
import type { QueuedItem } from '../chat/state';
import { text } from '../text';
import { IconButton } from '../ui/button';

/** Cancels a queued run. Its message stays in the room. */
function cancelQueued(roomId: string, { agentId, id }: QueuedItem): void {
  void apiRequest('DELETE', `/api/queue?${new URLSearchParams({ session_id: roomId, agent_id: agentId, id })}`);
}

/** Messages that are queued for busy agents. */
export function QueueBanner({ roomId, queue }: { roomId: string; queue: QueuedItem[] }) {
  if (queue.length === 0) return null;
  return (
    <details className="group mb-2 rounded-xl border bg-raised px-3 py-2 text-sm">
      <summary className="flex items-center gap-2 text-soft">
        <Hourglass size={14} className="text-accent" />
        <span className="flex-1">{text.runs.queue(queue.length)}</span>
        <ChevronRight size={14} className="text-faint transition-transform group-open:rotate-90" />
      </summary>
      <ul className="mt-1.5 space-y-1 text-faint">
        {queue.map((item) => (
          <li key={item.id} className="flex items-center gap-2">
            <span className="min-w-0 flex-1 truncate">{item.preview}</span>
            <IconButton label={text.runs.unqueue} className="size-6" onClick={() => cancelQueued(roomId, item)}>
              <X size={13} />
            </IconButton>
          </li>
        ))}
      </ul>
    </details>
  );
}
