import { useInfiniteQuery } from '@tanstack/react-query';
import type { TurnEntry } from '../generated/api';
import { escapeHidden } from '../markdown/hiddenCharacters';
import { Block, Problem } from '../settings/Block';
import { text } from '../text';
import { Button } from '../ui/button';
import { fullTime, shortTime } from '../ui/time';
import { Badge, type Tone } from './Badge';
import { itemsOf, turnsOf, turnSummary } from './mail';

const TONES: Record<string, Tone> = {
  completed: 'accent',
  answered: 'accent',
  held: 'warn',
  retried: 'warn',
  dead_lettered: 'danger',
};

/** Decisions about automatic turns of an agent, for its owner. The section is hidden while the list is empty. */
export function Turns({ agentId }: { agentId: string }) {
  const { data, error, isFetchingNextPage, hasNextPage, fetchNextPage } = useInfiniteQuery(turnsOf(agentId));
  const turns = itemsOf(data?.pages, (turn) => turn.id);
  if (error !== null) return <Problem>{error.message}</Problem>;
  if (turns.length === 0) return null;
  const summary = turnSummary(data?.pages[0]?.statistics ?? {});
  return (
    <Block title={text.turns.heading} lead={text.turns.lead}>
      {summary !== '' && <p className="text-sm">{summary}</p>}
      <ul aria-label={text.turns.heading} className="divide-y overflow-hidden rounded-xl border">
        {turns.map((turn) => (
          <Entry key={turn.id} turn={turn} />
        ))}
      </ul>
      {hasNextPage && (
        <Button size="small" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          {text.search.more}
        </Button>
      )}
    </Block>
  );
}

function Entry({ turn }: { turn: TurnEntry }) {
  const { decision, sessionId, reason, attempt, messageIds } = turn;
  const at = Date.parse(turn.at);
  const facts = [
    messageIds.length > 0 ? text.turns.messages(messageIds.length) : '',
    attempt > 1 ? text.turns.attempt(attempt) : '',
  ];
  return (
    <li className="flex items-start gap-2 px-3 py-2 text-sm">
      <span className="flex min-w-0 flex-1 flex-wrap items-center gap-x-2 gap-y-1">
        <Badge tone={TONES[decision] ?? 'plain'}>{text.turns.decisions[decision] ?? decision}</Badge>
        <span className="font-mono text-xs">{sessionId}</span>
        <span className="text-xs text-faint">{facts.filter(Boolean).join(' · ')}</span>
        {reason !== undefined && (
          <span className="line-clamp-2 w-full text-soft [overflow-wrap:anywhere]" title={escapeHidden(reason)}>
            {escapeHidden(reason)}
          </span>
        )}
      </span>
      <time dateTime={turn.at} title={fullTime(at)} className="shrink-0 py-0.5 text-xs text-faint">
        {shortTime(at, Date.now())}
      </time>
    </li>
  );
}
