/**
 * Chat client of a signed-in tab. Connects its three parts: the transport receives frames, the loader reads state over
 * REST, and the outbox sends messages.
 *
 * Decides when to send frames and requests to the hub. The reducer alone decides how the state changes.
 */
import { apiRequest } from '../api/http';
import { dispatch, dispatchSoon, flush, useChat } from '../chat/store';
import type { User } from '../generated/api';
import type { ClientFrame, ServerFrame } from './frames';
import { Loader } from './loader';
import { Outbox } from './outbox';
import { translate } from './translate';
import { Transport } from './transport';

const TYPING_INTERVAL_MS = 2500;
/** Time that a room must be open and visible before it counts as read. */
const READ_DELAY_MS = 400;

export class ChatClient {
  readonly me: User;
  readonly loader: Loader;
  readonly outbox: Outbox;
  readonly #transport: Transport;
  #typingSentAt = 0;
  #readTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(me: User, onSignedOut: () => void) {
    this.me = me;
    this.#transport = new Transport({
      onLive: () => this.#onLive(),
      onLost: () => dispatch({ type: 'CONNECTION', connection: 'waiting' }),
      onSignedOut,
      onFrame: (frame) => this.#onFrame(frame),
    });
    const sendFrame = (frame: ClientFrame) => this.sendFrame(frame);
    this.loader = new Loader();
    this.outbox = new Outbox(me, sendFrame);
  }

  start(): void {
    const { id, displayName, username } = this.me;
    dispatch({ type: 'SIGNED_IN', id, names: [displayName, username] });
    this.outbox.restore();
    document.addEventListener('visibilitychange', this.#onVisibilityChange);
    this.#transport.start();
  }

  stop(): void {
    document.removeEventListener('visibilitychange', this.#onVisibilityChange);
    clearTimeout(this.#readTimer);
    this.loader.stop();
    this.#transport.stop();
    dispatch({ type: 'SIGNED_OUT' });
  }

  /** Opens a room, and loads its history if it is not loaded. */
  open(roomId: string | undefined): void {
    dispatch({ type: 'ROOM_OPENED', roomId });
    if (roomId === undefined) return;
    this.loader.open(roomId);
    this.#markRead(roomId);
  }

  sendFrame(frame: ClientFrame): boolean {
    return this.#transport.send(frame);
  }

  typing(roomId: string): void {
    if (Date.now() - this.#typingSentAt < TYPING_INTERVAL_MS) return;
    this.#typingSentAt = Date.now();
    this.sendFrame({ type: 'client:typing', roomId });
  }

  #onLive(): void {
    dispatch({ type: 'CONNECTION', connection: 'live' });
    const { position } = useChat.getState();
    this.sendFrame({ type: 'client:follow', ...(position !== undefined && { since: position }) });
    this.loader.resume();
    this.outbox.resend();
    void this.loader.reload();
  }

  #onFrame(frame: ServerFrame): void {
    dispatchSoon(translate(frame, Date.now()));
    this.loader.onFrame(frame);
    this.outbox.onFrame(frame);
    if (frame.type !== 'server:new_message' && frame.type !== 'server:message_complete') return;
    const { roomId } = frame.message;
    if (roomId === useChat.getState().openRoom) this.#markRead(roomId);
  }

  #markRead(roomId: string): void {
    clearTimeout(this.#readTimer);
    this.#readTimer = setTimeout(() => {
      if (!document.hidden) void apiRequest('POST', `/api/messages/rooms/${roomId}/read`).catch(() => undefined);
    }, READ_DELAY_MS);
  }

  readonly #onVisibilityChange = (): void => {
    flush();
    const { openRoom } = useChat.getState();
    if (!document.hidden && openRoom !== undefined) this.#markRead(openRoom);
  };
}
