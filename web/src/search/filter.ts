/** What can be asked of everything that was said, as it stands in the address of the page. */
import type { SenderType } from '../generated/api';

export interface SearchFilter {
  q: string;
  roomId?: string;
  senderType?: SenderType;
  dateFrom?: string;
}

const SENDERS: SenderType[] = ['user', 'agent', 'system'];

export function parseFilter(query: string): SearchFilter {
  const given = new URLSearchParams(query);
  const word = (name: string) => given.get(name) || undefined;
  return {
    q: given.get('q') ?? '',
    roomId: word('roomId'),
    senderType: senderType(given.get('senderType')),
    dateFrom: word('dateFrom'),
  };
}

export function senderType(word: string | null): SenderType | undefined {
  return SENDERS.find((sender) => sender === word);
}

export function toQueryString(wanted: SearchFilter): string {
  const set = Object.entries(wanted).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '');
  return new URLSearchParams(set).toString();
}
