import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { expectConsoleErrors, Tab } from './browser';
import { Gateway } from './gateway';
import { Hub } from './hub';
import { setUpFlow } from './flow-context';

const flow = setUpFlow(Hub.withAdmin);

type Json = Record<string, unknown>;

/** Changes responses of the hub so that rendering them throws. */
async function corruptResponse(page: Page, path: RegExp, edit: (body: Json) => void): Promise<void> {
  await page.route(path, async (route) => {
    const answer = await route.fetch();
    const body = (await answer.json()) as Json;
    edit(body);
    await route.fulfill({ response: answer, json: body });
  });
}

function failedPart(within: Page | Locator): Locator {
  return within.getByRole('alert').filter({ hasText: 'This part of the page failed.' });
}

test('a failed part of the page shows an error, and the rest keeps working', async () => {
  const { hub, browser } = flow;
  const admin = await hub.signIn('admin');
  const room = await hub.createRoom(admin, 'Kitchen', []);
  const gateway = await Gateway.connect(hub, admin, { id: 'coder', name: 'Coder' });
  await hub.call(admin, 'POST', `/api/rooms/${room}/members`, { memberId: 'coder', memberType: 'agent' });
  for (const content of ['Soup', 'Bread']) await hub.call(admin, 'POST', `/api/rooms/${room}/messages`, { content });
  const tab = await Tab.signedIn(browser, hub, 'admin');
  const { page } = tab;
  const list = page.getByRole('navigation', { name: 'Rooms' });
  const panel = page.getByRole('complementary', { name: 'Room details' });
  await tab.enter('Kitchen');

  // The room list fails: the open room keeps working, and the reload button restores the list.
  await corruptResponse(page, /\/api\/messages\/recent$/, (body) => ((body['data'] as Record<string, Json>)[room]!['content'] = null));
  await page.reload();
  await failedPart(page).waitFor();
  expect(await list.count()).toBe(0);
  await tab.send('Butter');
  await tab.message('Butter').waitFor();
  expect(await failedPart(page).count()).toBe(1);
  expectConsoleErrors(/null/);
  await page.unrouteAll();
  await failedPart(page).getByRole('button', { name: 'Reload page' }).click();
  await list.getByRole('link', { name: 'Kitchen' }).waitFor();
  expect(await failedPart(page).count()).toBe(0);

  // One message fails: the others are still shown.
  await corruptResponse(page, /\/api\/messages\/rooms\/[^/]+\?/, (body) => {
    const { items } = body['data'] as { items: Json[] };
    items.filter((item) => item['content'] === 'Bread').forEach((item) => (item['content'] = null));
  });
  await page.reload();
  await failedPart(page.getByRole('log')).waitFor();
  await tab.message('Soup').waitFor();
  await tab.message('Butter').waitFor();
  await page.unrouteAll();
  expectConsoleErrors(/null/);

  // The message field fails, because of a member without a name: messages are still shown.
  await corruptResponse(page, /\/api\/rooms\/[^/]+$/, (body) => {
    (body['data'] as { members: Json[] }).members.forEach((member) => (member['displayName'] = null));
  });
  await page.reload();
  await tab.message('Bread').waitFor();
  await page.getByText('2 members').waitFor();
  await tab.field.pressSequentially('@');
  await failedPart(page.getByRole('main')).waitFor();
  expect(await tab.field.count()).toBe(0);
  await hub.call(admin, 'POST', `/api/rooms/${room}/messages`, { content: 'Cheese' });
  await tab.message('Cheese').waitFor();
  await page.unrouteAll();
  expectConsoleErrors(/null/);
  await page.reload();
  await tab.field.fill('');

  // The room panel fails: it can still be closed.
  await corruptResponse(page, /\/approval-rules$/, (body) => (body['data'] = 'none'));
  await page.getByRole('button', { name: 'Room details' }).click();
  await failedPart(panel).waitFor();
  await panel.getByRole('button', { name: 'Close' }).click();
  await panel.waitFor({ state: 'detached' });
  expectConsoleErrors(/is not a function/);

  // A dialog fails: it can still be closed.
  await corruptResponse(page, /\/deliveries$/, (body) => (body['data'] = {}));
  await tab.message('Cheese').hover();
  await page.getByRole('button', { name: 'More', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Why did no agent answer?' }).click();
  const dialog = page.getByRole('dialog', { name: 'This part of the page failed.' });
  await dialog.getByRole('button', { name: 'Reload page' }).waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await dialog.waitFor({ state: 'detached' });
  await tab.send('Wine');
  await tab.message('Wine').waitFor();
  expectConsoleErrors(/is not a function/);

  // The content of a page fails, and the script of another is missing: both recover on navigation.
  await corruptResponse(page, /\/api\/agents$/, (body) => (body['data'] = {}));
  await list.getByRole('link', { name: 'Agents' }).click();
  await failedPart(page.getByRole('main')).waitFor();
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  expectConsoleErrors(/is not a function/);
  await page.route(/\/MissionsPage-[^/]+\.js$/, (route) => route.abort());
  await list.getByRole('link', { name: 'Missions' }).click();
  await failedPart(page).waitFor();
  expectConsoleErrors(/dynamically imported module/);
  await list.getByRole('link', { name: 'Kitchen' }).click();
  await tab.message('Wine').waitFor();
  expect(await failedPart(page).count()).toBe(0);
  gateway.close();
});
