import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { Tab } from './browser';
import { Hub, PASSWORD } from './hub';
import { setUpFlow } from './flow-context';

const NEW_PASSWORD = 'Other-horse-8';

const flow = setUpFlow(Hub.withAdmin);

test('an invited user registers, turns on two-factor authentication, and signs in with a backup code', async () => {
  const admin = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  await admin.page.goto(`${flow.hub.url}/app/settings/people`);
  await admin.page.getByRole('button', { name: 'Create invite link' }).click();
  const link = await admin.page.locator('[data-shown-once]').textContent();

  const tab = await Tab.open(flow.browser, link ?? '');
  const { page } = tab;
  await page.getByRole('heading', { name: 'Create your account' }).waitFor();
  await page.getByLabel('Username').fill('grace');
  await page.getByLabel('Password', { exact: true }).fill('weak');
  await page.getByRole('button', { name: 'Create account' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Create account' }).click();
  await page.getByRole('navigation', { name: 'Rooms' }).waitFor();
  expect(page.url()).not.toContain('token');

  await page.goto(`${flow.hub.url}/app/settings/security`);
  await page.getByRole('button', { name: 'Set up' }).click();
  const secret = (await page.locator('p.select-all').textContent()) ?? '';
  await page.getByLabel('Authentication code').fill(codeOf(secret, Date.now()));
  await page.getByRole('button', { name: 'Turn on' }).click();
  await page.getByText('Backup codes').waitFor();
  const [backup = ''] = await page.locator('ul.font-mono li').allTextContents();
  await page.getByText('On. Signing in requires a code.').waitFor();

  await page.getByRole('button', { name: /grace/ }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByLabel('Username').fill('grace');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Authentication code').fill('000000');
  await page.getByRole('button', { name: 'Verify' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Authentication code').fill(backup);
  await page.getByRole('button', { name: 'Verify' }).click();
  await page.getByRole('navigation', { name: 'Rooms' }).waitFor();
});

test('a user signs out another device, and a new password signs out all devices', async () => {
  const [here, there] = [await Tab.throughForm(flow.browser, flow.hub, 'admin'), await Tab.throughForm(flow.browser, flow.hub, 'admin')];
  await here.page.goto(`${flow.hub.url}/app/settings/security`);
  await here.page.getByRole('listitem').getByRole('button', { name: 'Sign out' }).first().click();
  await there.page.getByRole('heading', { name: 'Sign in' }).waitFor();
  const others = [await Tab.throughForm(flow.browser, flow.hub, 'admin'), await Tab.throughForm(flow.browser, flow.hub, 'admin')];
  await here.page.reload();
  await here.page.getByRole('button', { name: 'Sign out all other devices' }).click();
  for (const other of others) await other.page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await expect.poll(() => here.page.getByText('this device').count()).toBe(1);
  await here.page.getByRole('button', { name: 'Sign out all other devices' }).waitFor({ state: 'detached' });
  await here.page.getByLabel('Current password').fill(PASSWORD);
  await here.page.getByLabel('New password').fill(NEW_PASSWORD);
  await here.page.getByRole('button', { name: 'Change password' }).click();
  await here.page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await here.page.getByLabel('Username').fill('admin');
  await here.page.getByLabel('Password', { exact: true }).fill(NEW_PASSWORD);
  await here.page.getByRole('button', { name: 'Sign in' }).click();
  await here.page.getByRole('navigation', { name: 'Rooms' }).waitFor();
});

test('no token is stored where a script could read it', async () => {
  const tab = await Tab.throughForm(flow.browser, flow.hub, 'admin');
  const kept = await tab.page.evaluate(() => [document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage)]);
  expect(kept[0]).toBe('');
  expect(kept.join()).not.toMatch(/eyJ|plr_|token/i);
});

/** TOTP code (RFC 6238) of a secret at a time in milliseconds. */
function codeOf(secret: string, now: number): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const bits = Array.from(secret.replace(/[\s=]/g, ''), (letter) => letters.indexOf(letter).toString(2).padStart(5, '0'));
  const key = Buffer.from((bits.join('').match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(now / 30_000)));
  const digest = createHmac('sha1', key).update(counter).digest();
  const at = (digest.at(-1) ?? 0) & 0xf;
  return String((digest.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}
