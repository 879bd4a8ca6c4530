/** Credentials: keys, tokens, token requests, JWTs, callbacks and URLs, and the rules for client ids. */
import { createHmac } from 'node:crypto';
import { describe, expect, inject, test } from 'vitest';
import {
  Ably, FORMATS, channelName, connected, errorOf, keyWith, reached, realtime, rest, subscribed, type Options,
} from './clients';
import { AuthServer, jwt, type AuthAnswer } from './tokens';

const key = (): string => inject('hub').key;
const keyName = (): string => key().split(':')[0] ?? '';

describe('a token', () => {
  test('has the lifetime, the identity and the capability of its request', async () => {
    const begin = Date.now();
    const token = await rest().auth.requestToken({ clientId: 'ann', ttl: 60_000, capability: { b: ['publish'], a: ['subscribe', 'history'] } });
    expect(token).toMatchObject({ keyName: keyName(), clientId: 'ann', capability: '{"a":["history","subscribe"],"b":["publish"]}' });
    expect((token.expires ?? 0) - (token.issued ?? 0)).toBe(60_000);
    expect(Math.abs((token.issued ?? 0) - begin)).toBeLessThan(60_000);
  });

  test('is valid for an hour and has the capability of its key by default', async () => {
    const limited = await keyWith({ chat: ['publish', 'subscribe'] });
    const token = await rest({ key: limited }).auth.requestToken();
    expect((token.expires ?? 0) - (token.issued ?? 0)).toBe(3_600_000);
    expect(token.capability).toBe('{"chat":["publish","subscribe"]}');
    expect(token.clientId).toBeUndefined();
  });

  test('has the intersection of the capabilities', async () => {
    const limited = rest({ key: await keyWith({ 'chat:*': ['publish', 'subscribe'], news: ['*'] }) });
    const capability = async (requested: Record<string, string[]>): Promise<string> =>
      (await limited.auth.requestToken({ capability: requested as never })).capability;
    expect(await capability({ 'chat:a': ['*'] })).toBe('{"chat:a":["publish","subscribe"]}');
    expect(await capability({ 'chat:a': ['publish', 'history'], news: ['history'] })).toBe('{"chat:a":["publish"],"news":["history"]}');
    expect(await capability({ '*': ['*'] })).toBe('{"chat:*":["publish","subscribe"],"news":["*"]}');
    expect(await errorOf(capability({ other: ['publish'] }))).toMatchObject({ code: 40160, statusCode: 401 });
    expect(await errorOf(capability({ 'chat:a': ['history'] }))).toMatchObject({ code: 40160, statusCode: 401 });
  });

  test('cannot be requested with a malformed capability', async () => {
    for (const capability of ['{"a":[]}', '{"a":["unknown"]}', '{"a":["*","publish"]}', '[]']) {
      const error = await errorOf(rest().auth.requestToken({ capability }));
      expect([capability, error.statusCode]).toEqual([capability, 400]);
    }
  });

  test('cannot be valid for more than a day, or for no time', async () => {
    for (const ttl of [86_400_001, -1]) expect((await errorOf(rest().auth.requestToken({ ttl }))).statusCode).toBe(400);
  });

  test('is requested with the time of the hub', async () => {
    const client = rest({ queryTime: true });
    expect((await client.auth.requestToken()).token).not.toBe('');
  });

  test('of an unknown key or a wrong secret is refused', async () => {
    const wrong = rest({ key: `${keyName()}:wrong` });
    expect(await errorOf(wrong.auth.requestToken())).toMatchObject({ code: 40101, statusCode: 401 });
    expect((await errorOf(rest({ key: 'parlor.unknown:x' }).auth.requestToken())).statusCode).toBeGreaterThanOrEqual(401);
  });
});

describe('a token request', () => {
  test('is accepted once', async () => {
    const request = await rest().auth.createTokenRequest({ clientId: 'ann', nonce: 'n'.repeat(16) + Date.now() } as Ably.TokenParams);
    const first = await requestToken(request);
    expect(first).toMatchObject({ status: 201, body: { clientId: 'ann', keyName: keyName() } });
    expect(await requestToken(request)).toMatchObject({ status: 401, body: { error: { code: 40105 } } });
  });

  test('with a wrong MAC, an old time or a short nonce is refused', async () => {
    const request = await rest().auth.createTokenRequest();
    expect(await requestToken({ ...request, mac: 'x' })).toMatchObject({ status: 401, body: { error: { code: 40101 } } });
    expect(await requestToken({ ...request, clientId: 'forged' })).toMatchObject({ status: 401, body: { error: { code: 40101 } } });
    const old = signed({ ...request, timestamp: Date.now() - 3_600_000 });
    expect(await requestToken(old)).toMatchObject({ status: 401, body: { error: { code: 40104 } } });
    const short = await requestToken(signed({ ...request, nonce: 'short' }));
    expect(short.status).toBe(400);
  });

  test('without a MAC needs the key', async () => {
    const timestamp = Date.now();
    const bare = { keyName: keyName(), timestamp, nonce: '0123456789abcdef' } as Ably.TokenRequest;
    expect((await requestToken(bare)).status).toBe(401);
    expect((await requestToken({ ...bare, nonce: '0123456789abcdeg' }, basic(key()))).status).toBe(201);
  });
});

describe.each(FORMATS)('a connection in %s', (format) => {
  test('is made with a token, or the details of one', async () => {
    const details = await rest().auth.requestToken({ clientId: 'ann' });
    for (const given of [{ token: details.token }, { tokenDetails: details }, { token: details }]) {
      const client = await connected({ format, ...(given as Options) });
      expect(client.auth.clientId).toBe('ann');
      await works(client);
    }
  });

  test('is made with a callback that returns any kind of token', async () => {
    const kinds: (() => Promise<Ably.TokenDetails | Ably.TokenRequest | string>)[] = [
      () => rest().auth.requestToken({ clientId: 'ann' }),
      async () => (await rest().auth.requestToken({ clientId: 'ann' })).token,
      () => rest().auth.createTokenRequest({ clientId: 'ann' }),
      () => Promise.resolve(jwt(key(), { 'x-ably-clientId': 'ann' })),
    ];
    for (const kind of kinds) {
      const client = await connected({ format, authCallback: callback(kind) });
      expect(client.auth.clientId).toBe('ann');
      await works(client);
    }
  });

  test('fails when the callback fails', async () => {
    const client = realtime({ format, authCallback: (_, done) => done('no token', null) });
    const change = await reached(client, 'disconnected');
    expect(change?.code).toBe(80019);
  });

  test('is made with a URL that answers with any kind of token', async () => {
    const details = await rest().auth.requestToken({ clientId: 'ann' });
    const request = await rest().auth.createTokenRequest({ clientId: 'ann' });
    const answers: AuthAnswer[] = [
      { text: JSON.stringify(details) },
      { text: JSON.stringify(request) },
      { type: 'text/plain', text: details.token },
      { type: 'application/jwt', text: jwt(key(), { 'x-ably-clientId': 'ann' }) },
    ];
    for (const answer of answers) {
      const server = await AuthServer.start(() => Promise.resolve(answer));
      const client = await connected({ format, authUrl: server.url });
      expect(client.auth.clientId).toBe('ann');
      server.close();
    }
  });

  test('is made with a URL that takes a form', async () => {
    const server = await AuthServer.start(async ({ body }) => {
      const clientId = new URLSearchParams(body).get('clientId') ?? 'none';
      return { text: JSON.stringify(await rest().auth.requestToken({ clientId })) };
    });
    const authHeaders = { authorization: 'Bearer own' };
    const client = await connected({ format, authUrl: server.url, authMethod: 'POST', authHeaders, clientId: 'ann' });
    expect(client.auth.clientId).toBe('ann');
    expect(server.requests[0]).toMatchObject({ method: 'POST', headers: { authorization: 'Bearer own' } });
    server.close();
  });
});

describe.each(FORMATS)('a JWT in %s', (format) => {
  test('carries the identity and the capability', async () => {
    const name = channelName();
    const token = jwt(key(), { 'x-ably-clientId': 'ann', 'x-ably-capability': JSON.stringify({ [name]: ['publish', 'subscribe'] }) });
    const client = await connected({ format, token });
    expect(client.auth.clientId).toBe('ann');
    await client.channels.get(name).publish('one', null);
    expect((await errorOf(client.channels.get(channelName()).attach())).code).toBe(40160);
    expect((await errorOf(rest({ format, token }).channels.get(name).history())).code).toBe(40160);
  });

  test('cannot widen the capability of its key', async () => {
    const name = channelName();
    const token = jwt(await keyWith({ [name]: ['subscribe'] }), { 'x-ably-capability': '{"*":["*"]}' });
    const client = await connected({ format, token });
    await client.channels.get(name).attach();
    expect((await errorOf(client.channels.get(name).publish('one', null))).code).toBe(40160);
    expect((await errorOf(client.channels.get(channelName()).attach())).code).toBe(40160);
  });

  test('that is expired, forged or of an unknown key is refused', async () => {
    const now = Math.floor(Date.now() / 1000);
    const tokens = [
      jwt(key(), { iat: now - 7200, exp: now - 3600 }),
      jwt(`${keyName()}:wrong`),
      jwt(key(), {}, { alg: 'none' }),
      `${jwt(key()).slice(0, -3)}abc`,
      jwt('parlor.unknown:secret'),
    ];
    for (const token of tokens) {
      const error = await reached(realtime({ format, token }), 'failed');
      expect([40171, 40101, 40400]).toContain(error?.code);
    }
  });
});

describe.each(FORMATS)('the identity in %s', (format) => {
  test('of a token cannot be replaced by another one', async () => {
    const { token } = await rest().auth.requestToken({ clientId: 'ann' });
    const error = await reached(realtime({ format, token, clientId: 'bob' }), 'failed');
    expect(error).toMatchObject({ code: 40102 });
  });

  test('of an anonymous token cannot be set', async () => {
    const { token } = await rest().auth.requestToken();
    const error = await reached(realtime({ format, token, clientId: 'bob' }), 'failed');
    expect(error).toMatchObject({ code: 40102 });
  });

  test('of a wildcard token is chosen by the client', async () => {
    const { token } = await rest().auth.requestToken({ clientId: '*' });
    const client = await connected({ format, token, clientId: 'bob' });
    expect(client.auth.clientId).toBe('bob');
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    await channel.publish('one', null);
    expect((await inbox.next()).clientId).toBe('bob');
    const any = await connected({ format, token });
    await any.channels.get(channel.name).publish({ name: 'two', clientId: 'carl' });
    expect((await inbox.next()).clientId).toBe('carl');
  });

  test('of an anonymous token is none', async () => {
    const { token } = await rest().auth.requestToken();
    const client = await connected({ format, token });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    await channel.publish('one', null);
    expect((await inbox.next()).clientId).toBeUndefined();
    expect((await errorOf(channel.publish({ name: 'two', clientId: 'bob' }))).code).toBe(40012);
    expect((await errorOf(channel.presence.enterClient('bob'))).code).toBe(40012);
  });

  test('binds REST publishes', async () => {
    const { token } = await rest().auth.requestToken({ clientId: 'ann' });
    const channel = rest({ format, token }).channels.get(channelName());
    await channel.publish('one', null);
    expect((await channel.history()).items[0]?.clientId).toBe('ann');
    expect((await errorOf(channel.publish({ name: 'two', clientId: 'bob' }))).code).toBe(40012);
  });
});

function callback(make: () => Promise<Ably.TokenDetails | Ably.TokenRequest | string>): Ably.ClientOptions['authCallback'] {
  return (_, done) => {
    make().then(
      (token) => done(null, token),
      (error: unknown) => done(String(error), null),
    );
  };
}

async function works(client: Ably.Realtime): Promise<void> {
  const channel = client.channels.get(channelName());
  const inbox = await subscribed(channel);
  await channel.publish('one', null);
  expect((await inbox.next()).clientId).toBe('ann');
}

function basic(credential: string): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(credential).toString('base64')}` };
}

/** Signs a changed token request again. */
function signed(request: Ably.TokenRequest): Ably.TokenRequest {
  const fields = [request.keyName, request.ttl, request.capability, request.clientId, request.timestamp, request.nonce];
  const text = fields.map((field) => `${field ?? ''}\n`).join('');
  return { ...request, mac: createHmac('sha256', key().split(':')[1] ?? '').update(text).digest('base64') };
}

async function requestToken(
  request: Ably.TokenRequest,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${inject('hub').url}/keys/${request.keyName}/requestToken`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(request),
  });
  return { status: response.status, body: await response.json() };
}
