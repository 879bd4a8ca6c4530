import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { refresh, token } from '../src/api/http';
import type { ClientFrame, ServerFrame } from '../src/live/frames';
import { Transport } from '../src/live/transport';

vi.mock('../src/api/http', () => ({ token: vi.fn(), refresh: vi.fn() }));

class FakeSocket {
  static opened: FakeSocket[] = [];
  readonly sent: ClientFrame[] = [];
  isClosed = false;
  onopen: () => void = () => undefined;
  onmessage: (event: { data: string }) => void = () => undefined;
  onclose: () => void = () => undefined;
  readonly url: string;

  constructor(url: string) {
    this.url = url;
    FakeSocket.opened.push(this);
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text) as ClientFrame);
  }

  close(): void {
    this.isClosed = true;
    this.onclose();
  }

  receive(frame: ServerFrame): void {
    this.onmessage({ data: JSON.stringify(frame) });
  }
}

const ACCEPTED: ServerFrame = { type: 'server:auth_result', ok: true, userId: 'ada' };
const REJECTED: ServerFrame = { type: 'server:auth_result', ok: false, error: 'Invalid token' };

let listener: { onLive: () => void; onLost: () => void; onSignedOut: () => void; onFrame: (frame: ServerFrame) => void };
let transport: Transport;
let page: EventTarget;

beforeEach(() => {
  vi.useFakeTimers();
  // The longest delay that the jitter allows.
  vi.spyOn(Math, 'random').mockReturnValue(1);
  FakeSocket.opened = [];
  page = new EventTarget();
  vi.stubGlobal('WebSocket', FakeSocket);
  vi.stubGlobal('location', { protocol: 'https:', host: 'hub.example' });
  vi.stubGlobal('document', Object.assign(new EventTarget(), { hidden: false }));
  vi.stubGlobal('addEventListener', page.addEventListener.bind(page));
  vi.stubGlobal('removeEventListener', page.removeEventListener.bind(page));
  vi.mocked(token).mockResolvedValue('t1');
  vi.mocked(refresh).mockResolvedValue('t2');
  listener = { onLive: vi.fn(), onLost: vi.fn(), onSignedOut: vi.fn(), onFrame: vi.fn() };
  transport = new Transport(listener);
});

afterEach(() => {
  transport.stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** The newest socket. */
function socket(): FakeSocket {
  const newest = FakeSocket.opened.at(-1);
  if (newest === undefined) throw new Error('no socket was opened');
  return newest;
}

async function connect(): Promise<FakeSocket> {
  transport.start();
  await vi.advanceTimersByTimeAsync(0);
  socket().onopen();
  return socket();
}

async function goLive(): Promise<FakeSocket> {
  const live = await connect();
  live.receive(ACCEPTED);
  return live;
}

/** Milliseconds until another socket is opened. */
async function delayOfRetry(): Promise<number> {
  const { length } = FakeSocket.opened;
  const startedAt = Date.now();
  while (FakeSocket.opened.length === length) await vi.advanceTimersToNextTimerAsync();
  return Date.now() - startedAt;
}

describe('authentication', () => {
  test('sends the token first, and other frames only when the hub has accepted it', async () => {
    const opened = await connect();
    expect(opened.url).toBe('wss://hub.example/ws/client');
    expect(transport.send({ type: 'client:typing', roomId: 'r' })).toBe(false);
    opened.receive(ACCEPTED);
    expect(listener.onLive).toHaveBeenCalledOnce();
    expect(transport.send({ type: 'client:typing', roomId: 'r' })).toBe(true);
    expect(opened.sent).toEqual([
      { type: 'client:auth', token: 't1', protocolVersion: '1' },
      { type: 'client:typing', roomId: 'r' },
    ]);
  });

  test('refreshes an invalid token once', async () => {
    const opened = await connect();
    opened.receive(REJECTED);
    await vi.advanceTimersByTimeAsync(0);
    expect(opened.sent.at(-1)).toMatchObject({ type: 'client:auth', token: 't2' });
    opened.receive(REJECTED);
    expect(opened.isClosed).toBe(true);
    expect(refresh).toHaveBeenCalledOnce();
  });

  test('signs out when there is no valid token', async () => {
    vi.mocked(refresh).mockResolvedValue(undefined);
    (await connect()).receive(REJECTED);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(listener.onSignedOut).toHaveBeenCalledOnce();
    expect(FakeSocket.opened).toHaveLength(1);
  });
});

describe('a lost connection', () => {
  test('is opened again after delays that double up to 30 seconds', async () => {
    await connect();
    const delays: number[] = [];
    for (let attempt = 0; attempt < 8; attempt += 1) {
      socket().close();
      delays.push(await delayOfRetry());
    }
    expect(delays).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    socket().receive(ACCEPTED);
    socket().close();
    expect(await delayOfRetry()).toBe(500);
    expect(listener.onLost).toHaveBeenCalledTimes(9);
  });

  test('is retried when the token request fails', async () => {
    vi.mocked(token).mockRejectedValueOnce(new Error('unreachable'));
    transport.start();
    await vi.advanceTimersByTimeAsync(0);
    expect(listener.onLost).toHaveBeenCalledOnce();
    await vi.advanceTimersByTimeAsync(500);
    expect(FakeSocket.opened).toHaveLength(1);
  });

  test('is opened again at once when the network is back', async () => {
    (await goLive()).close();
    page.dispatchEvent(new Event('online'));
    await vi.advanceTimersByTimeAsync(0);
    expect(FakeSocket.opened).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(FakeSocket.opened).toHaveLength(2);
  });

  test('stays closed after a stop', async () => {
    const live = await goLive();
    transport.stop();
    expect(live.isClosed).toBe(true);
    page.dispatchEvent(new Event('online'));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(FakeSocket.opened).toHaveLength(1);
  });
});

describe('a silent connection', () => {
  test('is pinged, and stays open if any frame follows', async () => {
    const live = await goLive();
    await vi.advanceTimersByTimeAsync(25_000);
    expect(live.sent.at(-1)).toMatchObject({ type: 'client:ping' });
    live.receive({ type: 'server:pong', ts: 1 });
    await vi.advanceTimersByTimeAsync(24_999);
    expect(live.isClosed).toBe(false);
    expect(live.sent.filter((frame) => frame.type === 'client:ping')).toHaveLength(1);
  });

  test('counts as lost if no frame follows within ten seconds', async () => {
    const live = await goLive();
    await vi.advanceTimersByTimeAsync(25_000 + 10_000);
    expect(live.isClosed).toBe(true);
    expect(listener.onLost).toHaveBeenCalledOnce();
  });

  test('ignores frames of a socket that was replaced', async () => {
    const old = await goLive();
    old.close();
    await vi.advanceTimersByTimeAsync(500);
    old.receive({ type: 'server:pong', ts: 1 });
    expect(listener.onFrame).not.toHaveBeenCalled();
  });
});
