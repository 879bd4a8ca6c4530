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
  /** What is looked among, for the list that is kept of it. */
  among: string;
  find: (words: string) => Promise<Candidate[]>;
  isLeftOut: (id: string) => boolean;
  onTake: (candidate: Candidate) => void;
}

const LEAST = 2;

/** Finds somebody by a few letters of their name. */
export function Finder({ label, among, find, isLeftOut, onTake }: Props) {
  const [written, setWritten] = useState('');
  const words = useDeferredValue(written.trim());
  const isAsked = words.length >= LEAST;
  const { data: found } = useQuery({ queryKey: [among, words], queryFn: () => find(words), enabled: isAsked });
  const shown = (found ?? []).filter((candidate) => !isLeftOut(candidate.id));
  const take = (candidate: Candidate) => {
    setWritten('');
    onTake(candidate);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    // Not what was found for fewer letters.
    if (words === written.trim() && shown[0] !== undefined) take(shown[0]);
  };
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.scrollIntoView({ block: 'nearest' });
  }, [found]);
  return (
    <div className="relative">
      <SearchField label={label} value={written} onChange={setWritten} onKeyDown={onKeyDown} />
      {isAsked && found !== undefined && (
        <ul ref={list} className="absolute inset-x-0 top-full z-10 mt-1 rounded-xl border bg-raised p-1 shadow-float">
          {shown.length === 0 && <li className="px-2 py-1.5 text-sm text-faint">{text.details.addNothing}</li>}
          {shown.map((candidate) => (
            <li key={candidate.id}>
              <button
                type="button"
                onClick={() => take(candidate)}
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
