import { Check, CornerDownRight, LoaderCircle, X } from 'lucide-react';
import type { SubagentTreeEntry } from '../chat/parts';
import { text } from '../text';

/** Tree of the subagents of a run. */
export function SubagentTreeView({ entries }: { entries: SubagentTreeEntry[] }) {
  const known = new Set(entries.map((entry) => entry.id));
  const roots = entries.filter((entry) => entry.parentId === undefined || !known.has(entry.parentId));
  return (
    <section aria-label={text.runs.subagents} className="rounded-xl border bg-raised px-3 py-2 text-sm">
      <ul className="space-y-1">
        {roots.map((entry) => (
          <Subagent key={entry.id} entry={entry} entries={entries} />
        ))}
      </ul>
    </section>
  );
}

function Subagent({ entry, entries }: { entry: SubagentTreeEntry; entries: SubagentTreeEntry[] }) {
  const children = entries.filter((other) => other.parentId === entry.id && other.id !== entry.id);
  return (
    <li>
      <div className="flex items-center gap-2">
        <State status={entry.status} />
        <span className="shrink-0 font-medium">{entry.id}</span>
        <span className="truncate text-soft">{entry.result ?? entry.activity ?? entry.task}</span>
      </div>
      {children.length > 0 && (
        <ul className="mt-1 ml-2 space-y-1 border-l-2 pl-3">
          {children.map((child) => (
            <Subagent key={child.id} entry={child} entries={entries} />
          ))}
        </ul>
      )}
    </li>
  );
}

function State({ status }: { status: SubagentTreeEntry['status'] }) {
  const label = text.runs.subagentStatus[status];
  switch (status) {
    case 'running':
      return <LoaderCircle size={14} className="shrink-0 animate-spin text-accent" aria-label={label} />;
    case 'complete':
      return <Check size={14} className="shrink-0 text-accent" aria-label={label} />;
    case 'failed':
      return <X size={14} className="shrink-0 text-danger" aria-label={label} />;
    case 'cancelled':
      return <CornerDownRight size={14} className="shrink-0 text-faint" aria-label={label} />;
  }
}
