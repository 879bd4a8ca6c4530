import { useInfiniteQuery } from '@tanstack/react-query';
import type { MailCopy } from '../generated/api';
import { Problem } from '../settings/Block';
import { text } from '../text';
import { Button } from '../ui/button';
import { fullTime } from '../ui/time';
import { Badge, type Tone } from './Badge';
import { itemsOf, mailboxName, mailOf } from './mail';
import { MessageEntry } from './MessageEntry';

const TONES: Record<string, Tone> = { pending: 'accent', leased: 'warn', dead: 'danger' };

/** Messages of a mailbox, newest first. */
export function Inbox({ agentId, session, label }: { agentId: string; session: string | undefined; label: string }) {
  const { data, error, isFetchingNextPage, hasNextPage, fetchNextPage } = useInfiniteQuery(mailOf(agentId, session));
  const mail = itemsOf(data?.pages, (copy) => copy.message.id);
  if (error !== null) return <Problem>{error.message}</Problem>;
  if (data === undefined) return null;
  if (mail.length === 0) return <p className="text-sm text-faint">{text.mail.empty}</p>;
  return (
    <>
      <ul aria-label={label} className="divide-y overflow-hidden rounded-xl border">
        {mail.map((copy) => (
          <Entry key={copy.message.id} copy={copy} />
        ))}
      </ul>
      {hasNextPage && (
        <Button size="small" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          {text.search.more}
        </Button>
      )}
    </>
  );
}

function Entry({ copy }: { copy: MailCopy }) {
  const { message, state, attempts, leasedUntil, handledBy } = copy;
  const badge = <Badge tone={TONES[state] ?? 'plain'}>{text.mail.states[state] ?? state}</Badge>;
  return (
    <MessageEntry
      message={message}
      badge={badge}
      facts={[
        [text.mail.attempts, attempts === 0 ? undefined : String(attempts)],
        [text.mail.leasedUntil, leasedUntil === undefined ? undefined : fullTime(Date.parse(leasedUntil))],
        [text.mail.handledBy, handledBy.length === 0 ? undefined : handledBy.map(mailboxName).join(', ')],
      ]}
    />
  );
}
