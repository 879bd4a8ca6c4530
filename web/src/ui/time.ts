/** Times as people read them. */
import { text } from '../text';

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' });
const DAY = new Intl.DateTimeFormat('en', { weekday: 'long', day: 'numeric', month: 'long' });
const DAY_OF_YEAR = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'long', year: 'numeric' });
const SHORT = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short' });
const SHORT_OF_YEAR = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', year: 'numeric' });
const WHOLE = new Intl.DateTimeFormat('en', { dateStyle: 'full', timeStyle: 'medium' });

export function clock(ms: number): string {
  return CLOCK.format(ms);
}

export function whole(ms: number): string {
  return WHOLE.format(ms);
}

/** The day that was asked for last, since the next message is nearly always of the same. */
let known = { from: 0, until: 0, name: '' };

export function dayOf(ms: number): string {
  if (ms < known.from || ms >= known.until) {
    const day = new Date(ms);
    const from = new Date(day.getFullYear(), day.getMonth(), day.getDate()).getTime();
    const until = new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1).getTime();
    known = { from, until, name: day.toDateString() };
  }
  return known.name;
}

export function dayName(ms: number, now: number): string {
  if (dayOf(ms) === dayOf(now)) return text.timeline.today;
  if (dayOf(ms) === dayOf(now - 86_400_000)) return text.timeline.yesterday;
  return (isSameYear(ms, now) ? DAY : DAY_OF_YEAR).format(ms);
}

/** As short as it can be: the time today, the day this year, and the year of any other. */
export function brief(ms: number, now: number): string {
  if (dayOf(ms) === dayOf(now)) return clock(ms);
  return (isSameYear(ms, now) ? SHORT : SHORT_OF_YEAR).format(ms);
}

function isSameYear(ms: number, now: number): boolean {
  return new Date(ms).getFullYear() === new Date(now).getFullYear();
}
