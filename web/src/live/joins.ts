/** Joins rooms one after the other: the hub takes 30 frames in ten seconds, and people want to write meanwhile. */

const AT_ONCE = 12;
const THEN_EVERY_MS = 600;

export class JoinQueue {
  readonly #join: (roomId: string) => boolean;
  #wanted: string[] = [];
  #joined = new Set<string>();
  #credit = AT_ONCE;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(join: (roomId: string) => boolean) {
    this.#join = join;
  }

  has(roomId: string): boolean {
    return this.#joined.has(roomId);
  }

  /** A new connection is in no room yet. */
  restart(): void {
    this.clear();
    this.#credit = AT_ONCE;
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#wanted = [];
    this.#joined.clear();
  }

  /** For somebody who looks at it now. */
  first(roomId: string): void {
    if (!this.#joined.has(roomId) && this.#join(roomId)) this.#joined.add(roomId);
  }

  want(roomIds: string[]): void {
    this.#wanted = roomIds.filter((roomId) => !this.#joined.has(roomId));
    this.#next();
  }

  #next(): void {
    while (this.#credit > 0 && this.#wanted.length > 0) {
      this.#credit -= 1;
      const roomId = this.#wanted.shift();
      if (roomId !== undefined) this.first(roomId);
    }
    if (this.#wanted.length === 0 || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#credit += 1;
      this.#next();
    }, THEN_EVERY_MS);
  }
}
