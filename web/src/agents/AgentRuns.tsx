import { useQuery } from '@tanstack/react-query';
import { apiResult } from '../api/http';
import { useChat } from '../chat/store';
import type { TurnDelivery } from '../generated/api';
import { roomPath } from '../router';
import { Block } from '../settings/Block';
import { compact, text } from '../text';
import { Link } from '../ui/link';
import { shortTime, fullTime } from '../ui/time';
import { roomsOf } from './rooms';
import { costOf, secondsOf, tokensOf } from './labels';

const REFRESH_INTERVAL_MS = 5000;

/** Rooms and recent runs of an agent. */
export function AgentRuns({ agentId }: { agentId: string }) {
  const path = `/api/agents/${encodeURIComponent(agentId)}`;
  const rooms = useQuery(roomsOf(agentId));
  const runs = useQuery({
    queryKey: ['agents', agentId, 'runs'],
    queryFn: () => apiResult<TurnDelivery[]>('GET', `${path}/runs`),
    refetchInterval: REFRESH_INTERVAL_MS,
  });
  return (
    <>
      {rooms.data !== undefined && rooms.data.length > 0 && (
        <Block title={text.agents.rooms}>
          <ul aria-label={text.agents.rooms} className="flex flex-wrap gap-2">
            {rooms.data.map((room) => (
              <li key={room.id}>
                <Link href={roomPath(room.id)} className="block rounded-lg border px-3 py-1 text-sm hover:bg-hover">
                  {room.name}
                </Link>
              </li>
            ))}
          </ul>
        </Block>
      )}
      {runs.data !== undefined && runs.data.length > 0 && (
        <Block title={text.agents.runs} lead={summary(runs.data)}>
          <ul aria-label={text.agents.runs} className="divide-y rounded-xl border">
            {runs.data.map((run) => (
              <RunRow key={run.runId} run={run} />
            ))}
          </ul>
        </Block>
      )}
    </>
  );
}

function RunRow({ run }: { run: TurnDelivery }) {
  const { roomId } = run;
  const room = useChat((state) => (roomId === undefined ? undefined : state.rooms[roomId]?.name));
  const at = Date.parse(run.queuedAt);
  const target = run.replyId ?? run.messageId;
  const row = (
    <>
        <span className="min-w-0 flex-1 truncate">
          <span className={hasFailed(run) ? 'font-medium text-danger' : 'font-medium'}>
            {text.agents.runStatus[run.status] ?? run.status}
          </span>{' '}
          <span className="text-faint">{room ?? run.sessionId}</span>
          {run.reason !== undefined && <span className="text-soft"> · {run.reason}</span>}
        </span>
        <span className="shrink-0 text-xs text-faint tabular-nums">{usageSummary([run])}</span>
        <time dateTime={run.queuedAt} title={fullTime(at)} className="shrink-0 text-xs text-faint">
          {shortTime(at, Date.now())}
        </time>
    </>
  );
  const className = 'flex items-baseline gap-3 px-4 py-2 text-sm';
  return (
    <li>
      {roomId === undefined ? (
        <div className={className}>{row}</div>
      ) : (
        <Link href={roomPath(roomId, target)} className={`${className} hover:bg-hover`}>
          {row}
        </Link>
      )}
    </li>
  );
}

function hasFailed({ status }: TurnDelivery): boolean {
  return status === 'failed' || status === 'interrupted';
}

function summary(runs: TurnDelivery[]): string {
  return [text.agents.turns(runs.length), text.agents.failures(runs.filter(hasFailed).length), usageSummary(runs)].filter(Boolean).join(' · ');
}

function usageSummary(runs: TurnDelivery[]): string {
  const [tokens, cost, seconds] = [tokensOf(runs), costOf(runs), secondsOf(runs)];
  return [
    tokens > 0 ? `${compact(tokens)} ${text.agents.tokens}` : '',
    cost > 0 ? text.runs.cost((cost / 1e6).toFixed(cost < 1e6 ? 4 : 2)) : '',
    seconds > 0 ? text.runs.seconds(seconds) : '',
  ]
    .filter(Boolean)
    .join(' · ');
}
