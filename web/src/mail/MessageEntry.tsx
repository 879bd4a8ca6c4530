import { ChevronRight } from 'lucide-react';
import { useId, useState, type ReactNode } from 'react';
import type { RoutedMessage } from '../generated/api';
import { escapeHidden } from '../markdown/hiddenCharacters';
import { text } from '../text';
import { classes } from '../ui/classes';
import { fullTime, shortTime } from '../ui/time';
import { content, excerpt } from './mail';

export type Fact = [name: string, value: string | undefined];

interface Props {
  message: RoutedMessage;
  badge: ReactNode;
  /** Name of the mailbox, if the list has messages of several. */
  recipient?: string | undefined;
  /** Facts below the content, without those that have no value. */
  facts: Fact[];
  /** Shown beside the entry. */
  action?: ReactNode;
  /** Shown below the entry. */
  children?: ReactNode;
}

/**
 * Message of a mailbox, which can be expanded. Paths, names and payloads are text of others: they are shown as text
 * with escaped control characters and direction marks.
 */
export function MessageEntry({ message, badge, recipient, facts, action, children }: Props) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const at = Date.parse(message.at);
  return (
    <li>
      <div className="sm:flex sm:items-center">
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls={id}
          onClick={() => setOpen(!isOpen)}
          className="flex w-full min-w-0 items-start gap-2.5 px-3 py-2.5 text-left text-sm hover:bg-hover"
        >
          <ChevronRight
            size={16}
            aria-hidden
            className={classes('mt-0.5 shrink-0 text-faint transition-transform', isOpen && 'rotate-90')}
          />
          <span className="min-w-0 flex-1">
            <span className="flex items-start gap-2">
              <span className="flex min-w-0 flex-1 flex-wrap items-center gap-x-2 gap-y-1">
                {badge}
                <span className="max-w-full min-w-0 truncate font-mono text-xs">{escapeHidden(message.path)}</span>
                <span className="max-w-full min-w-0 truncate text-xs text-faint">
                  {text.mail.from(escapeHidden(message.fromName))}
                  {recipient !== undefined && ` ${text.mail.to(recipient)}`}
                </span>
              </span>
              <time dateTime={message.at} title={fullTime(at)} className="shrink-0 py-0.5 text-xs text-faint">
                {shortTime(at, Date.now())}
              </time>
            </span>
            <span className="mt-0.5 block truncate text-soft">{escapeHidden(excerpt(message))}</span>
          </span>
        </button>
        {action !== undefined && <div className="shrink-0 px-3 max-sm:pb-2.5 max-sm:pl-9.5">{action}</div>}
      </div>
      {isOpen && (
        <div id={id} className="space-y-3 px-3 pt-1.5 pb-3 pl-9.5">
          <pre
            tabIndex={0}
            aria-label={text.mail.payload}
            className="max-h-72 overflow-auto rounded-lg bg-code px-3 py-2 font-mono text-xs whitespace-pre-wrap [overflow-wrap:anywhere]"
          >
            {content(message).split('\n').map(escapeHidden).join('\n')}
          </pre>
          <Facts facts={[...ownFacts(message), ...facts]} />
        </div>
      )}
      {children}
    </li>
  );
}

function ownFacts({ from, fromName, command, source, externalId, id }: RoutedMessage): Fact[] {
  return [
    [text.mail.sender, from === fromName ? undefined : from],
    [text.mail.command, command],
    [text.mail.source, source],
    [text.mail.externalId, externalId],
    [text.mail.messageId, id],
  ];
}

function Facts({ facts }: { facts: Fact[] }) {
  return (
    <dl className="grid gap-x-4 gap-y-1 text-xs sm:grid-cols-[7rem_1fr]">
      {facts.map(
        ([name, value]) =>
          value !== undefined && (
            <div key={name} className="contents">
              <dt className="text-faint">{name}</dt>
              <dd className="min-w-0 [overflow-wrap:anywhere]">{escapeHidden(value)}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
