/** Unsent drafts per user and room, in local storage. */

const PREFIX = 'parlor.draft.';

export function loadDraft(userId: string, roomId: string): string {
  return localStorage.getItem(`${PREFIX}${userId}.${roomId}`) ?? '';
}

export function saveDraft(userId: string, roomId: string, text: string): void {
  try {
    if (text.trim() === '') localStorage.removeItem(`${PREFIX}${userId}.${roomId}`);
    else localStorage.setItem(`${PREFIX}${userId}.${roomId}`, text);
  } catch {
    // Storage is full or disabled: the text is still in the message field.
  }
}
