import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { LogEntry } from '../generated/api';
import { escapeHidden } from '../markdown/hiddenCharacters';
import { Problem } from '../settings/Block';
import { text } from '../text';
import { Button } from '../ui/button';
import { classes } from '../ui/classes';
import { fullTime, shortTime } from '../ui/time';
import { Badge, type Tone } from './Badge';
import { entryText, isLong, itemsOf, logOf } from './mail';

const TONES: Record<string, Tone> = {
  result: 'accent',
  'auto-turn-result': 'accent',
  error: 'danger',
  'auto-turn-error': 'danger',
};

/** Conversation log of a session, oldest entry first. It begins with the latest page. */
export function Conversation({ agentId, session, label }: { agentId: string; session: string; label: string }) {
  const { data, error, isFetchingNextPage, hasNextPage, fetchNextPage } = useInfiniteQuery(logOf(agentId, session));
  const entries = itemsOf(data?.pages, (entry) => entry.id).reverse();
  if (error !== null) return <Problem>{error.message}</Problem>;
  if (data === undefined) return null;
  if (entries.length === 0) return <p className="text-sm text-faint">{text.sessions.noConversation}</p>;
  return (
    <>
      {hasNextPage && (
        <Button size="small" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          {text.sessions.earlier}
        </Button>
      )}
      <ol aria-label={label} className="divide-y overflow-hidden rounded-xl border">
        {entries.map((entry) => (
          <Entry key={entry.id} entry={entry} />
        ))}
      </ol>
    </>
  );
}

/** Prompts, results and errors are text of others: they are shown as text with escaped control characters and direction marks. */
function Entry({ entry }: { entry: LogEntry }) {
  const [isWhole, setWhole] = useState(false);
  const at = Date.parse(entry.at);
  const written = entryText(entry);
  const canFold = isLong(written);
  return (
    <li className="space-y-1 px-3 py-2.5 text-sm">
      <div className="flex items-center justify-between gap-2">
        <Badge tone={TONES[entry.type] ?? 'plain'}>{text.sessions.entries[entry.type] ?? entry.type}</Badge>
        <time dateTime={entry.at} title={fullTime(at)} className="shrink-0 text-xs text-faint">
          {shortTime(at, Date.now())}
        </time>
      </div>
      {written === '' ? (
        <p className="text-faint">{text.sessions.noText}</p>
      ) : (
        <p className={classes('whitespace-pre-wrap [overflow-wrap:anywhere]', canFold && !isWhole && 'line-clamp-12')}>
          {written.split('\n').map(escapeHidden).join('\n')}
        </p>
      )}
      {canFold && (
        <Button size="small" variant="plain" className="-mb-1 -ml-2.5 align-top" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? text.sessions.showLess : text.sessions.showAll}
        </Button>
      )}
    </li>
  );
}
