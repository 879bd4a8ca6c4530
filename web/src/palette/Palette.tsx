import { Hash, MessageSquare, Search, Terminal, UserRound } from 'lucide-react';
import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useMemo, useState, type KeyboardEvent, type ReactNode } from 'react';
import { apiRequest } from '../api/http';
import { useChat } from '../chat/store';
import type { Found } from '../generated/api';
import { AGENTS_PATH, MISSIONS_PATH, navigate, roomPath, searchPath, settingsPath } from '../router';
import { Snippet } from '../search/Snippet';
import { signOut } from '../session/session';
import { text } from '../text';
import { classes } from '../ui/classes';
import { Dialog } from '../ui/dialog';
import { isDark, setTheme } from '../ui/theme';
import { showNewRoom, showPalette } from '../view';
import { matching } from './matching';

interface Entry {
  key: string;
  group: string;
  icon: ReactNode;
  label: ReactNode;
  hint?: string;
  words: string;
  run: () => void;
}

const COMMANDS: Entry[] = [
  command(text.palette.newRoom, () => showNewRoom(true)),
  command(text.palette.agents, () => navigate(AGENTS_PATH)),
  command(text.palette.missions, () => navigate(MISSIONS_PATH)),
  command(text.palette.search, () => navigate(searchPath(''))),
  command(text.palette.settings, () => navigate(settingsPath('account'))),
  command(text.palette.theme, () => setTheme(isDark() ? 'light' : 'dark')),
  command(text.palette.markAllRead, () => void apiRequest('POST', '/api/messages/mark-all-read')),
  command(text.palette.signOut, () => void signOut()),
];

/** Command palette: finds rooms, people, agents, messages and commands. */
export default function Palette() {
  const [written, setWritten] = useState('');
  const [chosen, setChosen] = useState(0);
  const places = useRoomEntries();
  const messages = useMessages(useDeferredValue(written.trim()));
  const found = useMemo(
    () => [...matching([...places, ...COMMANDS], written), ...messages, ...searchEntry(written.trim())],
    [places, written, messages],
  );
  const close = () => showPalette(false);
  const run = (entry: Entry | undefined) => {
    if (entry === undefined) return;
    close();
    entry.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0 && found.length > 0) {
      event.preventDefault();
      setChosen((chosen + step + found.length) % found.length);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      run(found[chosen]);
    }
  };
  return (
    <Dialog open onClose={close} title={text.palette.label} titleHidden className="w-[min(36rem,calc(100vw-2rem))]">
      <input
        autoFocus
        role="combobox"
        aria-label={text.palette.label}
        aria-expanded
        aria-controls="palette"
        aria-activedescendant={found.length > 0 ? `palette-${chosen}` : undefined}
        placeholder={text.palette.placeholder}
        className="h-13 w-full border-b bg-transparent px-5 text-base outline-none placeholder:text-faint"
        value={written}
        onChange={({ target }) => {
          setWritten(target.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="palette" role="listbox" aria-label={text.palette.label} className="max-h-[52vh] overflow-y-auto p-1.5">
        {found.length === 0 && <li className="px-3.5 py-6 text-center text-sm text-faint">{text.palette.noResults}</li>}
        {found.map((entry, index) => (
          <PaletteRow
            key={entry.key}
            entry={entry}
            index={index}
            isChosen={index === chosen}
            isFirst={found[index - 1]?.group !== entry.group}
            onRun={() => run(entry)}
          />
        ))}
      </ul>
    </Dialog>
  );
}

interface RowProps {
  entry: Entry;
  index: number;
  isChosen: boolean;
  isFirst: boolean;
  onRun: () => void;
}

function PaletteRow({ entry, index, isChosen, isFirst, onRun }: RowProps) {
  return (
    <>
      {isFirst && (
        <li role="presentation" className="px-3 pt-2 pb-1 text-xs font-medium text-faint">
          {entry.group}
        </li>
      )}
      <li
        id={`palette-${index}`}
        role="option"
        aria-selected={isChosen}
        onClick={onRun}
        ref={(row) => {
          if (isChosen) row?.scrollIntoView({ block: 'nearest' });
        }}
        className={classes(
          'flex cursor-pointer items-center gap-3 rounded-lg px-3 py-2 text-sm hover:bg-hover',
          isChosen && 'bg-hover',
        )}
      >
        <span className="shrink-0 text-faint">{entry.icon}</span>
        <span className="min-w-0 flex-1 truncate">{entry.label}</span>
        {entry.hint !== undefined && <span className="max-w-40 shrink-0 truncate text-xs text-faint">{entry.hint}</span>}
      </li>
    </>
  );
}

/** Entries for the rooms and their members. */
function useRoomEntries(): Entry[] {
  const rooms = useChat((state) => state.rooms);
  return useMemo(() => {
    const all = Object.values(rooms);
    const places = all.map((room) => ({
      key: `room-${room.id}`,
      group: text.palette.rooms,
      icon: <Hash size={16} />,
      label: room.name,
      words: room.name,
      run: () => navigate(roomPath(room.id)),
    }));
    const members = new Map(
      all.flatMap((room) => room.members.map((member) => [member.memberId, { member, room }] as const)),
    );
    const people = [...members.values()].map(({ member, room }) => ({
      key: `member-${member.memberId}`,
      group: text.palette.people,
      icon: <UserRound size={16} />,
      label: member.displayName,
      hint: room.name,
      words: member.displayName,
      run: () => navigate(roomPath(room.id)),
    }));
    return [...places, ...people];
  }, [rooms]);
}

function useMessages(query: string): Entry[] {
  const rooms = useChat((state) => state.rooms);
  const { data: found } = useQuery({
    queryKey: ['search', query],
    queryFn: async () =>
      (await apiRequest<Found>('GET', `/api/messages/search?${new URLSearchParams({ q: query, limit: '12' })}`)).data,
    enabled: query.length >= 2,
    placeholderData: (before) => before,
    retry: false,
  });
  if (query.length < 2) return [];
  return (found ?? []).map((hit) => ({
    key: `message-${hit.id}`,
    group: text.palette.messages,
    icon: <MessageSquare size={16} />,
    label: (
      <>
        <span className="font-medium">{hit.senderName}</span>{' '}
        <span className="text-soft">
          <Snippet hit={hit} />
        </span>
      </>
    ),
    hint: rooms[hit.roomId]?.name,
    words: '',
    run: () => navigate(roomPath(hit.roomId, hit.id)),
  }));
}

/** Entry that opens the search page with the query. */
function searchEntry(words: string): Entry[] {
  if (words.length < 2) return [];
  const run = () => navigate(searchPath(new URLSearchParams({ q: words }).toString()));
  const label = text.palette.searchFor(words);
  return [{ key: 'search', group: text.palette.messages, icon: <Search size={16} />, label, words: '', run }];
}

function command(label: string, run: () => void): Entry {
  const group = text.palette.commands;
  return { key: label, group, icon: <Terminal size={16} />, label, words: label, run };
}
