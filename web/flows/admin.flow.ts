import { expect, test } from 'vitest';
import { Tab } from './browser';
import { Hub, PASSWORD } from './hub';
import { onStage } from './stage';

const stage = onStage(Hub.withAdmin);

test('a key is made, does what it may, and is taken back', async () => {
  const tab = await Tab.signedIn(stage.browser, stage.hub, 'admin');
  const { page } = tab;
  await page.goto(`${stage.hub.url}/app/settings/keys`);
  await page.getByLabel('What it is for').fill('backup script');
  await page.getByRole('checkbox', { name: /^read/ }).check();
  await page.getByRole('button', { name: 'Make the key' }).click();
  const key = (await page.locator('[data-shown-once]').textContent()) ?? '';
  const rooms = () => fetch(`${stage.hub.url}/api/rooms`, { headers: { authorization: `Bearer ${key}` } });
  expect((await rooms()).status).toBe(200);
  const listed = page.getByRole('list', { name: 'API keys' }).getByRole('listitem');
  await listed.filter({ hasText: 'backup script' }).getByRole('button', { name: 'Revoke' }).click();
  await listed.waitFor({ state: 'detached' });
  expect((await rooms()).status).toBe(401);
});

test('an admin manages accounts, and the log tells who did what', async () => {
  const admin = await stage.hub.signIn('admin');
  await stage.hub.addPerson(admin, 'grace', 'Grace Hopper');
  const tab = await Tab.signedIn(stage.browser, stage.hub, 'admin');
  const { page } = tab;
  await page.goto(`${stage.hub.url}/app/settings/people`);
  await page.getByRole('button', { name: 'Make a link' }).click();
  await page.getByRole('list', { name: 'Open invitations' }).getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('list', { name: 'Open invitations' }).waitFor({ state: 'detached' });

  await page.getByRole('button', { name: 'More: Grace Hopper' }).click();
  await page.getByRole('menuitem', { name: 'Give a new password' }).click();
  const password = (await page.locator('[data-shown-once]').textContent()) ?? '';
  const login = (given: string) =>
    fetch(`${stage.hub.url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username: 'grace', password: given }),
    });
  expect((await login(PASSWORD)).status).toBe(401);
  expect((await login(password)).status).toBe(200);
  await page.getByRole('button', { name: 'More: Grace Hopper' }).click();
  await page.getByRole('menuitem', { name: 'Remove the account' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove the account' }).click();
  await page.getByRole('button', { name: 'More: Grace Hopper' }).waitFor({ state: 'detached' });

  await page.getByRole('button', { name: 'Audit log' }).click();
  const entries = page.getByRole('list', { name: 'Audit log' }).getByRole('listitem');
  await entries.filter({ hasText: /^admin removed the account of grace/ }).waitFor();
  await entries.filter({ hasText: /^admin signed in/ }).first().waitFor();
});

test('an admin sees at a glance how the hub is doing', async () => {
  const tab = await Tab.signedIn(stage.browser, stage.hub, 'admin');
  // Without loading the page anew: the connection that is counted is there before the figures are asked for.
  await tab.page.getByText('Connecting…').waitFor({ state: 'detached' });
  await tab.page.getByRole('button', { name: /^admin/i }).click();
  await tab.page.getByRole('menuitem', { name: 'Settings' }).click();
  await tab.page.getByRole('button', { name: 'Hub', exact: true }).click();
  const figure = (name: string) => tab.page.locator('dl > div').filter({ hasText: name }).getByRole('definition');
  await expect.poll(() => figure('Open pages and clients').textContent()).toBe('1');
  expect(await figure('State').first().textContent()).toBe('All is well');
  expect(await figure('On disk').textContent()).toMatch(/^[\d.]+ [KMG]B$/);
  expect(await figure('Speed of answers').textContent()).toMatch(/^Half of them within [\d.]+ ms, nearly all within [\d.,∞]+ ms$/);
});

test('an admin sees what agents may spend, and every limit by the name of its setting', async () => {
  const tab = await Tab.signedIn(stage.browser, stage.hub, 'admin');
  await tab.page.goto(`${stage.hub.url}/app/settings/limits`);
  const limit = (key: string) => tab.page.locator('dl > div').filter({ has: tab.page.getByText(key, { exact: true }) });
  await expect.poll(() => limit('max_turns_per_day').getByRole('definition').textContent()).toBe('200');
  expect(await limit('max_upload_size').getByRole('definition').textContent()).toBe('10 MB');
  // These hubs run without them.
  expect(await limit('login_rate_limit_max').getByRole('definition').textContent()).toBe('no limit');
});

test('settings of the hub hold from that moment on', async () => {
  const tab = await Tab.signedIn(stage.browser, stage.hub, 'admin');
  const { page } = tab;
  await page.goto(`${stage.hub.url}/app/settings/hub`);
  await page.getByLabel('Name of the hub').fill('The Old Mill');
  await page.getByRole('checkbox', { name: /invite people/ }).uncheck();
  await page.getByRole('button', { name: 'Save' }).click();
  await expect.poll(async () => (await stage.hub.settings(await stage.hub.signIn('admin')))['hubName']).toBe('The Old Mill');
  await page.goto(`${stage.hub.url}/app/settings/people`);
  await page.getByRole('button', { name: 'Make a link' }).click();
  await page.getByRole('alert').waitFor();
});

test('who is no admin finds none of it', async () => {
  await stage.hub.addPerson(await stage.hub.signIn('admin'), 'grace', 'Grace Hopper');
  const tab = await Tab.signedIn(stage.browser, stage.hub, 'grace');
  await tab.page.goto(`${stage.hub.url}/app/settings/audit`);
  await tab.page.getByRole('heading', { name: 'Profile' }).waitFor();
  for (const name of ['People', 'Audit log', 'Limits', 'Hub']) {
    expect(await tab.page.getByRole('button', { name, exact: true }).count()).toBe(0);
  }
});
