/**
 * Characters that are invisible or change the text around them, such as control characters and direction
 * marks.
 */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]|[\u{e0000}-\u{e0fff}]/gu;

/** Escapes hidden characters as `\u{…}`, so that the text shows everything it contains. */
export function escapeHidden(text: string): string {
  return text.replace(HIDDEN, (hidden) => `\\u{${(hidden.codePointAt(0) ?? 0).toString(16)}}`);
}

/** Direction marks, which can reverse the rest of a line. Removed from message text. */
const DIRECTION_MARKS = /[\u202a-\u202e\u2066-\u2069]/gu;

export function stripDirectionMarks(text: string): string {
  return text.replace(DIRECTION_MARKS, '');
}
