/**
 * Records the frames that a hub sends while its guide shows everything (`npm run record`). The file is
 * replayed by `tests/recorded.test.ts`.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { test } from 'vitest';
import { Hub } from './hub';
import { firstAdmin, setUpFlow } from './flow-context';

const FOLDER = resolve(import.meta.dirname, '../tests/fixtures');

const flow = setUpFlow(Hub.fresh);

test('records the frames of “@guide everything”', async () => {
  const tab = await firstAdmin(flow);
  const { page } = tab;
  const stop = page.getByRole('button', { name: 'Stop guide' });
  // The guide's greeting is complete, so that the recorded session contains one run.
  await tab.message(/Four things to try/).waitFor();
  await stop.waitFor({ state: 'detached' });
  const received: string[] = [];
  page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => received.push(String(payload))));
  await page.reload();
  await tab.message(/Four things to try/).waitFor();
  await tab.send('@guide everything');
  await page.getByRole('region', { name: /wants to use/ }).getByRole('button', { name: 'Allow once' }).click();
  const question = page.getByRole('region', { name: 'Question' });
  await question.getByRole('textbox').first().fill('Tea');
  await question.getByRole('textbox').last().fill('Now');
  await question.getByRole('button', { name: 'Answer' }).click();
  await tab.message('That was everything.').waitFor();
  await stop.waitFor({ state: 'detached' });
  const ada = await flow.hub.signIn('ada');
  const history = await flow.hub.call(ada, 'GET', '/api/messages/rooms/welcome?limit=50');
  mkdirSync(FOLDER, { recursive: true });
  const frames = received.map((frame): unknown => JSON.parse(frame));
  const lines = [...frames, { history }].map((line) => JSON.stringify(line));
  writeFileSync(`${FOLDER}/everything.jsonl`, lines.join('\n') + '\n');
});
