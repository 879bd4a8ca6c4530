import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { BINARY } from './hub';
import { setUpSharedRoom } from './shared-room';

const shared = setUpSharedRoom();

test('lines of a chat.md appear in the room, and messages of the room become lines', async () => {
  const { hub, admin, room, gateway, ada, grace } = shared;
  const project = mkdtempSync(join(tmpdir(), 'parlor-flow-chatmd-'));
  mkdirSync(join(project, '.workplace'));
  const file = join(project, '.workplace', 'chat.md');
  const body = { name: 'bridge', scopes: ['read', 'write', 'agents'] };
  const created = (await hub.call(admin, 'POST', '/api/keys', body)) as { key: string };
  const env = { ...process.env, PARLOR_KEY: created.key };
  const bridge = spawn(BINARY, ['bridge', project, '--room', room, '--server', hub.url], { env });
  try {
    let printed = '';
    const onOutput = (bytes: Buffer) => (printed += bytes.toString());
    bridge.stdout.on('data', onOutput);
    bridge.stderr.on('data', onOutput);
    await expect.poll(() => printed, { timeout: 60_000 }).toContain('connected');

    appendFileSync(file, '[Coder-to-ada]: I am an agent of the account\n');
    await grace.message('I am an agent of the account').getByText('to ada').waitFor();
    appendFileSync(file, '[grace-to-Coder] @ [ada]: I only claim to be Grace\n');
    const claimed = ada.message('I only claim to be Grace');
    await claimed.getByText('unverified').waitFor();
    await claimed.getByText('to Coder, copy to ada').waitFor();
    const run = await gateway.next('server:send_to_agent');
    gateway.complete(run, 'r1', 'Done, @ada');
    await ada.message('Done,').waitFor();
    await ada.send('@Coder and @grace: thank you');

    const lines = () => readFileSync(file, 'utf8').trimEnd().split('\n');
    await expect.poll(lines, { timeout: 60_000 }).toHaveLength(4);
    expect(lines().slice(2)).toEqual([
      '[Coder-to-ada]: Done, @ada',
      '[ada-to-Coder] @ [grace]: @Coder and @grace: thank you',
    ]);
  } finally {
    const ended = new Promise((done) => bridge.once('exit', done));
    bridge.kill('SIGTERM');
    await ended;
    rmSync(project, { recursive: true, force: true });
  }
});
