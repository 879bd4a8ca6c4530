import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { Tab } from './browser';
import { Hub } from './hub';
import { setUpFlow } from './flow-context';

const FOLDER = realpathSync(mkdtempSync(join(tmpdir(), 'parlor-roots-')));
mkdirSync(join(FOLDER, 'mill'));

const flow = setUpFlow(() => Hub.withAdmin({ PARLOR_PROJECT_ROOTS: FOLDER }));
afterAll(() => rmSync(FOLDER, { recursive: true }));

test('an admin sets the project folder of a room, and its members see it', async () => {
  const { hub, browser } = flow;
  const admin = await hub.signIn('admin');
  const grace = await hub.addUser(admin, 'grace', 'Grace Hopper');
  await hub.createRoom(admin, 'Kitchen', [grace]);
  const [tab, other] = await Promise.all([Tab.signedIn(browser, hub, 'admin'), Tab.signedIn(browser, hub, 'grace')]);
  const panels = await Promise.all(
    [tab, other].map(async (each) => {
      await each.enter('Kitchen');
      await each.page.getByRole('button', { name: 'Room details' }).click();
      return each.page.getByRole('complementary', { name: 'Room details' });
    }),
  );
  const [adminPanel, memberPanel] = panels as [(typeof panels)[0], (typeof panels)[0]];
  const field = adminPanel.getByLabel('Folder path');
  await adminPanel.locator(`datalist option[value="${FOLDER}"]`).waitFor({ state: 'attached' });
  await field.fill('/etc');
  await adminPanel.getByRole('button', { name: 'Save' }).click();
  await adminPanel.getByRole('alert').filter({ hasText: 'project_roots' }).waitFor();

  await field.fill(join(FOLDER, 'mill'));
  await adminPanel.getByRole('button', { name: 'Save' }).click();
  await memberPanel.getByText(join(FOLDER, 'mill')).waitFor();
  await memberPanel.getByText('Grace Hopper').waitFor();
  expect(await memberPanel.getByLabel('Folder path').count()).toBe(0);
  await other.page.reload();
  await other.page.getByRole('button', { name: 'Room details' }).click();
  await memberPanel.getByText(join(FOLDER, 'mill')).waitFor();

  await adminPanel.getByRole('button', { name: 'Unlink folder' }).click();
  await memberPanel.getByText(join(FOLDER, 'mill')).waitFor({ state: 'detached' });
});
