import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { RotateCcw, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { apiRequest, apiResult } from '../api/http';
import type { DeadLetter, Resend, Resent } from '../generated/api';
import { Badge } from '../mail/Badge';
import { deadLetters, itemsOf, mailboxName, reasonName } from '../mail/mail';
import { MessageEntry } from '../mail/MessageEntry';
import { text } from '../text';
import { Button } from '../ui/button';
import { ConfirmDialog } from '../ui/dialog';
import { Block, Problem } from './Block';
import { useSubmit } from './useSubmit';

/** For admins: messages that reached no mailbox, and messages that no program acknowledged. */
export function DeadLetterSettings() {
  const { data, error, isFetching, hasNextPage, fetchNextPage } = useInfiniteQuery(deadLetters);
  const [delivered, setDelivered] = useState<string>();
  const letters = itemsOf(data?.pages, keyOf);
  return (
    <Block title={text.mail.deadLetters} lead={text.mail.deadLettersLead}>
      <Problem>{error?.message}</Problem>
      {delivered !== undefined && (
        <p role="status" className="text-sm text-accent">
          {text.mail.resent(delivered)}
        </p>
      )}
      <ul aria-label={text.mail.deadLetters} aria-busy={isFetching} className="divide-y overflow-hidden rounded-xl border">
        {letters.map((letter) => (
          <Entry key={keyOf(letter)} letter={letter} onResent={setDelivered} />
        ))}
        {letters.length === 0 && data !== undefined && (
          <li className="px-4 py-6 text-center text-sm text-faint">{text.mail.noDeadLetters}</li>
        )}
      </ul>
      <div className="flex gap-2">
        {hasNextPage && (
          <Button disabled={isFetching} onClick={() => void fetchNextPage()}>
            {text.search.more}
          </Button>
        )}
        {letters.length > 0 && <ClearAll />}
      </div>
    </Block>
  );
}

function keyOf({ message, mailbox }: DeadLetter): string {
  return `${message.id} ${mailbox === undefined ? '' : mailboxName(mailbox)}`;
}

function Entry({ letter, onResent }: { letter: DeadLetter; onResent: (mailboxes: string) => void }) {
  const { message, mailbox, reason } = letter;
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const resend = () =>
    attempt(async () => {
      const body: Resend = mailbox ?? {};
      const { mailboxes } = await apiResult<Resent>('POST', `/api/dead-letters/${encodeURIComponent(message.id)}/resend`, body);
      onResent(mailboxes.map(mailboxName).join(', '));
      await queries.invalidateQueries({ queryKey: deadLetters.queryKey });
    });
  const action = (
    <Button size="small" disabled={isBusy} onClick={() => void resend()}>
      <RotateCcw size={14} aria-hidden />
      {text.mail.resend}
    </Button>
  );
  return (
    <MessageEntry
      message={message}
      badge={<Badge tone="danger">{reasonName(reason)}</Badge>}
      recipient={mailbox === undefined ? undefined : mailboxName(mailbox)}
      facts={[]}
      action={action}
    >
      {problem !== undefined && (
        <div className="px-3 pb-2 pl-9.5">
          <Problem>{problem}</Problem>
        </div>
      )}
    </MessageEntry>
  );
}

function ClearAll() {
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const [isAsking, setAsking] = useState(false);
  const clear = () =>
    attempt(async () => {
      await apiRequest('DELETE', '/api/dead-letters');
      setAsking(false);
      await queries.invalidateQueries({ queryKey: deadLetters.queryKey });
    });
  return (
    <>
      <Button variant="danger" className="ml-auto" onClick={() => setAsking(true)}>
        <Trash2 size={15} aria-hidden />
        {text.mail.clear}
      </Button>
      {isAsking && (
        <ConfirmDialog
          title={text.mail.clear}
          lead={problem ?? text.mail.clearConfirm}
          isBusy={isBusy}
          onConfirm={() => void clear()}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}
