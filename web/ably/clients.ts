/** Clients of the unmodified `ably` package, and helpers that await their events. */
import * as Ably from 'ably';
import { randomUUID } from 'node:crypto';
import { expect, inject } from 'vitest';
import { makeKey, type Capability } from './keys';
import { Wire } from './wire';

export { Ably };

/** Encodings of the connection. Each test of the protocol runs with both. */
export const FORMATS = ['json', 'msgpack'] as const;
export type Format = (typeof FORMATS)[number];

/** Pairs of the encodings of a publisher and of a subscriber. */
export const PAIRS = FORMATS.flatMap((from) => FORMATS.map((to) => [from, to] as const));

/** Clients and proxies of the current test. */
const opened: { close(): void }[] = [];
/** Exceptions that the client library caught and logged in the current test. */
const caught: string[] = [];

export function cleanUp(): void {
  for (const each of opened.splice(0)) each.close();
  const exceptions = caught.splice(0);
  expect(exceptions).toEqual([]);
}

export interface Options extends Ably.ClientOptions {
  format?: Format;
  /** URL of another hub than the shared one. */
  url?: string;
}

/** Options of a client of the hub. Without another credential it has the key with every capability. */
export function options({ format = 'json', url, ...given }: Options = {}): Ably.ClientOptions {
  const hub = inject('hub');
  const { hostname, port } = new URL(url ?? hub.url);
  const credentials = ['key', 'token', 'tokenDetails', 'authCallback', 'authUrl'] as const;
  const key = credentials.some((name) => given[name] !== undefined) ? {} : { key: hub.key };
  return {
    endpoint: hostname,
    port: Number(port),
    tls: false,
    useBinaryProtocol: format === 'msgpack',
    disableConnectivityCheck: true,
    // Limit of REST clients; that of a connection is announced by the hub.
    maxMessageSize: 512 * 1024,
    // A client whose first new connection fails tries again at once.
    disconnectedRetryTimeout: 20,
    logLevel: 1,
    logHandler: (message) => {
      if (/exception|TypeError/i.test(message)) caught.push(message);
    },
    ...key,
    ...given,
  };
}

export function realtime(given: Options = {}): Ably.Realtime {
  const client = new Ably.Realtime(options(given));
  opened.push(client);
  return client;
}

export function rest(given: Options = {}): Ably.Rest {
  return new Ably.Rest(options(given));
}

/** Connects a client and waits for it. */
export async function connected(given: Options = {}): Promise<Ably.Realtime> {
  const client = realtime(given);
  await reached(client, 'connected');
  return client;
}

/** Opens a proxy to the hub. */
export async function wire(url = inject('hub').url): Promise<Wire> {
  const proxy = await Wire.to(url);
  opened.push(proxy);
  return proxy;
}

/** Waits for a state of the connection; another final state is an error. */
export async function reached(client: Ably.Realtime, state: Ably.ConnectionState): Promise<Ably.ErrorInfo | undefined> {
  if (client.connection.state === state) return client.connection.errorReason ?? undefined;
  return new Promise((done, fail) => {
    const finals: Ably.ConnectionState[] = ['failed', 'suspended', 'closed'];
    const listener = (change: Ably.ConnectionStateChange): void => {
      // The client library may emit an event after the state has changed again.
      if (change.current !== client.connection.state) return;
      if (change.current !== state && !finals.includes(change.current)) return;
      client.connection.off(listener);
      if (change.current === state) done(change.reason);
      else fail(new Error(`${change.current} instead of ${state}: ${String(change.reason)}`));
    };
    client.connection.on(listener);
  });
}

/** Waits for the next event of the connection. */
export function nextEvent(client: Ably.Realtime, event: Ably.ConnectionEvent): Promise<Ably.ConnectionStateChange> {
  return new Promise((done) => client.connection.once(event, done));
}

/** Waits for the next event of a channel. */
export function nextChannelEvent(channel: Ably.RealtimeChannel, event: Ably.ChannelEvent): Promise<Ably.ChannelStateChange> {
  return new Promise((done) => channel.once(event, done));
}

/** A channel name that no other test uses. */
export function channelName(prefix = 'test'): string {
  return `${prefix}-${randomUUID()}`;
}

/** Creates a key with this capability on the shared hub. */
export function keyWith(capability: Capability): Promise<string> {
  const { url, admin } = inject('hub');
  return makeKey(url, admin, capability);
}

/** Returns the error with which a promise is rejected. */
export async function errorOf(promise: Promise<unknown>): Promise<Ably.ErrorInfo> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ('value' in outcome) throw new Error(`no error: ${JSON.stringify(outcome.value)}`);
  // The client library rejects with a plain object if the error was in an envelope.
  if (typeof outcome.error !== 'object') throw new Error(`no error object: ${String(outcome.error)}`);
  return outcome.error as Ably.ErrorInfo;
}

/** Values in the order of arrival, with a method that awaits more of them. */
export class Inbox<T> {
  readonly all: T[] = [];
  #waiting: (() => void)[] = [];
  #read = 0;

  readonly push = (value: T): void => {
    this.all.push(value);
    for (const wake of this.#waiting.splice(0)) wake();
  };

  /** Returns the next values, as soon as they have arrived. */
  async take(count: number): Promise<T[]> {
    while (this.all.length < this.#read + count) await new Promise<void>((wake) => this.#waiting.push(wake));
    const taken = this.all.slice(this.#read, this.#read + count);
    this.#read += count;
    return taken;
  }

  async next(): Promise<T> {
    const [value] = await this.take(1);
    return value as T;
  }

  /** Returns the next value that matches, and skips those before it. */
  async find(matches: (value: T) => boolean): Promise<T> {
    for (;;) {
      const value = await this.next();
      if (matches(value)) return value;
    }
  }
}

export type Messages = Inbox<Ably.InboundMessage>;

/** Attaches and subscribes to all messages of a channel. */
export async function subscribed(channel: Ably.RealtimeChannel): Promise<Messages> {
  const inbox: Messages = new Inbox();
  await channel.subscribe(inbox.push);
  return inbox;
}

/** Attaches and subscribes to all presence messages of a channel. */
export async function watching(channel: Ably.RealtimeChannel): Promise<Inbox<Ably.PresenceMessage>> {
  const inbox = new Inbox<Ably.PresenceMessage>();
  await channel.presence.subscribe(inbox.push);
  return inbox;
}

/** Publishes a last message and asserts that the inbox has exactly these messages before it. */
export async function expectExactly(inbox: Messages, channel: Ably.RealtimeChannel, names: (string | undefined)[]): Promise<void> {
  const end = randomUUID();
  await channel.publish(end, null);
  const received: (string | undefined)[] = [];
  for (;;) {
    const message = await inbox.next();
    if (message.name === end) break;
    received.push(message.name);
  }
  expect(received).toEqual(names);
}

/** Client ids of members, sorted. */
export function clientIds(members: Ably.PresenceMessage[]): string[] {
  return members.map((member) => member.clientId).sort();
}
