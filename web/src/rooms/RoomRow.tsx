import { Archive, MoreHorizontal, Pin, Snowflake } from 'lucide-react';
import { memo } from 'react';
import { apiRequest } from '../api/http';
import type { RoomEntry } from '../chat/state';
import { stripDirectionMarks } from '../markdown/hiddenCharacters';
import { roomPath } from '../router';
import { text } from '../text';
import { classes } from '../ui/classes';
import { Link } from '../ui/link';
import { Menu, MenuItem, MenuLabel, MenuLine } from '../ui/menu';
import { shortTime } from '../ui/time';
import type { NotificationPref } from '../generated/api';

export const RoomRow = memo(function RoomRow({ room, isOpen }: { room: RoomEntry; isOpen: boolean }) {
  const isUnread = room.unread > 0;
  return (
    <li className="group/row relative">
      <Link
        href={roomPath(room.id)}
        aria-current={isOpen ? 'page' : undefined}
        className={classes('block rounded-lg px-2.5 py-1.5', isOpen ? 'bg-chosen' : 'hover:bg-hover')}
      >
        <span className="flex items-baseline gap-1.5">
          <span className={classes('truncate', isUnread || isOpen ? 'font-semibold' : 'font-medium')}>{room.name}</span>
          {room.frozenAt !== undefined && (
            <Snowflake size={12} aria-label={text.rooms.frozen} className="shrink-0 self-center text-faint" />
          )}
          <time className="ml-auto shrink-0 text-xs text-faint group-focus-within/row:invisible group-hover/row:invisible pointer-coarse:visible! pointer-coarse:mr-6">
            {room.recent !== undefined && shortTime(Date.parse(room.recent.createdAt), Date.now())}
          </time>
        </span>
        <span className="flex items-center gap-2">
          <span className={classes('truncate text-sm', isUnread ? 'text-soft' : 'text-faint')}>
            {room.recent === undefined ? ' ' : `${room.recent.senderName}: ${oneLine(room.recent.content)}`}
          </span>
          <Badge room={room} />
        </span>
      </Link>
      <RoomMenu room={room} />
    </li>
  );
});

function Badge({ room }: { room: RoomEntry }) {
  if (room.mentions > 0) {
    return (
      <span
        aria-label={text.rooms.mentions(room.mentions)}
        className="ml-auto shrink-0 rounded-full bg-accent px-1.5 text-xs leading-[1.125rem] font-semibold text-on-accent"
      >
        @{room.mentions}
      </span>
    );
  }
  if (room.unread === 0) return null;
  return (
    <span
      aria-label={text.rooms.unread(room.unread)}
      className="ml-auto shrink-0 rounded-full bg-line-strong/60 px-1.5 text-xs leading-[1.125rem] font-semibold text-ink"
    >
      {room.unread > 99 ? '99+' : room.unread}
    </span>
  );
}

const PREFERENCES: [NotificationPref, string][] = [
  ['all', text.rooms.notifyAll],
  ['mentions', text.rooms.notifyMentions],
  ['none', text.rooms.notifyNone],
];

function RoomMenu({ room }: { room: RoomEntry }) {
  const change = (path: string, body?: unknown) => void apiRequest('PUT', `/api/rooms/${room.id}/${path}`, body);
  const isPinned = room.pinnedAt !== undefined;
  const isArchived = room.archivedAt !== undefined;
  return (
    <Menu
      trigger={
        <button
          type="button"
          aria-label={text.rooms.options(room.name)}
          className="absolute top-1 right-1.5 flex size-6 items-center justify-center rounded-md text-faint opacity-0 group-hover/row:opacity-100 hover:bg-line hover:text-ink focus-visible:opacity-100 data-[state=open]:opacity-100 pointer-coarse:opacity-100"
        >
          <MoreHorizontal size={15} />
        </button>
      }
    >
      <MenuItem icon={<Pin size={15} />} onSelect={() => change('pin')}>
        {isPinned ? text.rooms.unpin : text.rooms.pin}
      </MenuItem>
      <MenuItem icon={<Archive size={15} />} onSelect={() => change('archive')}>
        {isArchived ? text.rooms.unarchive : text.rooms.archive}
      </MenuItem>
      <MenuLine />
      <MenuLabel>{text.rooms.notify}</MenuLabel>
      {PREFERENCES.map(([pref, label]) => (
        <MenuItem
          key={pref}
          checked={room.notificationPref === pref}
          onSelect={() => change('notification-pref', { pref })}
        >
          {label}
        </MenuItem>
      ))}
    </Menu>
  );
}

/** Preview of a message on one line, without Markdown characters. */
function oneLine(content: string): string {
  return stripDirectionMarks(content).replace(/[*_`#>]+/g, '').replace(/\s+/g, ' ').slice(0, 120);
}
