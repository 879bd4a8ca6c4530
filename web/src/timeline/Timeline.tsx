import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual';
import { ArrowDown } from 'lucide-react';
import { useEffect, useEffectEvent, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { repliedToId } from '../chat/message';
import type { RoomChat, RoomEntry } from '../chat/state';
import type { Writing } from '../rooms/RoomPage';
import { useClient } from '../session/session';
import { text } from '../text';
import { Boundary } from '../ui/boundary';
import { Button } from '../ui/button';
import { classes } from '../ui/classes';
import { dayName } from '../ui/time';
import { onMessageKey } from './keys';
import { MessageRow } from './MessageRow';
import { Readers } from './Readers';
import { rowsOf, type Row } from './rows';

interface Props {
  room: RoomEntry;
  chat: RoomChat;
  /** Id of the message to scroll to and highlight. */
  target: string | undefined;
  onWrite: (writing: Writing) => void;
}

/** Distance from the end, in pixels, within which the list follows new messages. */
const END_THRESHOLD_PX = 80;
const END_CHECK_INTERVAL_MS = 150;
/** Distance from the beginning, in pixels, at which older messages are loaded. */
const LOAD_OLDER_THRESHOLD_PX = 600;

export function Timeline({ room, chat, target, onWrite }: Props) {
  const client = useClient();
  const scroller = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const [marked, setMarked] = useState<string>();
  const isComplete = chat.history === 'ready' && chat.olderCursor === undefined;
  const rows = useMemo(() => rowsOf(chat.messages, isComplete), [chat.messages, isComplete]);
  // Throttled: `isAtEnd` forces a layout, and streaming text changes on every frame.
  const endCheck = useRef<ReturnType<typeof setTimeout>>(undefined);
  const checkEndSoon = (instance: Virtualizer<HTMLDivElement, Element>) => {
    endCheck.current ??= setTimeout(() => {
      endCheck.current = undefined;
      setAtEnd(instance.isAtEnd());
    }, END_CHECK_INTERVAL_MS);
  };
  useEffect(() => () => clearTimeout(endCheck.current), []);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (rows[index]?.kind === 'message' ? 64 : 40),
    getItemKey: (index) => rows[index]?.key ?? index,
    anchorTo: 'end',
    followOnAppend: true,
    scrollEndThreshold: END_THRESHOLD_PX,
    overscan: 8,
    paddingEnd: 12,
    onChange: checkEndSoon,
  });

  // Stays at the end when a card below or the keyboard of a phone makes the list smaller.
  const isFollowing = useRef(true);
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const sizes = new ResizeObserver(() => isFollowing.current && virtualizer.scrollToEnd());
    sizes.observe(element);
    return () => sizes.disconnect();
  }, [virtualizer]);
  // Scrolls to a message that the user has just sent.
  const pendingId = chat.messages.findLast((message) => message.state === 'sending')?.id;
  useLayoutEffect(() => {
    if (pendingId !== undefined) virtualizer.scrollToEnd();
  }, [pendingId, virtualizer]);

  const isFilled = chat.history === 'ready';
  // Scrolls to the end twice: when first messages such as a streaming reply appear, and when the history is
  // loaded.
  const loadStage = isFilled ? 2 : chat.messages.length > 0 ? 1 : 0;
  const scrolledStage = useRef(0);
  useLayoutEffect(() => {
    if (loadStage <= scrolledStage.current) return;
    scrolledStage.current = loadStage;
    if (target === undefined && isFollowing.current) virtualizer.scrollToEnd();
  }, [loadStage, target, virtualizer]);

  useEffect(() => {
    if (target === undefined || !isFilled) return;
    void client.loader.history.find(room.id, target).then((isFound) => isFound && setMarked(target));
  }, [client, room.id, target, isFilled]);
  // An effect event: rows change all the time, but only a new target may scroll.
  const scrollTo = useEffectEvent((messageId: string) => {
    const index = rows.findIndex((row) => row.kind === 'message' && row.message.id === messageId);
    if (index >= 0) virtualizer.scrollToIndex(index, { align: 'center' });
  });
  useEffect(() => {
    if (marked !== undefined) scrollTo(marked);
  }, [marked]);

  const onScroll = () => {
    isFollowing.current = virtualizer.isAtEnd();
    fetchOlder();
  };
  const fetchOlder = () => {
    if ((scroller.current?.scrollTop ?? Infinity) < LOAD_OLDER_THRESHOLD_PX) void client.loader.history.loadOlder(room.id);
  };
  // Messages that do not fill the screen cannot be scrolled, so older ones are loaded without a scroll event.
  const fetchOlderOnChange = useEffectEvent(fetchOlder);
  useEffect(() => {
    fetchOlderOnChange();
  }, [client, room.id, chat.history, chat.messages.length]);

  const items = virtualizer.getVirtualItems();
  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={scroller}
        onScroll={onScroll}
        onKeyDown={onMessageKey}
        // Not announced live: the chunks of a streaming reply would interrupt a screen reader all the time.
        role="log"
        aria-live="off"
        aria-label={text.timeline.label}
        aria-busy={chat.history === 'loading'}
        className="flex h-full flex-col overflow-y-auto overscroll-contain [scrollbar-gutter:stable_both-edges]"
      >
        {/* `mt-auto`: a short list is aligned to the bottom, above the message field. */}
        <div className="relative mx-auto mt-auto w-full max-w-3xl shrink-0" style={{ height: virtualizer.getTotalSize() }}>
          {items.map((item) => {
            const row = rows[item.index];
            return (
              <div
                key={item.key}
                ref={virtualizer.measureElement}
                data-index={item.index}
                className="absolute inset-x-0 top-0"
                style={{ transform: `translateY(${item.start}px)` }}
              >
                {row !== undefined && (
                  <Boundary>
                    <TimelineRow {...{ row, room, chat, onWrite, marked }} />
                  </Boundary>
                )}
              </div>
            );
          })}
        </div>
        <Readers room={room} messages={chat.messages} />
      </div>
      {chat.history === 'loading' && chat.messages.length === 0 && <Skeleton />}
      {!isAtEnd && chat.messages.length > 0 && (
        <Button
          size="small"
          className="absolute right-5 bottom-3 animate-appear rounded-full shadow-float"
          onClick={() => virtualizer.scrollToEnd({ behavior: 'smooth' })}
        >
          <ArrowDown size={14} />
          {text.timeline.jumpToLatest}
        </Button>
      )}
    </div>
  );
}

interface RowProps {
  row: Row;
  room: RoomEntry;
  chat: RoomChat;
  onWrite: (writing: Writing) => void;
  /** Id of the highlighted message. */
  marked: string | undefined;
}

function TimelineRow({ row, room, chat, onWrite, marked }: RowProps) {
  switch (row.kind) {
    case 'beginning':
      return (
        <p className="px-4 pt-10 pb-4 text-center text-sm text-faint md:px-5">{text.timeline.beginning(room.name)}</p>
      );
    case 'day':
      return (
        <div className="flex items-center gap-4 px-4 py-3 md:px-5" role="separator">
          <span className="h-px flex-1 bg-line" />
          <span className="text-xs font-medium text-faint">{dayName(row.ms, Date.now())}</span>
          <span className="h-px flex-1 bg-line" />
        </div>
      );
    case 'message': {
      const { message } = row;
      const parentId = repliedToId(message);
      return (
        <MessageRow
          message={message}
          isContinued={row.isContinued}
          isMarked={message.id === marked}
          isPinned={chat.pinned[message.id] === true}
          repliedTo={parentId === undefined ? undefined : chat.messages.find((other) => other.id === parentId)}
          roomRole={room.role}
          onWrite={onWrite}
        />
      );
    }
  }
}

const WIDTHS = ['w-3/5', 'w-2/5', 'w-4/5', 'w-1/2'];

function Skeleton() {
  return (
    <div aria-hidden className="absolute inset-x-0 bottom-4 mx-auto max-w-3xl space-y-6 px-5">
      {WIDTHS.map((width) => (
        <div key={width} className="flex animate-pulse-soft gap-3">
          <div className="size-9 rounded-full bg-hover" />
          <div className="flex-1 space-y-2 pt-1">
            <div className="h-3 w-28 rounded bg-hover" />
            <div className={classes('h-3 rounded bg-hover', width)} />
          </div>
        </div>
      ))}
    </div>
  );
}
