/** The picture in the README: `npm run picture`. The page of a fresh hub, with what its guide really shows. */
import { resolve } from 'node:path';
import { test } from 'vitest';
import { Hub } from './hub';
import { firstAdmin, onStage } from './stage';

const stage = onStage(Hub.fresh);

test('the picture of the README', async () => {
  const options = { colorScheme: 'light', viewport: { width: 1200, height: 860 }, reducedMotion: 'reduce' } as const;
  const tab = await firstAdmin(stage, options);
  const admin = await stage.hub.signIn('ada');
  const grace = await stage.hub.addPerson(admin, 'grace', 'Grace Hopper');
  for (const name of ['Release 0.4', 'Kitchen']) {
    const room = await stage.hub.makeRoom(admin, name, [grace]);
    await stage.hub.call(grace, 'POST', `/api/rooms/${room}/messages`, { content: `Morning! Anything new in ${name}?` });
  }
  await tab.say('@guide plan');
  await tab.page.getByRole('region', { name: 'Plan' }).getByText('4/4').waitFor();
  await tab.say('@guide permission');
  await tab.page.getByRole('region', { name: /wants to use/ }).waitFor();
  await tab.page.mouse.move(0, 0);
  await tab.page.screenshot({ path: resolve(import.meta.dirname, '../../docs/parlor.png') });
});
