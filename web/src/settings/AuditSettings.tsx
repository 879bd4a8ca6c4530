import { useInfiniteQuery } from '@tanstack/react-query';
import { useDeferredValue, useState } from 'react';
import { apiResult } from '../api/http';
import { useChat } from '../chat/store';
import type { AuditEntry, AuditPage } from '../generated/api';
import { text } from '../text';
import { Button } from '../ui/button';
import { Field } from '../ui/field';
import { shortTime, fullTime } from '../ui/time';
import { Block, Problem } from './Block';

const ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** For admins: audit log of actions on accounts, rooms and settings. */
export function AuditSettings() {
  const [actor, setActor] = useState('');
  const by = useDeferredValue(actor.trim());
  const { data: found, error, isFetching, hasNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: ['audit', by],
    queryFn: ({ pageParam }) => {
      const query = { limit: '50', ...(by !== '' && { actor: by }), ...(pageParam !== '' && { cursor: pageParam }) };
      return apiResult<AuditPage>('GET', `/api/audit?${new URLSearchParams(query)}`);
    },
    initialPageParam: '',
    getNextPageParam: (page) => page.nextCursor,
    placeholderData: (before) => before,
    retry: false,
  });
  const entries = found?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Block title={text.settings.audit} lead={text.settings.auditLead}>
      <Field label={text.settings.auditActor} type="search" value={actor} onChange={({ target }) => setActor(target.value)} />
      <Problem>{error?.message}</Problem>
      <ul aria-label={text.settings.audit} aria-busy={isFetching} className="divide-y rounded-xl border">
        {entries.map((entry) => (
          <Entry key={entry.id} entry={entry} />
        ))}
        {entries.length === 0 && !isFetching && (
          <li className="px-4 py-6 text-center text-sm text-faint">{text.settings.auditNone}</li>
        )}
      </ul>
      {hasNextPage && (
        <Button disabled={isFetching} onClick={() => void fetchNextPage()}>
          {text.search.more}
        </Button>
      )}
    </Block>
  );
}

function Entry({ entry }: { entry: AuditEntry }) {
  const { actor, subject } = entry;
  const rooms = useChat((state) => state.rooms);
  // Only rooms of the admin have known names. Others are shown by id.
  const withRoomNames = (value: string) => value.replace(ID, (id) => rooms[id]?.name ?? id);
  const at = Date.parse(entry.lastAt);
  const who = actor.name ?? actor.id ?? text.settings.auditActors[actor.kind] ?? actor.kind;
  const hasOtherSubject = subject !== undefined && subject.id !== actor.id;
  const action = text.settings.auditActions[entry.action] ?? entry.action.replaceAll('_', ' ');
  const verb = hasOtherSubject ? action : action.replace(/ (?:of|as|for)$/, '');
  return (
    <li className="flex items-baseline gap-3 px-4 py-2 text-sm">
      <span className="line-clamp-2 min-w-0 flex-1 [overflow-wrap:anywhere]" title={entry.detail}>
        <span className="font-medium">{who}</span> <span className="text-soft">{verb}</span>
        {hasOtherSubject && <span> {subject.name ?? withRoomNames(subject.id)}</span>}
        {entry.detail !== undefined && <span className="text-faint"> · {withRoomNames(entry.detail)}</span>}
        {entry.count > 1 && <span className="text-faint"> × {entry.count}</span>}
      </span>
      {entry.address !== undefined && <span className="hidden shrink-0 text-xs text-faint sm:block">{entry.address}</span>}
      <time dateTime={entry.lastAt} title={fullTime(at)} className="shrink-0 text-xs text-faint">
        {shortTime(at, Date.now())}
      </time>
    </li>
  );
}
