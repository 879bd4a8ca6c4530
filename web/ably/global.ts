/** Starts the hub that all test files share. Each test has channels of its own. */
import type { TestProject } from 'vitest/node';
import { Hub } from '../flows/hub';
import { makeKey } from './keys';

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const hub = await Hub.withAdmin();
  const admin = await hub.signIn('admin');
  project.provide('hub', { url: hub.url, key: await makeKey(hub.url, admin.token), admin: admin.token });
  return () => hub.remove();
}

declare module 'vitest' {
  export interface ProvidedContext {
    /** The shared hub, a key with every capability, and a token of its admin for `/api`. */
    hub: { url: string; key: string; admin: string };
  }
}
