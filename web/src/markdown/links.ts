/** Which addresses a link in somebody's text may lead to. */

const SAFE = new Set(['http:', 'https:', 'mailto:']);

/** The address, if it is a safe one; relative ones are none, as nobody's text may speak for this page. */
export function safeUrl(given: string | undefined): URL | undefined {
  if (given === undefined) return undefined;
  try {
    const url = new URL(given);
    return SAFE.has(url.protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}
