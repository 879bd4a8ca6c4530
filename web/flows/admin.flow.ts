import { expect, test } from 'vitest';
import { Tab } from './browser';
import { Hub, PASSWORD } from './hub';
import { setUpFlow } from './flow-context';

const flow = setUpFlow(Hub.withAdmin);

test('an API key is created, grants its scopes, and stops working when it is revoked', async () => {
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  const { page } = tab;
  await page.goto(`${flow.hub.url}/app/settings/keys`);
  const form = page.getByRole('form', { name: 'New API key' });
  await form.getByLabel('Name', { exact: true }).fill('backup script');
  await form.getByRole('checkbox', { name: /^read/ }).check();
  await page.getByRole('button', { name: 'Create API key' }).click();
  const key = (await page.locator('[data-shown-once]').textContent()) ?? '';
  const rooms = () => fetch(`${flow.hub.url}/api/rooms`, { headers: { authorization: `Bearer ${key}` } });
  expect((await rooms()).status).toBe(200);
  const listed = page.getByRole('list', { name: 'API keys' }).getByRole('listitem');
  await listed.filter({ hasText: 'backup script' }).getByRole('button', { name: 'Revoke' }).click();
  await listed.waitFor({ state: 'detached' });
  expect((await rooms()).status).toBe(401);
});

test('an admin creates a key of the Ably protocol with a capability', async () => {
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  const { page } = tab;
  await page.goto(`${flow.hub.url}/app/settings/keys`);
  const form = page.getByRole('form', { name: 'New Ably key' });
  await form.getByLabel('Name', { exact: true }).fill('dashboard');
  await form.getByLabel('Capability').fill('{"chat:*":["subscribe","history"]}');
  await form.getByRole('button', { name: 'Create Ably key' }).click();
  const key = (await page.locator('[data-shown-once]').textContent()) ?? '';
  const channel = (name: string) =>
    fetch(`${flow.hub.url}/channels/${encodeURIComponent(name)}/messages`, {
      headers: { authorization: `Basic ${btoa(key)}` },
    });
  expect((await channel('chat:a')).status).toBe(200);
  expect((await channel('other')).status).toBe(401);
  const listed = page.getByRole('list', { name: 'API keys' }).getByRole('listitem').filter({ hasText: 'dashboard' });
  await listed.getByText('{"chat:*":["history","subscribe"]}').waitFor();
  await listed.getByRole('button', { name: 'Revoke' }).click();
  await listed.waitFor({ state: 'detached' });
  expect((await channel('chat:a')).status).toBe(401);
});

test('an admin manages accounts, and the audit log records every action', async () => {
  const admin = await flow.hub.signIn('admin');
  await flow.hub.addUser(admin, 'grace', 'Grace Hopper');
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  const { page } = tab;
  await page.goto(`${flow.hub.url}/app/settings/people`);
  await page.getByRole('button', { name: 'Create invite link' }).click();
  await page.getByRole('list', { name: 'Pending invitations' }).getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('list', { name: 'Pending invitations' }).waitFor({ state: 'detached' });

  await page.getByRole('button', { name: 'More: Grace Hopper' }).click();
  await page.getByRole('menuitem', { name: 'Reset password' }).click();
  const password = (await page.locator('[data-shown-once]').textContent()) ?? '';
  const login = (given: string) =>
    fetch(`${flow.hub.url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username: 'grace', password: given }),
    });
  expect((await login(PASSWORD)).status).toBe(401);
  expect((await login(password)).status).toBe(200);
  await page.getByRole('button', { name: 'More: Grace Hopper' }).click();
  await page.getByRole('menuitem', { name: 'Delete account' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete account' }).click();
  await page.getByRole('button', { name: 'More: Grace Hopper' }).waitFor({ state: 'detached' });

  await page.getByRole('button', { name: 'Audit log' }).click();
  const entries = page.getByRole('list', { name: 'Audit log' }).getByRole('listitem');
  await entries.filter({ hasText: /^admin deleted the account of grace/ }).waitFor();
  await entries.filter({ hasText: /^admin signed in/ }).first().waitFor();
});

test('an admin sees the metrics of the hub', async () => {
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  // Navigates without a reload, so that this tab's socket is open before the metrics are requested.
  await tab.page.getByText('Connecting…').waitFor({ state: 'detached' });
  await tab.page.getByRole('button', { name: /^admin/i }).click();
  await tab.page.getByRole('menuitem', { name: 'Settings' }).click();
  await tab.page.getByRole('button', { name: 'Hub', exact: true }).click();
  const figure = (name: string) => tab.page.locator('dl > div').filter({ hasText: name }).getByRole('definition');
  await expect.poll(() => figure('Connected clients').textContent()).toBe('1');
  expect(await figure('Status').first().textContent()).toBe('Healthy');
  expect(await figure('Disk usage').textContent()).toMatch(/^[\d.]+ [KMG]B$/);
  expect(await figure('Response time').textContent()).toMatch(/^50 % within [\d.]+ ms, 99 % within [\d.,∞]+ ms$/);
});

test('an admin sees agent budgets and all limits under the keys of their settings', async () => {
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  await tab.page.goto(`${flow.hub.url}/app/settings/limits`);
  const limit = (key: string) => tab.page.locator('dl > div').filter({ has: tab.page.getByText(key, { exact: true }) });
  await expect.poll(() => limit('max_turns_per_day').getByRole('definition').textContent()).toBe('200');
  expect(await limit('max_upload_size').getByRole('definition').textContent()).toBe('10 MB');
  // The hubs of these tests run with `PARLOR_LIMITS=off`, which disables rate limits.
  expect(await limit('login_rate_limit_max').getByRole('definition').textContent()).toBe('no limit');
});

test('changed hub settings take effect immediately', async () => {
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  const { page } = tab;
  await page.goto(`${flow.hub.url}/app/settings/hub`);
  await page.getByLabel('Hub name').fill('The Old Mill');
  await page.getByRole('checkbox', { name: /invite people/ }).uncheck();
  await page.getByRole('button', { name: 'Save' }).click();
  await expect.poll(async () => (await flow.hub.settings(await flow.hub.signIn('admin')))['hubName']).toBe('The Old Mill');
  await page.goto(`${flow.hub.url}/app/settings/people`);
  await page.getByRole('button', { name: 'Create invite link' }).click();
  await page.getByRole('alert').waitFor();
});

test('a user who is not an admin sees no admin settings', async () => {
  await flow.hub.addUser(await flow.hub.signIn('admin'), 'grace', 'Grace Hopper');
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'grace');
  await tab.page.goto(`${flow.hub.url}/app/settings/audit`);
  await tab.page.getByRole('heading', { name: 'Profile' }).waitFor();
  for (const name of ['People', 'Audit log', 'Limits', 'Hub']) {
    expect(await tab.page.getByRole('button', { name, exact: true }).count()).toBe(0);
  }
});
