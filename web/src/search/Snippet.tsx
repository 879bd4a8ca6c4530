import type { ReactNode } from 'react';
import type { Hit } from '../generated/api';
import { stripDirectionMarks } from '../markdown/hiddenCharacters';

/** Excerpt of a search hit with highlighted matches. */
export function Snippet({ hit }: { hit: Pick<Hit, 'snippet' | 'highlights'> }) {
  const parts: ReactNode[] = [];
  let from = 0;
  for (const { start, end } of hit.highlights) {
    parts.push(stripDirectionMarks(hit.snippet.slice(from, start)));
    parts.push(
      <mark key={start} className="rounded-xs bg-warn-soft text-warn">
        {stripDirectionMarks(hit.snippet.slice(start, end))}
      </mark>,
    );
    from = end;
  }
  return (
    <>
      {parts}
      {stripDirectionMarks(hit.snippet.slice(from))}
    </>
  );
}
