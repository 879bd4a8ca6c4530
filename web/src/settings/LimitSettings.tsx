import { useQuery } from '@tanstack/react-query';
import { apiResult } from '../api/http';
import type { Limit, LimitKind } from '../generated/api';
import { bytes, text } from '../text';
import { Block, Problem } from './Block';

const TEXT = text.settings.limit;
const KINDS: LimitKind[] = ['budget', 'rate', 'connection', 'size'];

/** For admins: limits of the hub with the keys of their settings. */
export function LimitSettings() {
  const { data: limits, error, isPending } = useQuery({
    queryKey: ['limits'],
    queryFn: () => apiResult<Limit[]>('GET', '/api/limits'),
  });
  return (
    <div className="space-y-10" aria-busy={isPending}>
      <p className="text-sm text-soft">{TEXT.lead}</p>
      <Problem>{error?.message}</Problem>
      {limits !== undefined &&
        KINDS.map((kind) => (
          <Block key={kind} title={TEXT.kinds[kind].title} lead={TEXT.kinds[kind].lead}>
            <dl aria-label={TEXT.kinds[kind].title} className="divide-y rounded-xl border">
              {limits
                .filter((limit) => limit.kind === kind)
                .map((limit) => (
                  <Row key={limit.key} limit={limit} />
                ))}
            </dl>
          </Block>
        ))}
    </div>
  );
}

function Row({ limit }: { limit: Limit }) {
  return (
    <div className="flex items-baseline gap-4 px-4 py-2.5 text-sm">
      <dt className="min-w-0 flex-1">
        {limit.about}
        <code className="block font-mono text-xs break-all text-faint">{limit.key}</code>
      </dt>
      <dd className="shrink-0 font-semibold tabular-nums">{formatLimit(limit)}</dd>
    </div>
  );
}

function formatLimit({ value, unit }: Limit): string {
  if (value === null) return TEXT.none;
  if (unit === 'bytes') return bytes(value);
  const number = value.toLocaleString('en');
  return unit === 'seconds' ? `${number} s` : number;
}
