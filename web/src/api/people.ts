/** Search for users by a part of their name. */
import type { Person } from '../generated/api';
import type { Candidate } from '../ui/finder';
import { apiResult } from './http';

export async function peopleNamed(words: string): Promise<Candidate[]> {
  const found = await apiResult<Person[]>('GET', `/api/users/search?${new URLSearchParams({ q: words })}`);
  return found.map((user) => ({ id: user.id, name: user.displayName, kind: 'user', hint: user.username }));
}
