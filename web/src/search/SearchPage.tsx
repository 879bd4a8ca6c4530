import { useInfiniteQuery } from '@tanstack/react-query';
import { Search } from 'lucide-react';
import { useEffect, useState } from 'react';
import { apiRequest } from '../api/http';
import { useChat } from '../chat/store';
import type { Found, Hit } from '../generated/api';
import { navigate, roomPath, searchPath } from '../router';
import { text } from '../text';
import { Avatar } from '../ui/avatar';
import { Button } from '../ui/button';
import { classes } from '../ui/classes';
import { INPUT, SearchField } from '../ui/field';
import { Link } from '../ui/link';
import { EmptyState, Page } from '../ui/page';
import { brief, whole } from '../ui/time';
import { Snippet } from './Snippet';
import { toQueryString, senderType, parseFilter, type SearchFilter } from './filter';

const LEAST = 2;
/** So long after the last letter the hub is asked. */
const PAUSE_MS = 250;

/** Everything that was said in one's rooms. */
export default function SearchPage({ query, isWide }: { query: string; isWide: boolean }) {
  const wanted = parseFilter(query);
  const change = (changes: Partial<SearchFilter>) => navigate(searchPath(toQueryString({ ...wanted, ...changes })), 'replace');
  return (
    <Page title={text.search.heading} isWide={isWide}>
      <search className="block space-y-3">
        <Words words={wanted.q} onChange={(q) => change({ q })} />
        <Filters wanted={wanted} onChange={change} />
      </search>
      <Results wanted={wanted} />
    </Page>
  );
}

function Words({ words, onChange }: { words: string; onChange: (words: string) => void }) {
  const [written, setWritten] = useState(words);
  // Somebody may come from elsewhere with other words.
  const [told, setTold] = useState(words);
  if (told !== words) {
    setTold(words);
    setWritten(words);
  }
  useEffect(() => {
    if (written === words) return;
    const timer = setTimeout(() => onChange(written), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [written, words, onChange]);
  return (
    <div>
      <div className="relative">
        <Search size={17} aria-hidden className="absolute top-1/2 left-3.5 -translate-y-1/2 text-faint" />
        <SearchField
          label={text.search.label}
          placeholder={text.search.placeholder}
          className="h-11 pl-10"
          value={written}
          onChange={setWritten}
          autoFocus
        />
      </div>
      <p className="mt-1.5 text-xs text-faint">{text.search.hint}</p>
    </div>
  );
}

const SELECT = classes(INPUT, 'h-9 min-w-28 flex-1 truncate py-1 text-sm sm:max-w-44');

function Filters({ wanted, onChange }: { wanted: SearchFilter; onChange: (changes: Partial<SearchFilter>) => void }) {
  const rooms = useChat((state) => state.rooms);
  return (
    <div className="flex flex-wrap gap-2">
      <select
        aria-label={text.search.room}
        className={SELECT}
        value={wanted.roomId ?? ''}
        onChange={({ target }) => onChange({ roomId: target.value })}
      >
        <option value="">{text.search.everyRoom}</option>
        {Object.values(rooms).map((room) => (
          <option key={room.id} value={room.id}>
            {room.name}
          </option>
        ))}
      </select>
      <select
        aria-label={text.search.sender}
        className={SELECT}
        value={wanted.senderType ?? ''}
        onChange={({ target }) => onChange({ senderType: senderType(target.value) })}
      >
        <option value="">{text.search.everybody}</option>
        <option value="user">{text.search.people}</option>
        <option value="agent">{text.search.agents}</option>
      </select>
      <label className="flex flex-1 items-center gap-2 text-sm text-soft">
        {text.search.since}
        <input
          type="date"
          className={SELECT}
          value={wanted.dateFrom ?? ''}
          onChange={({ target }) => onChange({ dateFrom: target.value })}
        />
      </label>
    </div>
  );
}

function Results({ wanted }: { wanted: SearchFilter }) {
  const isAsked = wanted.q.trim().length >= LEAST;
  const { data, error, isFetching, fetchNextPage, hasNextPage } = useInfiniteQuery({
    queryKey: ['search-page', toQueryString(wanted)],
    queryFn: ({ pageParam }) => {
      const cursor = pageParam === undefined ? '' : `&cursor=${encodeURIComponent(pageParam)}`;
      return apiRequest<Found>('GET', `/api/messages/search?${toQueryString(wanted)}&limit=30${cursor}`);
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor,
    enabled: isAsked,
    retry: false,
  });
  const hits = isAsked ? (data?.pages.flatMap((page) => page.data) ?? []) : [];
  const isOver = isAsked && !isFetching && !hasNextPage;
  return (
    <div className="mt-6" aria-busy={isFetching}>
      {error !== null && isAsked && (
        <p role="alert" className="text-sm text-danger">
          {error.message}
        </p>
      )}
      {isOver && error === null && hits.length === 0 && (
        <EmptyState title={text.search.nothing} lead={text.search.nothingLead} />
      )}
      <ul aria-label={text.search.results} className="space-y-1">
        {hits.map((hit) => (
          <Result key={hit.id} hit={hit} />
        ))}
      </ul>
      {hasNextPage && isAsked && (
        <div className="mt-4 flex justify-center">
          <Button disabled={isFetching} onClick={() => void fetchNextPage()}>
            {text.search.more}
          </Button>
        </div>
      )}
    </div>
  );
}

function Result({ hit }: { hit: Hit }) {
  const room = useChat((state) => state.rooms[hit.roomId]?.name);
  const at = Date.parse(hit.createdAt);
  return (
    <li>
      <Link href={roomPath(hit.roomId, hit.id)} className="-mx-3 flex gap-3 rounded-xl px-3 py-2.5 hover:bg-hover">
        <Avatar id={hit.senderId} name={hit.senderName} kind={hit.senderType} size={32} />
        <span className="min-w-0 flex-1">
          <span className="flex items-baseline gap-2">
            <span className="truncate text-sm font-semibold">{hit.senderName}</span>
            <span className="truncate text-xs text-faint">{room}</span>
            <time dateTime={hit.createdAt} title={whole(at)} className="ml-auto shrink-0 text-xs text-faint">
              {brief(at, Date.now())}
            </time>
          </span>
          <span className="line-clamp-3 text-sm break-words text-soft">
            <Snippet hit={hit} />
          </span>
        </span>
      </Link>
    </li>
  );
}
