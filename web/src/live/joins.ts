/**
 * Joins rooms at a limited rate: the hub accepts 30 frames in 10 seconds, and the user's messages need some
 * of them.
 */

const BURST = 12;
const JOIN_INTERVAL_MS = 600;

export class JoinQueue {
  readonly #join: (roomId: string) => boolean;
  #queue: string[] = [];
  #joined = new Set<string>();
  #credit = BURST;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(join: (roomId: string) => boolean) {
    this.#join = join;
  }

  has(roomId: string): boolean {
    return this.#joined.has(roomId);
  }

  /** For a new connection, which has not joined any room. */
  restart(): void {
    this.clear();
    this.#credit = BURST;
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#queue = [];
    this.#joined.clear();
  }

  /** For a room that the user has lost. It is joined again if the user is added again. */
  forget(roomId: string): void {
    this.#joined.delete(roomId);
    this.#queue = this.#queue.filter((queued) => queued !== roomId);
  }

  /** Joins a room at once, for the room on the screen. */
  joinNow(roomId: string): void {
    if (!this.#joined.has(roomId) && this.#join(roomId)) this.#joined.add(roomId);
  }

  enqueue(roomIds: string[]): void {
    this.#queue = roomIds.filter((roomId) => !this.#joined.has(roomId));
    this.#next();
  }

  #next(): void {
    while (this.#credit > 0 && this.#queue.length > 0) {
      this.#credit -= 1;
      const roomId = this.#queue.shift();
      if (roomId !== undefined) this.joinNow(roomId);
    }
    if (this.#queue.length === 0 || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#credit += 1;
      this.#next();
    }, JOIN_INTERVAL_MS);
  }
}
