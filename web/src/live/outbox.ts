/**
 * What was written and is not acknowledged yet. It survives a reload: the hub knows a repeated `clientMessageId`, so
 * sending it once more says nothing twice.
 */
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

export class Outbox {
  readonly #key: string;

  /** One for each person: who shares a browser does not share what they say. */
  constructor(userId: string) {
    this.#key = PREFIX + userId;
  }

  all(): Unsent[] {
    try {
      const kept: unknown = JSON.parse(localStorage.getItem(this.#key) ?? '[]');
      return Array.isArray(kept) ? (kept as Unsent[]) : [];
    } catch {
      return [];
    }
  }

  add(unsent: Unsent): void {
    this.#keep([...this.all(), unsent]);
  }

  remove(clientMessageId: string): void {
    this.#keep(this.all().filter((unsent) => unsent.clientMessageId !== clientMessageId));
  }

  #keep(unsent: Unsent[]): void {
    try {
      if (unsent.length === 0) localStorage.removeItem(this.#key);
      else localStorage.setItem(this.#key, JSON.stringify(unsent));
    } catch {
      // Full or forbidden: it is still sent, only a reload would lose it.
    }
  }
}
