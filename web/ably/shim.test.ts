/** The preload shim that points programs without an option for the host at a hub. */
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';

const SHIM = resolve(import.meta.dirname, '../../docs/examples/jaibber/shim.cjs');
const WEB = resolve(import.meta.dirname, '..');

/** Publishes and receives a message with a client without options for the host. */
const PROGRAM = `
const client = new Ably.Realtime({ key: process.env.KEY, realtimeHost: 'unreachable.invalid' });
const channel = client.channels.get('shim-' + process.pid);
// The message can arrive before the acknowledgement.
const received = new Promise((done) => channel.subscribe((message) => done(console.log(message.data))).then(publish));
let acknowledged;
function publish() {
  acknowledged = channel.publish('one', 'received');
}
received.then(() => acknowledged).then(() => client.close());
new Ably.Rest(process.env.KEY).time().then((time) => console.log(time > 0 ? 'time' : 'no time'));
`;

test.each([
  ['commonjs', `const Ably = require('ably');${PROGRAM}`],
  ['module', `import * as Ably from 'ably';${PROGRAM}`],
])('a program of the type %s reaches the hub', async (type, program) => {
  const { url, key } = inject('hub');
  const env = { ...process.env, PARLOR_URL: url, KEY: key, NODE_OPTIONS: `--require ${SHIM}` };
  const run = promisify(execFile)(process.execPath, [`--input-type=${type}`, '-e', program], { cwd: WEB, env });
  const { stdout } = await run;
  expect(stdout.trim().split('\n').sort()).toEqual(['received', 'time']);
});
