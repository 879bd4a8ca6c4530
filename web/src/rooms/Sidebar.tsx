import { Bot, ChevronRight, LogOut, Plus, Search, Settings as Gear, Target, WifiOff } from 'lucide-react';
import { useMemo, type ReactNode } from 'react';
import { useChat } from '../chat/store';
import type { RoomEntry } from '../chat/state';
import { AGENTS_PATH, MISSIONS_PATH, navigate, settingsPath, type Route } from '../router';
import { signOut, useSession } from '../session/session';
import { text } from '../text';
import { Avatar } from '../ui/avatar';
import { Button, IconButton } from '../ui/button';
import { classes } from '../ui/classes';
import { Link } from '../ui/link';
import { Menu, MenuItem, MenuLine } from '../ui/menu';
import { showNewRoom, showPalette } from '../view';
import { groups } from './order';
import { RoomRow } from './RoomRow';

interface Props {
  roomId: string | undefined;
  place: Route['name'];
  isWide: boolean;
}

export function Sidebar({ roomId, place, isWide }: Props) {
  const rooms = useChat((state) => state.rooms);
  const isLoaded = useChat((state) => state.roomsLoaded);
  const { pinned, others, archived } = useMemo(() => groups(Object.values(rooms)), [rooms]);
  const isEmpty = isLoaded && pinned.length + others.length + archived.length === 0;
  return (
    <nav
      aria-label={text.rooms.heading}
      className={classes('flex h-full flex-col bg-ground', isWide ? 'w-72 shrink-0 border-r' : 'w-full')}
    >
      <header className="flex items-center gap-2 px-3 pt-3 pb-2">
        <UserMenu />
        <IconButton label={text.rooms.create} onClick={() => showNewRoom(true)}>
          <Plus size={18} />
        </IconButton>
      </header>
      <div className="px-3 pb-2">
        <button
          type="button"
          onClick={() => showPalette(true)}
          title={text.rooms.searchHint}
          className="flex h-8 w-full items-center gap-2 rounded-lg border bg-surface px-2.5 text-sm text-faint hover:border-line-strong"
        >
          <Search size={14} />
          <span className="flex-1 text-left">{text.rooms.search}</span>
          <kbd className="hidden font-sans text-xs md:block">{shortcut()}</kbd>
        </button>
      </div>
      <div className="px-2 pb-3">
        <NavLink href={AGENTS_PATH} icon={<Bot size={16} aria-hidden />} isOpen={place === 'agents'}>
          {text.agents.heading}
        </NavLink>
        <NavLink href={MISSIONS_PATH} icon={<Target size={16} aria-hidden />} isOpen={place === 'missions'}>
          {text.missions.heading}
        </NavLink>
      </div>
      <div className="flex-1 space-y-4 overflow-y-auto px-2 pb-4">
        <Group label={text.rooms.pinned} rooms={pinned} roomId={roomId} />
        <Group label={text.rooms.others} rooms={others} roomId={roomId} />
        {archived.length > 0 && (
          <details className="group/archive">
            <summary className="flex items-center gap-1 rounded px-2 py-1 text-xs font-medium text-faint hover:text-soft">
              <ChevronRight size={12} className="transition-transform group-open/archive:rotate-90" />
              {text.rooms.archived}
            </summary>
            <Rows rooms={archived} roomId={roomId} />
          </details>
        )}
        {!isLoaded && <LoadingSkeleton />}
        {isEmpty && <EmptyList />}
      </div>
      <ConnectionState />
    </nav>
  );
}

interface NavLinkProps {
  href: string;
  icon: ReactNode;
  isOpen: boolean;
  children: string;
}

function NavLink({ href, icon, isOpen, children }: NavLinkProps) {
  return (
    <Link
      href={href}
      aria-current={isOpen ? 'page' : undefined}
      className={classes(
        'flex items-center gap-2.5 rounded-lg px-2.5 py-1.5 text-sm font-medium',
        isOpen ? 'bg-chosen' : 'text-soft hover:bg-hover hover:text-ink',
      )}
    >
      {icon}
      {children}
    </Link>
  );
}

function Group({ label, rooms, roomId }: { label: string; rooms: RoomEntry[]; roomId: string | undefined }) {
  if (rooms.length === 0) return null;
  return (
    <section>
      <h2 className="px-2 py-1 text-xs font-medium text-faint">{label}</h2>
      <Rows rooms={rooms} roomId={roomId} />
    </section>
  );
}

function Rows({ rooms, roomId }: { rooms: RoomEntry[]; roomId: string | undefined }) {
  return (
    <ul className="space-y-px">
      {rooms.map((room) => (
        <RoomRow key={room.id} room={room} isOpen={room.id === roomId} />
      ))}
    </ul>
  );
}

/** Placeholder while the room list loads. */
function LoadingSkeleton() {
  return (
    <div aria-hidden className="animate-pulse-soft space-y-5 px-2.5 pt-3">
      {['w-24', 'w-36', 'w-28'].map((width) => (
        <div key={width} className="space-y-2">
          <div className={classes('h-3 rounded bg-line', width)} />
          <div className="h-2.5 w-full rounded bg-hover" />
        </div>
      ))}
    </div>
  );
}

function EmptyList() {
  return (
    <div className="px-3 py-8 text-center text-sm text-soft">
      <p className="font-medium text-ink">{text.rooms.empty}</p>
      <p className="mt-1 mb-4">{text.rooms.emptyLead}</p>
      <Button variant="primary" size="small" onClick={() => showNewRoom(true)}>
        {text.rooms.create}
      </Button>
    </div>
  );
}

function UserMenu() {
  const session = useSession();
  if (session.state !== 'in') return null;
  const { id, displayName, username } = session.user;
  return (
    <Menu
      align="start"
      trigger={
        <button
          type="button"
          className="flex min-w-0 flex-1 items-center gap-2.5 rounded-lg p-1 text-left hover:bg-hover data-[state=open]:bg-hover"
        >
          <Avatar id={id} name={displayName} kind="user" size={32} />
          <span className="min-w-0">
            <span className="block truncate text-sm leading-tight font-semibold">{displayName}</span>
            <span className="block truncate text-xs leading-tight text-faint">{username}</span>
          </span>
        </button>
      }
    >
      <MenuItem icon={<Gear size={15} />} onSelect={() => navigate(settingsPath('account'))}>
        {text.settings.heading}
      </MenuItem>
      <MenuLine />
      <MenuItem icon={<LogOut size={15} />} onSelect={() => void signOut()}>
        {text.settings.signOut}
      </MenuItem>
    </Menu>
  );
}

/** Connection status. Hidden while the connection is live. */
function ConnectionState() {
  const connection = useChat((state) => state.connection);
  return (
    <div role="status" className="empty:hidden">
      {connection !== 'live' && (
        <p className="flex items-center gap-2 border-t px-4 py-2 text-xs text-soft">
          <WifiOff size={13} className="animate-pulse-soft" />
          {connection === 'waiting' ? text.connection.waiting : text.connection.connecting}
        </p>
      )}
    </div>
  );
}

function shortcut(): string {
  return /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘K' : 'Ctrl K';
}
