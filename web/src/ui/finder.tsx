import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useEffect, useRef, useState, type KeyboardEvent } from 'react';
import type { MemberType } from '../generated/api';
import { text } from '../text';
import { Avatar } from './avatar';
import { SearchField } from './field';

export interface Candidate {
  id: string;
  name: string;
  kind: MemberType;
  hint: string;
}

interface Props {
  label: string;
  /** Query key under which results are cached. */
  queryName: string;
  find: (words: string) => Promise<Candidate[]>;
  isExcluded: (id: string) => boolean;
  onSelect: (candidate: Candidate) => void;
}

const MIN_QUERY_CHARS = 2;

/** Search field for people and agents by name. */
export function Finder({ label, queryName, find, isExcluded, onSelect }: Props) {
  const [written, setWritten] = useState('');
  const words = useDeferredValue(written.trim());
  const isSearching = words.length >= MIN_QUERY_CHARS;
  const { data: found } = useQuery({ queryKey: [queryName, words], queryFn: () => find(words), enabled: isSearching });
  const shown = (found ?? []).filter((candidate) => !isExcluded(candidate.id));
  const select = (candidate: Candidate) => {
    setWritten('');
    onSelect(candidate);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    // Ignores results of an earlier query.
    if (words === written.trim() && shown[0] !== undefined) select(shown[0]);
  };
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.scrollIntoView({ block: 'nearest' });
  }, [found]);
  return (
    <div className="relative">
      <SearchField label={label} value={written} onChange={setWritten} onKeyDown={onKeyDown} />
      {isSearching && found !== undefined && (
        <ul ref={list} className="absolute inset-x-0 top-full z-10 mt-1 rounded-xl border bg-raised p-1 shadow-float">
          {shown.length === 0 && <li className="px-2 py-1.5 text-sm text-faint">{text.details.noMatches}</li>}
          {shown.map((candidate) => (
            <li key={candidate.id}>
              <button
                type="button"
                onClick={() => select(candidate)}
                className="flex w-full items-center gap-2.5 rounded-lg px-2 py-1.5 text-left text-sm hover:bg-hover"
              >
                <Avatar id={candidate.id} name={candidate.name} kind={candidate.kind} size={24} />
                <span className="font-medium">{candidate.name}</span>
                <span className="truncate text-faint">{candidate.hint}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
