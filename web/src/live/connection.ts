/**
 * The one socket of this tab: opens, signs in, notices when it is dead, and comes back with growing patience.
 *
 * Owns: the socket and its timers. Never: what frames mean.
 */
import { refresh, token } from '../api/http';
import { parseFrame, type ClientFrame, type ServerFrame } from './frames';

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** Something must be heard within this time after a ping, or the network went away without a word. */
const PING_EVERY_MS = 25_000;
const PONG_WITHIN_MS = 10_000;

export interface Listener {
  onLive: () => void;
  onLost: () => void;
  onSignedOut: () => void;
  onFrame: (frame: ServerFrame) => void;
}

export class LiveConnection {
  readonly #listener: Listener;
  #socket: WebSocket | undefined;
  #isLive = false;
  #isWanted = false;
  #failures = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #heartbeat: ReturnType<typeof setTimeout> | undefined;

  constructor(listener: Listener) {
    this.#listener = listener;
  }

  get isLive(): boolean {
    return this.#isLive;
  }

  start(): void {
    this.#isWanted = true;
    addEventListener('online', this.#hurry);
    document.addEventListener('visibilitychange', this.#hurry);
    void this.#open();
  }

  stop(): void {
    this.#isWanted = false;
    removeEventListener('online', this.#hurry);
    document.removeEventListener('visibilitychange', this.#hurry);
    clearTimeout(this.#retry);
    this.#drop();
  }

  /** Says whether it could be sent. */
  send(frame: ClientFrame): boolean {
    if (!this.#isLive || this.#socket === undefined) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  /** Back at the desk, or back on the network: no need to wait any longer. */
  readonly #hurry = (): void => {
    if (document.hidden || !this.#isWanted) return;
    if (this.#socket === undefined) {
      clearTimeout(this.#retry);
      void this.#open();
    } else if (this.#isLive) {
      this.#ping();
    }
  };

  async #open(): Promise<void> {
    if (this.#socket !== undefined) return;
    let bearer: string | undefined;
    try {
      bearer = await token();
    } catch {
      return this.#later();
    }
    // Somebody else may have opened it while we waited.
    if (!this.#isWanted || this.#socket !== undefined) return;
    if (bearer === undefined) return this.#listener.onSignedOut();
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const socket = new WebSocket(`${scheme}://${location.host}/ws/client`);
    this.#socket = socket;
    const sendToken = (now: string) =>
      socket.send(JSON.stringify({ type: 'client:auth', token: now, protocolVersion: '1' } satisfies ClientFrame));
    socket.onopen = () => sendToken(bearer);
    let hasRenewed = false;
    socket.onmessage = (event: MessageEvent<string>) => {
      if (socket !== this.#socket) return;
      const frame = parseFrame(event.data);
      if (frame === undefined) return;
      this.#beat();
      if (frame.type !== 'server:auth_result') return this.#listener.onFrame(frame);
      if (frame.ok) return this.#live();
      if (hasRenewed || frame.error !== 'Invalid token') return socket.close();
      hasRenewed = true;
      refresh().then(
        (renewed) => (renewed === undefined ? this.#signedOut() : sendToken(renewed)),
        () => socket.close(),
      );
    };
    socket.onclose = () => {
      if (socket === this.#socket) this.#lost();
    };
  }

  #live(): void {
    this.#isLive = true;
    this.#failures = 0;
    this.#listener.onLive();
  }

  #lost(): void {
    this.#drop();
    if (this.#isWanted) this.#later();
  }

  #signedOut(): void {
    this.stop();
    this.#listener.onSignedOut();
  }

  #later(): void {
    this.#listener.onLost();
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures);
    this.#failures += 1;
    // Spread, so that not everybody comes back in the same instant.
    this.#retry = setTimeout(() => void this.#open(), wait * (0.5 + Math.random() / 2));
  }

  #drop(): void {
    clearTimeout(this.#heartbeat);
    const socket = this.#socket;
    this.#socket = undefined;
    this.#isLive = false;
    socket?.close();
  }

  #beat(): void {
    clearTimeout(this.#heartbeat);
    this.#heartbeat = setTimeout(() => this.#ping(), PING_EVERY_MS);
  }

  #ping(): void {
    clearTimeout(this.#heartbeat);
    this.send({ type: 'client:ping', ts: Date.now() });
    this.#heartbeat = setTimeout(() => this.#lost(), PONG_WITHIN_MS);
  }
}
