/** What was begun and not sent, for each room and person, on this device. */

const PREFIX = 'parlor.draft.';

export function draftOf(userId: string, roomId: string): string {
  return localStorage.getItem(`${PREFIX}${userId}.${roomId}`) ?? '';
}

export function keepDraft(userId: string, roomId: string, text: string): void {
  try {
    if (text.trim() === '') localStorage.removeItem(`${PREFIX}${userId}.${roomId}`);
    else localStorage.setItem(`${PREFIX}${userId}.${roomId}`, text);
  } catch {
    // Full or forbidden: it is still in the field.
  }
}
