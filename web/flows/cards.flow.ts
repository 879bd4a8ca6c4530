import { expect, test } from 'vitest';
import { Gateway } from './gateway';
import { Hub } from './hub';
import { firstAdmin, setUpFlow } from './flow-context';

const fresh = setUpFlow(Hub.fresh);

test('every card that the guide sends is shown', async () => {
  const tab = await firstAdmin(fresh);
  const { page } = tab;
  await tab.send('@guide everything');
  await page.getByRole('region', { name: /wants to use/ }).getByRole('button', { name: 'Allow once' }).click();
  await page.getByRole('region', { name: 'Plan' }).waitFor();
  await page.getByRole('region', { name: 'Question' }).waitFor();
  await tab.message('That was everything.').waitFor();
  const reply = tab.message('That was everything.');
  await reply.getByText('2 files changed').waitFor();
  await reply.getByText(/^Using .* instead of/).waitFor();
  await reply.getByRole('meter', { name: 'Context' }).waitFor();
  await reply.getByRole('region', { name: 'Subagents' }).getByText('There are seven biscuits.').waitFor();
  await page.getByText(/^Terminal: guide/).waitFor();
  await page.getByRole('button', { name: 'Stop guide' }).waitFor({ state: 'detached' });
  expect(await reply.count()).toBe(1);
  // Token usage is still shown after a reload.
  await page.reload();
  await reply.getByText('1.5k tokens').first().waitFor();
});

test('a subagent is shown with its activity, and with its result when it has failed', async () => {
  const tab = await firstAdmin(fresh);
  const { page } = tab;
  const ada = await fresh.hub.signIn('ada');
  const gateway = await Gateway.connect(fresh.hub, ada, { id: 'coder', name: 'Coder' });
  await fresh.hub.call(ada, 'POST', '/api/rooms/welcome/members', { memberId: 'coder', memberType: 'agent' });
  await tab.send('@Coder test it');
  const run = await gateway.next('server:send_to_agent');
  gateway.chunk(run, 'r1', 'text', 'Testing');
  gateway.runEvent(run, { kind: 'subagent', subagentId: 'tester', phase: 'spawned', task: 'Run the suite' });
  gateway.runEvent(run, { kind: 'subagent', subagentId: 'reader', parentId: 'tester', phase: 'spawned', task: 'Read the log' });
  gateway.runEvent(run, { kind: 'status', status: 'calling_tool', detail: 'Opening build.log', subagentId: 'reader' });
  const subagents = page.getByRole('region', { name: 'Subagents' });
  const reader = subagents.getByRole('listitem').filter({ hasText: 'tester' }).getByRole('listitem');
  await reader.getByText('Opening build.log').waitFor();
  await reader.getByLabel('running').waitFor();
  gateway.runEvent(run, { kind: 'subagent', subagentId: 'reader', parentId: 'tester', phase: 'result', outcome: 'failed', result: 'No log' });
  await reader.getByText('No log').waitFor();
  await reader.getByLabel('failed').waitFor();
  gateway.complete(run, 'r1', 'Tested.');
  await tab.message('Tested.').waitFor();
  gateway.close();
});

test('a message queued for a busy agent is shown and can be removed from the queue', async () => {
  const tab = await firstAdmin(fresh);
  const { page } = tab;
  const ada = await fresh.hub.signIn('ada');
  const gateway = await Gateway.connect(fresh.hub, ada, { id: 'coder', name: 'Coder' });
  await fresh.hub.call(ada, 'POST', '/api/rooms/welcome/members', { memberId: 'coder', memberType: 'agent' });
  await tab.send('@Coder the first');
  const run = await gateway.next('server:send_to_agent');
  gateway.chunk(run, 'r1', 'text', 'Working on it');
  await tab.message('Working on it').waitFor();
  await tab.send('@Coder the second');
  await page.getByText('1 message queued').click();
  await page.getByRole('button', { name: 'Remove from queue' }).click();
  await page.getByText('1 message queued').waitFor({ state: 'detached' });
  gateway.complete(run, 'r1', 'Worked on it.');
  await tab.message('Worked on it.').waitFor();
  gateway.close();
});

test('a reload during a streaming reply scrolls to the end of the room', async () => {
  const tab = await firstAdmin(fresh);
  const { page } = tab;
  const ada = await fresh.hub.signIn('ada');
  // The greeting of the guide mentions the same command, and gets its sequence number only when it is
  // complete.
  await page.getByRole('button', { name: 'Stop guide' }).waitFor({ state: 'detached' });
  for (let number = 1; number <= 60; number += 1) {
    await fresh.hub.call(ada, 'POST', '/api/rooms/welcome/messages', { content: `Message ${number}. ${'More words. '.repeat(40)}` });
  }
  await tab.send('@guide slow');
  await tab.message(/one number each second[\s\S]*\b1 2 3\b/).waitFor();
  // Delays the history until the streaming reply is shown.
  await page.route(/\/api\/messages\/rooms\/welcome\?/, async (route) => {
    await page.getByRole('log').getByRole('article').first().waitFor();
    await route.continue();
  });
  await page.reload();
  await tab.message('@guide slow').waitFor();
  const log = page.getByRole('log');
  await expect.poll(() => log.evaluate((element) => element.scrollHeight - element.clientHeight)).toBeGreaterThan(2000);
  await expect.poll(() => log.evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight)).toBeLessThan(80);
  await page.getByRole('button', { name: 'Stop guide' }).click();
});
