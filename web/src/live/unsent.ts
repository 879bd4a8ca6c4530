/** Messages that the hub has not acknowledged, in local storage, so that they survive a reload. */
import type { Attachment } from '../generated/api';

export interface Unsent {
  clientMessageId: string;
  roomId: string;
  content: string;
  replyToId?: string;
  attachments: Attachment[];
  writtenAt: string;
}

const PREFIX = 'parlor.unsent.';

export class UnsentStore {
  readonly #key: string;

  /** Each user has a separate store, because several users may share a browser. */
  constructor(userId: string) {
    this.#key = PREFIX + userId;
  }

  all(): Unsent[] {
    try {
      const stored: unknown = JSON.parse(localStorage.getItem(this.#key) ?? '[]');
      return Array.isArray(stored) ? (stored as Unsent[]) : [];
    } catch {
      return [];
    }
  }

  find(clientMessageId: string): Unsent | undefined {
    return this.all().find((unsent) => unsent.clientMessageId === clientMessageId);
  }

  add(unsent: Unsent): void {
    this.#store([...this.all(), unsent]);
  }

  remove(clientMessageId: string): void {
    this.#store(this.all().filter((unsent) => unsent.clientMessageId !== clientMessageId));
  }

  #store(unsent: Unsent[]): void {
    try {
      if (unsent.length === 0) localStorage.removeItem(this.#key);
      else localStorage.setItem(this.#key, JSON.stringify(unsent));
    } catch {
      // Storage is full or disabled: the message is still sent, but a reload would lose it.
    }
  }
}
