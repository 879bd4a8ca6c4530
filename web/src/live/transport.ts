/**
 * The WebSocket of this tab: connects, authenticates, detects dead connections, and reconnects with backoff.
 *
 * Owns the socket and its timers. Does not interpret frames other than `server:auth_result`.
 */
import { refresh, token } from '../api/http';
import { parseFrame, type ClientFrame, type ServerFrame } from './frames';

const FIRST_RETRY_DELAY_MS = 500;
const MAX_RETRY_DELAY_MS = 30_000;
/** Silence after which a ping is sent. */
const PING_INTERVAL_MS = 25_000;
/** Timeout for any frame after a ping. Then the connection counts as lost. */
const PONG_TIMEOUT_MS = 10_000;

export interface TransportListener {
  onLive: () => void;
  onLost: () => void;
  onSignedOut: () => void;
  onFrame: (frame: ServerFrame) => void;
}

export class Transport {
  readonly #listener: TransportListener;
  #socket: WebSocket | undefined;
  #isLive = false;
  #isStarted = false;
  #failures = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #heartbeat: ReturnType<typeof setTimeout> | undefined;

  constructor(listener: TransportListener) {
    this.#listener = listener;
  }

  start(): void {
    this.#isStarted = true;
    addEventListener('online', this.#reconnectNow);
    document.addEventListener('visibilitychange', this.#reconnectNow);
    void this.#open();
  }

  stop(): void {
    this.#isStarted = false;
    removeEventListener('online', this.#reconnectNow);
    document.removeEventListener('visibilitychange', this.#reconnectNow);
    clearTimeout(this.#retry);
    this.#drop();
  }

  /** Sends a frame. Returns false when there is no authenticated connection. */
  send(frame: ClientFrame): boolean {
    if (!this.#isLive || this.#socket === undefined) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  /** Reconnects or pings at once when the tab becomes visible or the network is back. */
  readonly #reconnectNow = (): void => {
    if (document.hidden || !this.#isStarted) return;
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
      return this.#scheduleRetry();
    }
    // Another call may have opened the socket while this one waited for the token.
    if (!this.#isStarted || this.#socket !== undefined) return;
    if (bearer === undefined) return this.#listener.onSignedOut();
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const socket = new WebSocket(`${scheme}://${location.host}/ws/client`);
    this.#socket = socket;
    const sendToken = (accessToken: string) =>
      socket.send(JSON.stringify({ type: 'client:auth', token: accessToken, protocolVersion: '1' } satisfies ClientFrame));
    socket.onopen = () => sendToken(bearer);
    let hasRefreshed = false;
    socket.onmessage = (event: MessageEvent<string>) => {
      if (socket !== this.#socket) return;
      const frame = parseFrame(event.data);
      if (frame === undefined) return;
      this.#restartHeartbeat();
      if (frame.type !== 'server:auth_result') return this.#listener.onFrame(frame);
      if (frame.ok) return this.#onLive();
      if (hasRefreshed || frame.error !== 'Invalid token') return socket.close();
      hasRefreshed = true;
      refresh().then(
        (refreshed) => (refreshed === undefined ? this.#onSignedOut() : sendToken(refreshed)),
        () => socket.close(),
      );
    };
    socket.onclose = () => {
      if (socket === this.#socket) this.#onLost();
    };
  }

  #onLive(): void {
    this.#isLive = true;
    this.#failures = 0;
    this.#listener.onLive();
  }

  #onLost(): void {
    this.#drop();
    if (this.#isStarted) this.#scheduleRetry();
  }

  #onSignedOut(): void {
    this.stop();
    this.#listener.onSignedOut();
  }

  #scheduleRetry(): void {
    this.#listener.onLost();
    const delay = Math.min(MAX_RETRY_DELAY_MS, FIRST_RETRY_DELAY_MS * 2 ** this.#failures);
    this.#failures += 1;
    // Jitter, so that not all clients reconnect at the same time.
    this.#retry = setTimeout(() => void this.#open(), delay * (0.5 + Math.random() / 2));
  }

  #drop(): void {
    clearTimeout(this.#heartbeat);
    const socket = this.#socket;
    this.#socket = undefined;
    this.#isLive = false;
    socket?.close();
  }

  #restartHeartbeat(): void {
    clearTimeout(this.#heartbeat);
    this.#heartbeat = setTimeout(() => this.#ping(), PING_INTERVAL_MS);
  }

  #ping(): void {
    clearTimeout(this.#heartbeat);
    this.send({ type: 'client:ping', ts: Date.now() });
    this.#heartbeat = setTimeout(() => this.#onLost(), PONG_TIMEOUT_MS);
  }
}
