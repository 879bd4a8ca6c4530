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
