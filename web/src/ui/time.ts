/** Formats of dates and times. */
import { text } from '../text';

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' });
const DAY = new Intl.DateTimeFormat('en', { weekday: 'long', day: 'numeric', month: 'long' });
const DAY_OF_YEAR = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'long', year: 'numeric' });
const SHORT = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short' });
const SHORT_OF_YEAR = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', year: 'numeric' });
const FULL = new Intl.DateTimeFormat('en', { dateStyle: 'full', timeStyle: 'medium' });

export function clock(ms: number): string {
  return CLOCK.format(ms);
}

export function fullTime(ms: number): string {
  return FULL.format(ms);
}

/** Cache of the last day, because consecutive messages are mostly of the same day. */
let cachedDay = { from: 0, until: 0, name: '' };

export function dayOf(ms: number): string {
  if (ms < cachedDay.from || ms >= cachedDay.until) {
    const day = new Date(ms);
    const from = new Date(day.getFullYear(), day.getMonth(), day.getDate()).getTime();
    const until = new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1).getTime();
    cachedDay = { from, until, name: day.toDateString() };
  }
  return cachedDay.name;
}

export function dayName(ms: number, now: number): string {
  if (dayOf(ms) === dayOf(now)) return text.timeline.today;
  if (dayOf(ms) === dayOf(now - 86_400_000)) return text.timeline.yesterday;
  return (isSameYear(ms, now) ? DAY : DAY_OF_YEAR).format(ms);
}

/** Time for today, day and month for this year, otherwise with the year. */
export function shortTime(ms: number, now: number): string {
  if (dayOf(ms) === dayOf(now)) return clock(ms);
  return (isSameYear(ms, now) ? SHORT : SHORT_OF_YEAR).format(ms);
}

function isSameYear(ms: number, now: number): boolean {
  return new Date(ms).getFullYear() === new Date(now).getFullYear();
}
