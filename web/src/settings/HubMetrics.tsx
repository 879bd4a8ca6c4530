import { useQuery } from '@tanstack/react-query';
import { file } from '../api/http';
import { bytes, compact, text } from '../text';
import { classes } from '../ui/classes';
import { fullTime } from '../ui/time';
import { Block } from './Block';
import { quantile, samplesIn, valueOf, type Sample } from './metrics';

const REFRESH_INTERVAL_MS = 5000;
/** Values longer than this are shown in a smaller font. */
const LONG_VALUE_CHARS = 16;
const TEXT = text.settings.metrics;

/** For admins: the most important metrics of the hub. */
export function HubMetrics() {
  const { data: samples } = useQuery({
    queryKey: ['metrics'],
    queryFn: async () => samplesIn(await (await file('/metrics')).text()),
    refetchInterval: REFRESH_INTERVAL_MS,
  });
  if (samples === undefined) return null;
  return (
    <Block title={TEXT.heading} lead={TEXT.lead}>
      <dl className="grid grid-cols-2 gap-3 sm:grid-cols-3" aria-label={TEXT.heading}>
        {metricRows(samples, Date.now()).map(([name, value]) => (
          <div key={name} className="rounded-xl border bg-raised px-3.5 py-2.5">
            <dt className="text-xs text-faint">{name}</dt>
            <dd
              className={classes(
                'font-semibold tracking-tight tabular-nums',
                value.length > LONG_VALUE_CHARS ? 'text-sm leading-snug' : 'truncate text-lg',
              )}
            >
              {value}
            </dd>
          </div>
        ))}
      </dl>
    </Block>
  );
}

function metricRows(samples: Sample[], now: number): [string, string][] {
  const sockets = (endpoint: string) =>
    samples.find((sample) => sample.name === 'parlor_sockets' && sample.labels['endpoint'] === endpoint)?.value ?? 0;
  const number = (name: string) => valueOf(samples, name) ?? 0;
  const failed = samples.find(({ name, labels }) => name === 'parlor_commands_total' && labels['outcome'] === 'failed');
  const backup = valueOf(samples, 'parlor_last_backup_timestamp_seconds');
  const expiry = valueOf(samples, 'parlor_tls_expiry_timestamp_seconds');
  const median = quantile(samples, 'parlor_answer_seconds', 0.5);
  const p99 = quantile(samples, 'parlor_answer_seconds', 0.99);
  return [
    [TEXT.state, number('parlor_healthy') === 1 ? text.settings.healthy : TEXT.unhealthy],
    [TEXT.clients, compact(sockets('/ws/client'))],
    [TEXT.gateways, compact(sockets('/ws/gateway'))],
    [TEXT.uptime, uptime(now / 1000 - number('process_start_time_seconds'))],
    [TEXT.events, compact(number('parlor_head_seq'))],
    [TEXT.disk, bytes(number('parlor_database_bytes') + number('parlor_journal_bytes'))],
    [TEXT.memory, bytes(number('process_resident_memory_bytes'))],
    [TEXT.responseTime, median === undefined || p99 === undefined ? '–' : TEXT.percentiles(milliseconds(median), milliseconds(p99))],
    [TEXT.failed, compact(failed?.value ?? 0)],
    [TEXT.backup, backup === undefined ? TEXT.never : fullTime(backup * 1000)],
    ...(expiry === undefined ? [] : [[TEXT.certificate, fullTime(expiry * 1000)] as [string, string]]),
  ];
}

function milliseconds(seconds: number): string {
  return (seconds * 1000).toLocaleString('en', { maximumFractionDigits: 1 });
}

function uptime(seconds: number): string {
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  return days > 0 ? TEXT.days(days, hours) : TEXT.hours(hours, minutes);
}
