import { CircleCheckBig, CircleX } from 'lucide-react';
import type { FinalizedTask } from '../chat/parts';
import { stripDirectionMarks } from '../markdown/hiddenCharacters';
import { text } from '../text';

/** Result of a task that was assigned to an agent. */
export function FinalizeTaskBlock({ task }: { task: FinalizedTask }) {
  const isDone = task.status === 'completed';
  return (
    <section aria-label={text.runs.task} className="flex gap-2.5 rounded-xl border bg-raised px-3 py-2 text-sm">
      {isDone ? (
        <CircleCheckBig size={16} aria-hidden className="mt-0.5 text-accent" />
      ) : (
        <CircleX size={16} aria-hidden className="mt-0.5 text-danger" />
      )}
      <div className="min-w-0">
        <p>
          <span className="font-semibold">{isDone ? text.runs.taskDone : text.runs.taskFailed}</span> {stripDirectionMarks(task.title)}
        </p>
        {task.result !== undefined && <p className="mt-0.5 whitespace-pre-wrap text-soft">{stripDirectionMarks(task.result)}</p>}
      </div>
    </section>
  );
}
