import { AlertCircle, CornerUpLeft, Pin } from 'lucide-react';
import { memo, useState, type FocusEvent } from 'react';
import { useChat } from '../chat/store';
import { isStored, repliedToId, type ChatMessage, type RejectedMessage } from '../chat/message';
import type { Relayed, RoomRole } from '../generated/api';
import { MessageText } from '../markdown/MessageText';
import { stripDirectionMarks } from '../markdown/hiddenCharacters';
import type { Writing } from '../rooms/RoomPage';
import { navigate, roomPath } from '../router';
import { AgentBody } from '../runs/AgentBody';
import { useClient } from '../session/session';
import { text } from '../text';
import { Avatar } from '../ui/avatar';
import { classes } from '../ui/classes';
import { clock, fullTime } from '../ui/time';
import { Attachments } from './Attachments';
import { MessageActions } from './MessageActions';
import { Reactions } from './Reactions';

interface Props {
  message: ChatMessage;
  isContinued: boolean;
  isMarked: boolean;
  isPinned: boolean;
  repliedTo: ChatMessage | undefined;
  roomRole: RoomRole;
  onWrite: (writing: Writing) => void;
}

const NO_NAMES: readonly string[] = [];

export const MessageRow = memo(function MessageRow(props: Props) {
  const { message, isContinued, isMarked, isPinned, repliedTo, roomRole, onWrite } = props;
  const mine = useChat((state) => state.me?.names) ?? NO_NAMES;
  const [isHovered, setHovered] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const onBlur = (event: FocusEvent<HTMLElement>) => {
    if (!event.currentTarget.contains(event.relatedTarget)) setHovered(false);
  };
  const logged = isStored(message) ? message : undefined;
  const parentId = repliedToId(message);
  const names = logged?.mentions ?? NO_NAMES;
  return (
    <article
      aria-label={`${message.senderName}, ${clock(message.timestampMs)}`}
      tabIndex={-1}
      onPointerEnter={() => setHovered(true)}
      onPointerLeave={() => setHovered(false)}
      onFocus={() => setHovered(true)}
      onBlur={onBlur}
      className={classes(
        'group/message relative flex gap-3 rounded-lg px-4 outline-none focus-visible:ring-2 focus-visible:ring-accent focus-visible:ring-inset md:px-5',
        isContinued ? 'py-0.5' : 'pt-2.5 pb-0.5',
        isMarked ? 'bg-warn-soft' : isHovered && 'bg-hover/50',
        message.state === 'sending' && 'opacity-60',
      )}
    >
      <div className="relative w-9 shrink-0">
        {isContinued ? (
          <time className="absolute top-0.5 right-0 text-[0.6875rem] whitespace-nowrap leading-5 text-faint opacity-0 group-hover/message:opacity-100">
            {clock(message.timestampMs)}
          </time>
        ) : (
          <Avatar {...senderOf(message)} kind={message.senderType} />
        )}
      </div>
      <div className="min-w-0 flex-1">
        {!isContinued && <Byline message={message} isPinned={isPinned} />}
        {parentId !== undefined && <Quote roomId={message.roomId} messageId={parentId} repliedTo={repliedTo} />}
        {logged?.forwardedFrom !== undefined && (
          <p className="text-xs text-faint">{text.timeline.forwarded(logged.forwardedFrom.senderName)}</p>
        )}
        {message.role === 'agent' ? (
          <AgentBody message={message} names={names} mine={mine} />
        ) : (
          message.text !== '' && <MessageText text={message.text} names={names} mine={mine} />
        )}
        {logged?.editedAt !== undefined && (
          <span className="text-xs text-faint" title={fullTime(Date.parse(logged.editedAt))}>
            ({text.timeline.edited})
          </span>
        )}
        {'attachments' in message && <Attachments attachments={message.attachments} />}
        {logged !== undefined && <Reactions message={logged} />}
        {message.state === 'rejected' && <NotSent message={message} />}
      </div>
      {logged !== undefined && (isHovered || isBusy) && (
        <MessageActions {...{ message: logged, isPinned, roomRole, onWrite, onBusy: setBusy }} />
      )}
    </article>
  );
});

function Byline({ message, isPinned }: { message: ChatMessage; isPinned: boolean }) {
  return (
    <header className="flex items-baseline gap-2 leading-tight">
      <span className="truncate font-semibold">{stripDirectionMarks(senderOf(message).name)}</span>
      {message.role === 'agent' && (
        <span className="rounded bg-accent-soft px-1 py-px text-[0.6875rem] font-medium text-accent">{text.agent}</span>
      )}
      {isStored(message) && message.relayed !== undefined && <RelayedBadge relayed={message.relayed} />}
      <time
        dateTime={message.timestamp}
        title={fullTime(message.timestampMs)}
        className="shrink-0 text-xs text-faint tabular-nums"
      >
        {clock(message.timestampMs)}
      </time>
      {isPinned && <Pin size={12} className="self-center text-accent" aria-label={text.rooms.pinned} />}
    </header>
  );
}

/** Identity for the avatar and the byline. An unverified author does not get the identity of the account. */
function senderOf(message: ChatMessage): { id: string; name: string } {
  const { from, senderName } = message;
  const relayed = isStored(message) ? message.relayed : undefined;
  if (relayed === undefined || relayed.verified) return { id: from, name: senderName };
  return { id: `unverified:${relayed.author}`, name: relayed.author };
}

/** Trust and addressees of a message from outside the hub. */
function RelayedBadge({ relayed }: { relayed: Relayed }) {
  const addressed = stripDirectionMarks(text.timeline.addressed(relayed.recipient, relayed.observers));
  return (
    <>
      {!relayed.verified && (
        <span
          title={text.timeline.unverifiedWhy}
          className="shrink-0 rounded bg-warn-soft px-1 py-px text-[0.6875rem] font-medium text-warn"
        >
          {text.timeline.unverified}
        </span>
      )}
      <span title={addressed} className="min-w-0 shrink-[99] truncate text-xs text-faint">
        {addressed}
      </span>
    </>
  );
}

interface QuoteProps {
  roomId: string;
  messageId: string;
  /** The quoted message, if it is loaded. */
  repliedTo: ChatMessage | undefined;
}

function Quote({ roomId, messageId, repliedTo }: QuoteProps) {
  const show = () => navigate(roomPath(roomId, messageId));
  return (
    <button
      type="button"
      onClick={show}
      className="mb-0.5 flex max-w-full items-center gap-1.5 rounded text-left text-sm text-faint hover:text-soft"
    >
      <CornerUpLeft size={13} className="shrink-0" />
      {repliedTo === undefined ? (
        <span className="italic">{text.timeline.originalUnavailable}</span>
      ) : (
        <span className="truncate">
          <span className="font-medium">{repliedTo.senderName}</span> {stripDirectionMarks(repliedTo.text.slice(0, 160))}
        </span>
      )}
    </button>
  );
}

function NotSent({ message }: { message: RejectedMessage }) {
  const client = useClient();
  return (
    <p role="alert" className="flex flex-wrap items-center gap-2 text-sm text-danger">
      <AlertCircle size={14} />
      {text.timeline.notSent}: {message.failure}
      <button type="button" className="underline" onClick={() => client.outbox.retry(message)}>
        {text.retry}
      </button>
      <button type="button" className="underline" onClick={() => client.outbox.discard(message)}>
        {text.timeline.discard}
      </button>
    </p>
  );
}
