/** Search filter, and its form in the query string of the search page. */
import type { SenderType } from '../generated/api';

export interface SearchFilter {
  q: string;
  roomId?: string;
  senderType?: SenderType;
  dateFrom?: string;
}

const SENDERS: SenderType[] = ['user', 'agent', 'system'];

export function parseFilter(query: string): SearchFilter {
  const params = new URLSearchParams(query);
  const optional = (name: string) => params.get(name) || undefined;
  return {
    q: params.get('q') ?? '',
    roomId: optional('roomId'),
    senderType: senderType(params.get('senderType')),
    dateFrom: optional('dateFrom'),
  };
}

export function senderType(value: string | null): SenderType | undefined {
  return SENDERS.find((sender) => sender === value);
}

export function toQueryString(filter: SearchFilter): string {
  const set = Object.entries(filter).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '');
  return new URLSearchParams(set).toString();
}
