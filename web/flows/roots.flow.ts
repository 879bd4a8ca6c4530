import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { Tab } from './browser';
import { Hub } from './hub';
import { onStage } from './stage';

const FOLDER = realpathSync(mkdtempSync(join(tmpdir(), 'parlor-roots-')));
mkdirSync(join(FOLDER, 'mill'));

const stage = onStage(() => Hub.withAdmin({ PARLOR_PROJECT_ROOTS: FOLDER }));
afterAll(() => rmSync(FOLDER, { recursive: true }));

test('an admin says which folder a room is about, and its members see it', async () => {
  const { hub, browser } = stage;
  const admin = await hub.signIn('admin');
  const grace = await hub.addPerson(admin, 'grace', 'Grace Hopper');
  await hub.makeRoom(admin, 'Kitchen', [grace]);
  const [tab, other] = await Promise.all([Tab.signedIn(browser, hub, 'admin'), Tab.signedIn(browser, hub, 'grace')]);
  const panels = await Promise.all(
    [tab, other].map(async (one) => {
      await one.enter('Kitchen');
      await one.page.getByRole('button', { name: 'Room', exact: true }).click();
      return one.page.getByRole('complementary', { name: 'Room' });
    }),
  );
  const [own, hers] = panels as [(typeof panels)[0], (typeof panels)[0]];
  const field = own.getByLabel('The folder this room is about');
  await own.locator(`datalist option[value="${FOLDER}"]`).waitFor({ state: 'attached' });
  await field.fill('/etc');
  await own.getByRole('button', { name: 'Save' }).click();
  await own.getByRole('alert').filter({ hasText: 'project_roots' }).waitFor();

  await field.fill(join(FOLDER, 'mill'));
  await own.getByRole('button', { name: 'Save' }).click();
  await hers.getByText(join(FOLDER, 'mill')).waitFor();
  await hers.getByText('Grace Hopper').waitFor();
  expect(await hers.getByLabel('The folder this room is about').count()).toBe(0);
  await other.page.reload();
  await other.page.getByRole('button', { name: 'Room', exact: true }).click();
  await hers.getByText(join(FOLDER, 'mill')).waitFor();

  await own.getByRole('button', { name: 'About no folder' }).click();
  await hers.getByText(join(FOLDER, 'mill')).waitFor({ state: 'detached' });
});
