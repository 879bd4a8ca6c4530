import { useQuery } from '@tanstack/react-query';
import { file } from '../api/http';
import { bytes, compact, text } from '../text';
import { classes } from '../ui/classes';
import { whole } from '../ui/time';
import { Block } from './Block';
import { quantile, samplesIn, valueOf, type Sample } from './metrics';

const OFTEN_MS = 5000;
/** More letters than this are a sentence, and no figure. */
const LONG = 16;
const WORDS = text.settings.figures;

/** For admins: how the hub is doing, in a few numbers. */
export function HubMetrics() {
  const { data: samples } = useQuery({
    queryKey: ['figures'],
    queryFn: async () => samplesIn(await (await file('/metrics')).text()),
    refetchInterval: OFTEN_MS,
  });
  if (samples === undefined) return null;
  return (
    <Block title={WORDS.heading} lead={WORDS.lead}>
      <dl className="grid grid-cols-2 gap-3 sm:grid-cols-3" aria-label={WORDS.heading}>
        {figures(samples, Date.now()).map(([name, value]) => (
          <div key={name} className="rounded-xl border bg-raised px-3.5 py-2.5">
            <dt className="text-xs text-faint">{name}</dt>
            <dd
              className={classes(
                'font-semibold tracking-tight tabular-nums',
                value.length > LONG ? 'text-sm leading-snug' : 'truncate text-lg',
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

function figures(samples: Sample[], now: number): [string, string][] {
  const sockets = (door: string) =>
    samples.find((sample) => sample.name === 'parlor_sockets' && sample.labels['door'] === door)?.value ?? 0;
  const number = (name: string) => valueOf(samples, name) ?? 0;
  const failed = samples.find(({ name, labels }) => name === 'parlor_commands_total' && labels['outcome'] === 'failed');
  const backup = valueOf(samples, 'parlor_last_backup_timestamp_seconds');
  const expiry = valueOf(samples, 'parlor_tls_expiry_timestamp_seconds');
  const middle = quantile(samples, 'parlor_answer_seconds', 0.5);
  const most = quantile(samples, 'parlor_answer_seconds', 0.99);
  return [
    [WORDS.state, number('parlor_healthy') === 1 ? text.settings.stateGood : WORDS.ill],
    [WORDS.pages, compact(sockets('/ws/client'))],
    [WORDS.machines, compact(sockets('/ws/gateway'))],
    [WORDS.up, span(now / 1000 - number('process_start_time_seconds'))],
    [WORDS.events, compact(number('parlor_head_seq'))],
    [WORDS.disk, bytes(number('parlor_database_bytes') + number('parlor_journal_bytes'))],
    [WORDS.memory, bytes(number('process_resident_memory_bytes'))],
    [WORDS.quick, middle === undefined || most === undefined ? '–' : WORDS.quickly(milliseconds(middle), milliseconds(most))],
    [WORDS.failed, compact(failed?.value ?? 0)],
    [WORDS.backup, backup === undefined ? WORDS.never : whole(backup * 1000)],
    ...(expiry === undefined ? [] : [[WORDS.certificate, whole(expiry * 1000)] as [string, string]]),
  ];
}

function milliseconds(seconds: number): string {
  return (seconds * 1000).toLocaleString('en', { maximumFractionDigits: 1 });
}

function span(seconds: number): string {
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  return days > 0 ? WORDS.days(days, hours) : WORDS.hours(hours, minutes);
}
