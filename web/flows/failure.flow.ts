import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { expectComplaints, Tab } from './browser';
import { Gateway } from './gateway';
import { Hub } from './hub';
import { onStage } from './stage';

const stage = onStage(Hub.withAdmin);

type Json = Record<string, unknown>;

/** Spoils answers of the hub, so that drawing them throws. */
async function spoil(page: Page, path: RegExp, edit: (body: Json) => void): Promise<void> {
  await page.route(path, async (route) => {
    const answer = await route.fetch();
    const body = (await answer.json()) as Json;
    edit(body);
    await route.fulfill({ response: answer, json: body });
  });
}

function broken(within: Page | Locator): Locator {
  return within.getByRole('alert').filter({ hasText: 'This part of the page failed.' });
}

test('a part of the page that fails says so, and the rest goes on', async () => {
  const { hub, browser } = stage;
  const admin = await hub.signIn('admin');
  const room = await hub.makeRoom(admin, 'Kitchen', []);
  const gateway = await Gateway.connect(hub, admin, { id: 'coder', name: 'Coder' });
  await hub.call(admin, 'POST', `/api/rooms/${room}/members`, { memberId: 'coder', memberType: 'agent' });
  for (const content of ['Soup', 'Bread']) await hub.call(admin, 'POST', `/api/rooms/${room}/messages`, { content });
  const tab = await Tab.signedIn(browser, hub, 'admin');
  const { page } = tab;
  const list = page.getByRole('navigation', { name: 'Rooms' });
  const panel = page.getByRole('complementary', { name: 'Room' });
  await tab.enter('Kitchen');

  // The list of rooms: the conversation goes on beside it, and the button brings it back.
  await spoil(page, /\/api\/messages\/recent$/, (body) => ((body['data'] as Record<string, Json>)[room]!['content'] = null));
  await page.reload();
  await broken(page).waitFor();
  expect(await list.count()).toBe(0);
  await tab.say('Butter');
  await tab.said('Butter').waitFor();
  expect(await broken(page).count()).toBe(1);
  expectComplaints(/null/);
  await page.unrouteAll();
  await broken(page).getByRole('button', { name: 'Reload the page' }).click();
  await list.getByRole('link', { name: 'Kitchen' }).waitFor();
  expect(await broken(page).count()).toBe(0);

  // One message among others.
  await spoil(page, /\/api\/messages\/rooms\/[^/]+\?/, (body) => {
    const { items } = body['data'] as { items: Json[] };
    items.filter((item) => item['content'] === 'Bread').forEach((item) => (item['content'] = null));
  });
  await page.reload();
  await broken(page.getByRole('log')).waitFor();
  await tab.said('Soup').waitFor();
  await tab.said('Butter').waitFor();
  await page.unrouteAll();
  expectComplaints(/null/);

  // The field in which one writes, by a member without a name; what is said is still shown.
  await spoil(page, /\/api\/rooms\/[^/]+$/, (body) => {
    (body['data'] as { members: Json[] }).members.forEach((member) => (member['displayName'] = null));
  });
  await page.reload();
  await tab.said('Bread').waitFor();
  await page.getByText('2 members').waitFor();
  await tab.field.pressSequentially('@');
  await broken(page.getByRole('main')).waitFor();
  expect(await tab.field.count()).toBe(0);
  await hub.call(admin, 'POST', `/api/rooms/${room}/messages`, { content: 'Cheese' });
  await tab.said('Cheese').waitFor();
  await page.unrouteAll();
  expectComplaints(/null/);
  await page.reload();
  await tab.field.fill('');

  // The panel beside the conversation can still be closed.
  await spoil(page, /\/approval-rules$/, (body) => (body['data'] = 'none'));
  await page.getByRole('button', { name: 'Room', exact: true }).click();
  await broken(panel).waitFor();
  await panel.getByRole('button', { name: 'Close' }).click();
  await panel.waitFor({ state: 'detached' });
  expectComplaints(/is not a function/);

  // So can a dialog.
  await spoil(page, /\/deliveries$/, (body) => (body['data'] = {}));
  await tab.said('Cheese').hover();
  await page.getByRole('button', { name: 'More', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Why did nobody answer?' }).click();
  const dialog = page.getByRole('dialog', { name: 'This part of the page failed.' });
  await dialog.getByRole('button', { name: 'Reload the page' }).waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await dialog.waitFor({ state: 'detached' });
  await tab.say('Wine');
  await tab.said('Wine').waitFor();
  expectComplaints(/is not a function/);

  // A page whose content fails, and one whose script is not there any more; each is left for the next place.
  await spoil(page, /\/api\/agents$/, (body) => (body['data'] = {}));
  await list.getByRole('link', { name: 'Agents' }).click();
  await broken(page.getByRole('main')).waitFor();
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  expectComplaints(/is not a function/);
  await page.route(/\/MissionsPage-[^/]+\.js$/, (route) => route.abort());
  await list.getByRole('link', { name: 'Missions' }).click();
  await broken(page).waitFor();
  expectComplaints(/dynamically imported module/);
  await list.getByRole('link', { name: 'Kitchen' }).click();
  await tab.said('Wine').waitFor();
  expect(await broken(page).count()).toBe(0);
  gateway.close();
});
