import { Hourglass } from 'lucide-react';
import type { QueuedItem } from '../chat/state';
import { text } from '../text';

/** What was said to an agent that is busy, and waits. */
export function QueueBanner({ queue }: { queue: QueuedItem[] }) {
  if (queue.length === 0) return null;
  return (
    <details className="mb-2 rounded-xl border bg-raised px-3 py-2 text-sm">
      <summary className="flex items-center gap-2 text-soft">
        <Hourglass size={14} className="text-accent" />
        {text.runs.queue(queue.length)}
      </summary>
      <ul className="mt-1.5 space-y-1 text-faint">
        {queue.map((item) => (
          <li key={item.id} className="truncate">
            {item.preview}
          </li>
        ))}
      </ul>
    </details>
  );
}
