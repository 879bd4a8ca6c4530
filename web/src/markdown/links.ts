/** Allowed targets of links in message text. */

const SAFE = new Set(['http:', 'https:', 'mailto:']);

/** Parses an absolute URL with a safe scheme. Relative URLs are rejected: they would point into this app. */
export function safeUrl(given: string | undefined): URL | undefined {
  if (given === undefined) return undefined;
  try {
    const url = new URL(given);
    return SAFE.has(url.protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}
