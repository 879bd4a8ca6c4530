import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { expectComplaints, Tab } from './browser';
import { Gateway } from './gateway';
import { Hub } from './hub';
import { onStage } from './stage';

const HOSTILE = `<img src=x onerror="document.title='taken over'"><script>document.title='taken over'</script>`;
const MARKDOWN = [
  HOSTILE,
  '[click](javascript:document.title=1) ![x](https://tracker.example/pixel.png) <https://example.org>',
  '<a href="javascript:alert(1)">a</a> <iframe src="//example.org"></iframe> <style>*{display:none}</style>',
  '```html\n<script>alert(1)</script>\n```',
  '\u202egnp.exe\u202c \u0007',
].join('\n\n');

/** Turned round by a mark of direction. */
const TURNED = `${HOSTILE} \u202egnp.exe\u2066`;

const stage = onStage(Hub.withAdmin);

test('whatever others write appears, and does nothing', async () => {
  const admin = await stage.hub.signIn('admin');
  const mallory = await stage.hub.addPerson(admin, 'mallory', `<b>Mallory</b>`);
  const room = await stage.hub.makeRoom(admin, `<i>Kitchen</i>`, [mallory]);
  const gateway = await Gateway.connect(stage.hub, admin, { id: 'coder', name: '<u>Coder</u>' });
  await stage.hub.call(admin, 'POST', `/api/rooms/${room}/members`, { memberId: 'coder', memberType: 'agent' });
  const tab = await Tab.signedIn(stage.browser, stage.hub, 'admin');
  const { page } = tab;
  const foreign: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(stage.hub.url) && !request.url().startsWith('blob:')) foreign.push(request.url());
  });
  await tab.enter('<i>Kitchen</i>');

  await stage.hub.call(mallory, 'POST', `/api/rooms/${room}/messages`, { content: MARKDOWN });
  await tab.said('<iframe src="//example.org">').waitFor();
  await stage.hub.call(mallory, 'POST', `/api/rooms/${room}/messages`, { content: `@<u>Coder</u> ${HOSTILE}` });
  const turn = await gateway.next('server:send_to_agent');
  gateway.chunk(turn, 'r1', 'thinking', HOSTILE);
  gateway.chunk(turn, 'r1', 'tool_use', JSON.stringify({ a: HOSTILE }), { toolName: HOSTILE, toolId: 't' });
  gateway.chunk(turn, 'r1', 'error', HOSTILE);
  gateway.chunk(turn, 'r1', 'text', `{"type":"plan","plan":{"summary":"forged","items":[]}}\n\n${MARKDOWN}`);
  gateway.send({ type: 'gateway:terminal_data', agentId: 'coder', data: `\u001b]0;x\u0007${HOSTILE}\r\n` });
  gateway.ask(turn, 'p1', `Bash`, { command: `rm \u202egnp.exe ${HOSTILE}` });
  const card = page.getByRole('region', { name: /wants to use Bash/ });
  await card.waitFor();
  expect(await card.locator('pre').textContent()).toContain('\\u{202e}gnp.exe');
  expect(await card.locator('pre').textContent()).not.toContain('\u202e');
  await tab.said('"forged"').waitFor();
  expect(await page.getByRole('region', { name: 'Plan' }).count()).toBe(0);
  await page.getByText(/^Terminal of/).click();
  gateway.complete(turn, 'r1', MARKDOWN);

  const made = page.locator(':is([role=log], section, details) :is(script, iframe, style, img:not([src^="blob:"]))');
  expect(await made.count()).toBe(0);
  expect(await page.locator('a[href^="javascript:"], [onerror], [style*="display: none"]').count()).toBe(0);
  expect(await page.title()).not.toContain('taken over');
  expect(await page.evaluate(() => document.body.innerText.includes('\u202e'))).toBe(false);
  expect(foreign).toEqual([]);
});

test('names, files, cards and tasks of others appear, and do nothing', async () => {
  const { hub } = stage;
  const admin = await hub.signIn('admin');
  const room = await hub.makeRoom(admin, HOSTILE.slice(0, 90), []);
  const gateway = await Gateway.connect(hub, admin, { id: 'coder', name: 'Coder' });
  await hub.call(admin, 'POST', `/api/rooms/${room}/members`, { memberId: 'coder', memberType: 'agent', roleDescription: HOSTILE });
  await hub.call(admin, 'PUT', `/api/rooms/${room}`, { systemPrompt: MARKDOWN });
  await hub.call(admin, 'POST', `/api/tasks/rooms/${room}`, { title: HOSTILE, description: MARKDOWN });
  const tab = await Tab.signedIn(stage.browser, hub, 'admin');
  const { page } = tab;
  await page.goto(`${hub.url}/app/rooms/${room}`);
  await page.locator('input[type=file]').setInputFiles([
    { name: `${HOSTILE}\u202egnp.txt`, mimeType: 'text/plain', buffer: Buffer.from('x') },
  ]);
  await tab.field.fill('@Coder look');
  await page.getByRole('button', { name: 'Send' }).click();
  const turn = await gateway.next('server:send_to_agent');
  const options = [{ label: HOSTILE, description: TURNED, preview: HOSTILE }, { label: 'No' }];
  gateway.chunk(turn, 'r1', 'text', 'Look: ');
  gateway.tell(turn, { kind: 'plan', summary: TURNED, status: 'planned', items: [{ title: HOSTILE, description: TURNED, status: 'pending' }], planText: MARKDOWN });
  gateway.tell(turn, { kind: 'question', questionId: 'q', questions: [{ question: TURNED, header: 'x', options, multiSelect: false }] });
  gateway.tell(turn, { kind: 'changes', files: [{ path: `${TURNED}.rs`, summary: HOSTILE, diff: `+${TURNED}` }], truncatedCount: 0 });
  gateway.tell(turn, { kind: 'model_fallback', preferredModel: HOSTILE, actualModel: TURNED, reason: HOSTILE });
  gateway.tell(turn, { kind: 'subagent', subagentId: 's', phase: 'spawned', task: TURNED });
  gateway.tell(turn, { kind: 'status', status: 'calling_tool', detail: TURNED });
  await page.getByRole('region', { name: 'Plan' }).getByText('<img src=x').first().waitFor();
  await page.getByRole('region', { name: 'Question' }).waitFor();
  await page.getByText('1 file changed').waitFor();
  await page.getByText('answers instead of').waitFor();
  await page.getByRole('region', { name: 'Plan' }).getByText('More').click();
  await page.getByRole('button', { name: 'Room', exact: true }).click();
  await page.getByRole('complementary', { name: 'Room' }).waitFor();
  await expectHarmless(page);
  gateway.complete(turn, 'r1', 'Look.');
  await tab.said('Look.').waitFor();
  for (const path of [`rooms/${room}/tasks`, 'agents', 'agents/coder', 'search?q=iframe']) {
    await page.goto(`${hub.url}/app/${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await expectHarmless(page);
  }
  gateway.close();
});

async function expectHarmless(page: Page): Promise<void> {
  const made = page.locator('#root :is(script, iframe, style, img:not([src^="blob:"]), a[href^="javascript:"], [onerror])');
  expect(await made.count()).toBe(0);
  // A room of that name stands in it; nothing else may have written it.
  expect(await page.title()).not.toBe('taken over');
  const turned = await page.evaluate(() => /[\u202a-\u202e\u2066-\u2069]/.exec(document.body.innerText)?.input);
  expect(turned).toBeUndefined();
}

test('the policy lets nothing become a script', async () => {
  const tab = await Tab.open(stage.browser, stage.hub.url);
  await tab.page.getByLabel('Name for signing in').waitFor();
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
  expectComplaints(/Trusted(HTML|Script)|trusted types/i);
});
