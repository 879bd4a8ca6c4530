import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { expectConsoleErrors, Tab } from './browser';
import { Gateway } from './gateway';
import { Hub } from './hub';
import { setUpFlow } from './flow-context';

const HOSTILE = `<img src=x onerror="document.title='taken over'"><script>document.title='taken over'</script>`;
const MARKDOWN = [
  HOSTILE,
  '[click](javascript:document.title=1) ![x](https://tracker.example/pixel.png) <https://example.org>',
  '<a href="javascript:alert(1)">a</a> <iframe src="//example.org"></iframe> <style>*{display:none}</style>',
  '```html\n<script>alert(1)</script>\n```',
  '\u202egnp.exe\u202c \u0007',
].join('\n\n');

/** Hostile markup with Unicode direction overrides, which reverse the text after them. */
const REVERSED = `${HOSTILE} \u202egnp.exe\u2066`;

const flow = setUpFlow(Hub.withAdmin);

test('hostile message content is shown as text and runs no script', async () => {
  const admin = await flow.hub.signIn('admin');
  const mallory = await flow.hub.addUser(admin, 'mallory', `<b>Mallory</b>`);
  const room = await flow.hub.createRoom(admin, `<i>Kitchen</i>`, [mallory]);
  const gateway = await Gateway.connect(flow.hub, admin, { id: 'coder', name: '<u>Coder</u>' });
  await flow.hub.call(admin, 'POST', `/api/rooms/${room}/members`, { memberId: 'coder', memberType: 'agent' });
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  const { page } = tab;
  const foreign: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(flow.hub.url) && !request.url().startsWith('blob:')) foreign.push(request.url());
  });
  await tab.enter('<i>Kitchen</i>');

  await flow.hub.call(mallory, 'POST', `/api/rooms/${room}/messages`, { content: MARKDOWN });
  await tab.message('<iframe src="//example.org">').waitFor();
  await flow.hub.call(mallory, 'POST', `/api/rooms/${room}/messages`, { content: `@<u>Coder</u> ${HOSTILE}` });
  const run = await gateway.next('server:send_to_agent');
  gateway.chunk(run, 'r1', 'thinking', HOSTILE);
  gateway.chunk(run, 'r1', 'tool_use', JSON.stringify({ a: HOSTILE }), { toolName: HOSTILE, toolId: 't' });
  gateway.chunk(run, 'r1', 'error', HOSTILE);
  gateway.chunk(run, 'r1', 'text', `{"type":"plan","plan":{"summary":"forged","items":[]}}\n\n${MARKDOWN}`);
  gateway.send({ type: 'gateway:terminal_data', agentId: 'coder', data: `\u001b]0;x\u0007${HOSTILE}\r\n` });
  gateway.requestPermission(run, 'p1', `Bash`, { command: `rm \u202egnp.exe ${HOSTILE}` });
  const card = page.getByRole('region', { name: /wants to use Bash/ });
  await card.waitFor();
  expect(await card.locator('pre').textContent()).toContain('\\u{202e}gnp.exe');
  expect(await card.locator('pre').textContent()).not.toContain('\u202e');
  await tab.message('"forged"').waitFor();
  expect(await page.getByRole('region', { name: 'Plan' }).count()).toBe(0);
  await page.getByText(/^Terminal:/).click();
  gateway.complete(run, 'r1', MARKDOWN);

  const injected = page.locator(':is([role=log], section, details) :is(script, iframe, style, img:not([src^="blob:"]))');
  expect(await injected.count()).toBe(0);
  expect(await page.locator('a[href^="javascript:"], [onerror], [style*="display: none"]').count()).toBe(0);
  expect(await page.title()).not.toContain('taken over');
  expect(await page.evaluate(() => document.body.innerText.includes('\u202e'))).toBe(false);
  expect(foreign).toEqual([]);
});

test('hostile names, files, cards and tasks are shown as text and run no script', async () => {
  const { hub } = flow;
  const admin = await hub.signIn('admin');
  const room = await hub.createRoom(admin, HOSTILE.slice(0, 90), []);
  const gateway = await Gateway.connect(hub, admin, { id: 'coder', name: 'Coder' });
  await hub.call(admin, 'POST', `/api/rooms/${room}/members`, { memberId: 'coder', memberType: 'agent', roleDescription: HOSTILE });
  await hub.call(admin, 'PUT', `/api/rooms/${room}`, { systemPrompt: MARKDOWN });
  await hub.call(admin, 'POST', `/api/tasks/rooms/${room}`, { title: HOSTILE, description: MARKDOWN });
  const tab = await Tab.signedIn(flow.browser, hub, 'admin');
  const { page } = tab;
  await page.goto(`${hub.url}/app/rooms/${room}`);
  await page.locator('input[type=file]').setInputFiles([
    { name: `${HOSTILE}\u202egnp.txt`, mimeType: 'text/plain', buffer: Buffer.from('x') },
  ]);
  await tab.field.fill('@Coder look');
  await page.getByRole('button', { name: 'Send' }).click();
  const run = await gateway.next('server:send_to_agent');
  const options = [{ label: HOSTILE, description: REVERSED, preview: HOSTILE }, { label: 'No' }];
  gateway.chunk(run, 'r1', 'text', 'Look: ');
  gateway.runEvent(run, { kind: 'plan', summary: REVERSED, status: 'planned', items: [{ title: HOSTILE, description: REVERSED, status: 'pending' }], planText: MARKDOWN });
  gateway.runEvent(run, { kind: 'question', questionId: 'q', questions: [{ question: REVERSED, header: 'x', options, multiSelect: false }] });
  gateway.runEvent(run, { kind: 'changes', files: [{ path: `${REVERSED}.rs`, summary: HOSTILE, diff: `+${REVERSED}` }], truncatedCount: 0 });
  gateway.runEvent(run, { kind: 'model_fallback', preferredModel: HOSTILE, actualModel: REVERSED, reason: HOSTILE });
  gateway.runEvent(run, { kind: 'subagent', subagentId: 's', phase: 'spawned', task: REVERSED });
  gateway.runEvent(run, { kind: 'status', status: 'calling_tool', detail: REVERSED });
  await page.getByRole('region', { name: 'Plan' }).getByText('<img src=x').first().waitFor();
  await page.getByRole('region', { name: 'Question' }).waitFor();
  await page.getByText('1 file changed').waitFor();
  await page.getByText('instead of').waitFor();
  await page.getByRole('region', { name: 'Plan' }).getByText('More').click();
  await page.getByRole('button', { name: 'Room details' }).click();
  await page.getByRole('complementary', { name: 'Room details' }).waitFor();
  await expectHarmless(page);
  gateway.complete(run, 'r1', 'Look.');
  await tab.message('Look.').waitFor();
  for (const path of [`rooms/${room}/tasks`, 'agents', 'agents/coder', 'search?q=iframe']) {
    await page.goto(`${hub.url}/app/${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await expectHarmless(page);
  }
  gateway.close();
});

async function expectHarmless(page: Page): Promise<void> {
  const injected = page.locator('#root :is(script, iframe, style, img:not([src^="blob:"]), a[href^="javascript:"], [onerror])');
  expect(await injected.count()).toBe(0);
  // The title contains the name of the room, which includes these words. A script would have replaced the
  // whole title.
  expect(await page.title()).not.toBe('taken over');
  const reversed = await page.evaluate(() => /[\u202a-\u202e\u2066-\u2069]/.exec(document.body.innerText)?.input);
  expect(reversed).toBeUndefined();
}

test('the content security policy blocks all script injection', async () => {
  const tab = await Tab.open(flow.browser, flow.hub.url);
  await tab.page.getByLabel('Username').waitFor();
  const tried = await tab.page.evaluate(() =>
    [
      () => (document.body.innerHTML = '<b>'),
      () => (document.createElement('script').text = '1'),
      () => document.write('x'),
    ].map((way) => {
      try {
        way();
        return 'done';
      } catch (error) {
        return error instanceof Error ? error.name : 'thrown';
      }
    }),
  );
  expect(tried).toEqual(['TypeError', 'TypeError', 'TypeError']);
  expectConsoleErrors(/Trusted(HTML|Script)|trusted types/i);
});
