/** Entries whose `words` contain the query, ignoring case. */
export function matching<T extends { words: string }>(entries: T[], written: string): T[] {
  const query = written.trim().toLowerCase();
  return entries.filter((entry) => entry.words.toLowerCase().includes(query));
}
