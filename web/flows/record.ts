/** What a hub tells the page of everything its guide can do, kept for `tests/recorded.test.ts`: `npm run record`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { test } from 'vitest';
import { Hub } from './hub';
import { firstAdmin, onStage } from './stage';

const FOLDER = resolve(import.meta.dirname, '../tests/fixtures');

const stage = onStage(Hub.fresh);

test('everything is recorded', async () => {
  const tab = await firstAdmin(stage);
  const { page } = tab;
  const told: string[] = [];
  page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => told.push(String(payload))));
  await page.reload();
  await tab.said(/Four things to try/).waitFor();
  await tab.say('@guide everything');
  await page.getByRole('region', { name: /wants to use/ }).getByRole('button', { name: 'Allow once' }).click();
  const question = page.getByRole('region', { name: 'Question' });
  await question.getByRole('textbox').first().fill('Tea');
  await question.getByRole('textbox').last().fill('Now');
  await question.getByRole('button', { name: 'Answer' }).click();
  await tab.said('That was everything.').waitFor();
  await page.getByRole('button', { name: 'Stop guide' }).waitFor({ state: 'detached' });
  const ada = await stage.hub.signIn('ada');
  const history = await stage.hub.call(ada, 'GET', '/api/messages/rooms/welcome?limit=50');
  mkdirSync(FOLDER, { recursive: true });
  const frames = told.map((frame): unknown => JSON.parse(frame));
  const lines = [...frames, { history }].map((line) => JSON.stringify(line));
  writeFileSync(`${FOLDER}/everything.jsonl`, lines.join('\n') + '\n');
});
