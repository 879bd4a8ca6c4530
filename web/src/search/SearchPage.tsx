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
import { shortTime, fullTime } from '../ui/time';
import { Snippet } from './Snippet';
import { toQueryString, senderType, parseFilter, type SearchFilter } from './filter';

const MIN_QUERY_CHARS = 2;
/** Delay between the last key press and the search request. */
const DEBOUNCE_MS = 250;

/** Full-text search in the messages of all the user's rooms. */
export default function SearchPage({ query, isWide }: { query: string; isWide: boolean }) {
  const filter = parseFilter(query);
  const change = (changes: Partial<SearchFilter>) => navigate(searchPath(toQueryString({ ...filter, ...changes })), 'replace');
  return (
    <Page title={text.search.heading} isWide={isWide}>
      <search className="block space-y-3">
        <QueryField query={filter.q} onChange={(q) => change({ q })} />
        <Filters filter={filter} onChange={change} />
      </search>
      <Results filter={filter} />
    </Page>
  );
}

function QueryField({ query, onChange }: { query: string; onChange: (query: string) => void }) {
  const [typed, setTyped] = useState(query);
  // The query in the address may change without typing, for example from the command palette.
  const [lastQuery, setLastQuery] = useState(query);
  if (lastQuery !== query) {
    setLastQuery(query);
    setTyped(query);
  }
  useEffect(() => {
    if (typed === query) return;
    const timer = setTimeout(() => onChange(typed), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [typed, query, onChange]);
  return (
    <div>
      <div className="relative">
        <Search size={17} aria-hidden className="absolute top-1/2 left-3.5 -translate-y-1/2 text-faint" />
        <SearchField
          label={text.search.label}
          placeholder={text.search.placeholder}
          className="h-11 pl-10"
          value={typed}
          onChange={setTyped}
          autoFocus
        />
      </div>
      <p className="mt-1.5 text-xs text-faint">{text.search.hint}</p>
    </div>
  );
}

const SELECT = classes(INPUT, 'h-9 min-w-28 flex-1 truncate py-1 text-sm sm:max-w-44');

function Filters({ filter, onChange }: { filter: SearchFilter; onChange: (changes: Partial<SearchFilter>) => void }) {
  const rooms = useChat((state) => state.rooms);
  return (
    <div className="flex flex-wrap gap-2">
      <select
        aria-label={text.search.room}
        className={SELECT}
        value={filter.roomId ?? ''}
        onChange={({ target }) => onChange({ roomId: target.value })}
      >
        <option value="">{text.search.allRooms}</option>
        {Object.values(rooms).map((room) => (
          <option key={room.id} value={room.id}>
            {room.name}
          </option>
        ))}
      </select>
      <select
        aria-label={text.search.sender}
        className={SELECT}
        value={filter.senderType ?? ''}
        onChange={({ target }) => onChange({ senderType: senderType(target.value) })}
      >
        <option value="">{text.search.everyone}</option>
        <option value="user">{text.search.people}</option>
        <option value="agent">{text.search.agents}</option>
      </select>
      <label className="flex flex-1 items-center gap-2 text-sm text-soft">
        {text.search.since}
        <input
          type="date"
          className={SELECT}
          value={filter.dateFrom ?? ''}
          onChange={({ target }) => onChange({ dateFrom: target.value })}
        />
      </label>
    </div>
  );
}

function Results({ filter }: { filter: SearchFilter }) {
  const isSearching = filter.q.trim().length >= MIN_QUERY_CHARS;
  const { data, error, isFetching, fetchNextPage, hasNextPage } = useInfiniteQuery({
    queryKey: ['search-page', toQueryString(filter)],
    queryFn: ({ pageParam }) => {
      const cursor = pageParam === undefined ? '' : `&cursor=${encodeURIComponent(pageParam)}`;
      return apiRequest<Found>('GET', `/api/messages/search?${toQueryString(filter)}&limit=30${cursor}`);
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor,
    enabled: isSearching,
    retry: false,
  });
  const hits = isSearching ? (data?.pages.flatMap((page) => page.data) ?? []) : [];
  const isComplete = isSearching && !isFetching && !hasNextPage;
  return (
    <div className="mt-6" aria-busy={isFetching}>
      {error !== null && isSearching && (
        <p role="alert" className="text-sm text-danger">
          {error.message}
        </p>
      )}
      {isComplete && error === null && hits.length === 0 && (
        <EmptyState title={text.search.noResults} lead={text.search.noResultsLead} />
      )}
      <ul aria-label={text.search.results} className="space-y-1">
        {hits.map((hit) => (
          <Result key={hit.id} hit={hit} />
        ))}
      </ul>
      {hasNextPage && isSearching && (
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
            <time dateTime={hit.createdAt} title={fullTime(at)} className="ml-auto shrink-0 text-xs text-faint">
              {shortTime(at, Date.now())}
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
