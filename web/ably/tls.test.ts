/** Programs without an option for the host reach a hub by name, over TLS: the way of the Jaibber SDK without a shim. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Hub, PASSWORD } from '../flows/hub';
import { issueFor } from './certificates';

const NAME = 'main.realtime.ably.net';
const WEB = resolve(import.meta.dirname, '..');

/** Replaces the resolver of the machine and port 443: the name leads to the hub. TLS still checks the name. */
const RESOLVER = `
const { Socket } = require('node:net');
const connect = Socket.prototype.connect;
Socket.prototype.connect = function (...args) {
  const [options] = Array.isArray(args[0]) ? args[0] : args;
  if (options.host === '${NAME}' && Number(options.port) === 443) {
    Object.assign(options, { host: '127.0.0.1', port: Number(process.env.HUB_PORT) });
  }
  return connect.apply(this, args);
};
`;

/** Signs in and exchanges a message in a project, with the calls of the Jaibber SDK. */
const PROGRAM = `
const Ably = require('ably');
const server = 'https://${NAME}';
async function call(path, body, token) {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: 'Bearer ' + token }) };
  const response = await fetch(server + path, { method: 'POST', headers, body: body && JSON.stringify(body) });
  return response.json();
}
async function main() {
  const { token, userId } = await call('/api/auth/token', { username: 'admin', password: process.env.PASSWORD });
  const { project } = await call('/api/projects', { name: 'kitchen' }, token);
  const client = new Ably.Realtime({
    clientId: userId,
    authCallback: (_, done) => call('/api/ably/token', undefined, token).then((details) => done(null, details), done),
  });
  const channel = client.channels.get('jaibber:project:' + project.id);
  const received = new Promise((done) => channel.subscribe('message', (message) => done(message.data.text)).then(publish));
  function publish() {
    const data = { from: userId, fromUsername: 'admin', projectId: project.id, text: 'over TLS', messageId: 'm1', type: 'message' };
    return channel.publish('message', data);
  }
  console.log(await received);
  console.log((await new Ably.Rest({ key: 'a.b:c' }).time()) > 0);
  client.close();
}
main().catch((error) => { console.log(String(error.cause?.code ?? error)); process.exit(1); });
`;

let hub: Hub;
let folder: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'parlor-tls-'));
  const { authority, certificate, key } = issueFor(NAME);
  const files = { 'authority.pem': authority, 'certificate.pem': certificate, 'key.pem': key, 'resolver.cjs': RESOLVER };
  for (const [file, content] of Object.entries(files)) writeFileSync(join(folder, file), content);
  hub = await Hub.withAdmin({ PARLOR_TLS_CERT: join(folder, 'certificate.pem'), PARLOR_TLS_KEY: join(folder, 'key.pem') });
});
afterEach(async () => {
  await hub.remove();
  rmSync(folder, { recursive: true, force: true });
});

function run(environment: Record<string, string>): Promise<{ stdout: string }> {
  const env = {
    ...process.env,
    HUB_PORT: new URL(hub.url).port,
    PASSWORD,
    NODE_OPTIONS: `--require ${join(folder, 'resolver.cjs')}`,
    ...environment,
  };
  return promisify(execFile)(process.execPath, ['-e', PROGRAM], { cwd: WEB, env });
}

test('a program with the default host exchanges messages with the hub', async () => {
  const { stdout } = await run({ NODE_EXTRA_CA_CERTS: join(folder, 'authority.pem') });
  expect(stdout.trim().split('\n')).toEqual(['over TLS', 'true']);
});

test('a program that does not know the authority refuses the hub', async () => {
  await expect(run({})).rejects.toMatchObject({ stdout: expect.stringMatching(/UNABLE_TO_VERIFY|SELF_SIGNED|UNABLE_TO_GET/) as string });
});
