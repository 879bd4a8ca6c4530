import { expect, test } from 'vitest';
import { Gateway } from './gateway';
import { Hub } from './hub';
import { firstAdmin, onStage } from './stage';

const fresh = onStage(Hub.fresh);

test('everything that an agent can show is shown, as the guide really does it', async () => {
  const tab = await firstAdmin(fresh);
  const { page } = tab;
  await tab.say('@guide everything');
  await page.getByRole('region', { name: /wants to use/ }).getByRole('button', { name: 'Allow once' }).click();
  await page.getByRole('region', { name: 'Plan' }).waitFor();
  await page.getByRole('region', { name: 'Question' }).waitFor();
  await tab.said('That was everything.').waitFor();
  const reply = tab.said('That was everything.');
  await reply.getByText('2 files changed').waitFor();
  await reply.getByText(/answers instead of/).waitFor();
  await reply.getByRole('meter', { name: 'Context' }).waitFor();
  await page.getByText(/^Terminal of guide/).waitFor();
  await page.getByRole('button', { name: 'Stop guide' }).waitFor({ state: 'detached' });
  expect(await reply.count()).toBe(1);
  // What it took is known afterwards, too.
  await page.reload();
  await reply.getByText('1.5k tokens').first().waitFor();
});

test('what waits for a busy agent is seen, and taken back', async () => {
  const tab = await firstAdmin(fresh);
  const { page } = tab;
  const ada = await fresh.hub.signIn('ada');
  const gateway = await Gateway.connect(fresh.hub, ada, { id: 'coder', name: 'Coder' });
  await fresh.hub.call(ada, 'POST', '/api/rooms/welcome/members', { memberId: 'coder', memberType: 'agent' });
  await tab.say('@Coder the first');
  const turn = await gateway.next('server:send_to_agent');
  gateway.chunk(turn, 'r1', 'text', 'Working on it');
  await tab.said('Working on it').waitFor();
  await tab.say('@Coder the second');
  await page.getByText('1 message waits for its turn').click();
  await page.getByRole('button', { name: 'Take back' }).click();
  await page.getByText('1 message waits for its turn').waitFor({ state: 'detached' });
  gateway.complete(turn, 'r1', 'Worked on it.');
  await tab.said('Worked on it.').waitFor();
  gateway.close();
});

test('who reloads the page while an agent speaks is at the end of what was said', async () => {
  const tab = await firstAdmin(fresh);
  const { page } = tab;
  const ada = await fresh.hub.signIn('ada');
  // Its greeting mentions the same command. It has its place in the history when it is complete, and not before.
  await page.getByRole('button', { name: 'Stop guide' }).waitFor({ state: 'detached' });
  for (let number = 1; number <= 60; number += 1) {
    await fresh.hub.call(ada, 'POST', '/api/rooms/welcome/messages', { content: `Message ${number}. ${'More words. '.repeat(40)}` });
  }
  await tab.say('@guide slow');
  await tab.said(/one number each second[\s\S]*\b1 2 3\b/).waitFor();
  // What is just being said gets there first.
  await page.route(/\/api\/messages\/rooms\/welcome\?/, async (route) => {
    await page.getByRole('log').getByRole('article').first().waitFor();
    await route.continue();
  });
  await page.reload();
  await tab.said('@guide slow').waitFor();
  const log = page.getByRole('log');
  await expect.poll(() => log.evaluate((one) => one.scrollHeight - one.clientHeight)).toBeGreaterThan(2000);
  await expect.poll(() => log.evaluate((one) => one.scrollHeight - one.scrollTop - one.clientHeight)).toBeLessThan(80);
  await page.getByRole('button', { name: 'Stop guide' }).click();
});
