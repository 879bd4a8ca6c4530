/** Benchmark of the page in Chromium against a hub with many messages. Run by `cargo xtask bench web`. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, test } from 'vitest';
import { startBrowser, Tab } from './browser';
import { Gateway } from './gateway';
import { Hub, type Account } from './hub';

const MESSAGES = 10_000;
const CONCURRENT_WRITERS = 16;
const ROUNDS = 5;
const AGENTS = 5;
const CHUNKS_PER_SECOND = 100;
const SECONDS = 6;
const ROOMS = 200;
const WORDS = 'a word **or** two, ';

let hub: Hub;
let browser: Browser;
let admin: Account;
const report: string[] = [];

beforeAll(async () => {
  [hub, browser] = await Promise.all([Hub.withAdmin(), startBrowser()]);
  admin = await hub.signIn('admin');
});
afterAll(async () => {
  await browser.close();
  await hub.remove();
  console.log(['', ...report, ''].join('\n'));
});

test('bytes of JavaScript loaded before the first paint', async () => {
  const tab = await Tab.open(browser, hub.url);
  await tab.page.getByLabel('Username').waitFor();
  const bytes = await tab.page.evaluate(() => {
    const painted = performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Infinity;
    const files = performance.getEntriesByType('resource') as PerformanceResourceTiming[];
    const before = files.filter((file) => file.name.endsWith('.js') && file.startTime < painted);
    return before.reduce((sum, file) => sum + file.encodedBodySize, 0);
  });
  addRow('JavaScript before the first paint, compressed', `${Math.round(bytes / 1000)} KB`, '< 300 KB', bytes < 300_000);
});

test('time to open a room with many messages', async () => {
  const [large, small] = [await hub.createRoom(admin, 'Large', []), await hub.createRoom(admin, 'Small', [])];
  await hub.call(admin, 'POST', `/api/rooms/${small}/messages`, { content: 'Nothing much' });
  await fill(large);
  const tab = await Tab.signedIn(browser, hub, 'admin');
  const { page } = tab;
  const newest = tab.message(`Message ${MESSAGES}.`);
  const loads: number[] = [];
  const visits: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    loads.push(await timed(() => page.goto(`${hub.url}/app/rooms/${large}`), newest));
    await page.goto(`${hub.url}/app/rooms/${small}`);
    await tab.message('Nothing much').waitFor();
    visits.push(await timed(() => page.getByRole('link', { name: 'Large' }).click(), newest));
  }
  const isQuick = median(loads) < 1000;
  addRow(`A room of ${MESSAGES} messages, from its link`, `${median(loads)} ms`, '< 1000 ms', isQuick);
  addRow(`A room of ${MESSAGES} messages, from another room`, `${median(visits)} ms`, '< 1000 ms', median(visits) < 1000);
  const frames = await framesWhile(page, async () => {
    const end = Date.now() + 4000;
    while (Date.now() < end) {
      await page.getByRole('log').evaluate((log) => log.scrollBy(0, -400));
      await page.evaluate(() => new Promise(requestAnimationFrame));
    }
  });
  addRow('Frames per second while scrolling to older messages', String(frames), '> 50', frames > 50);
});

test('time until the page is live in every room', async () => {
  const ids = [];
  for (let number = 0; number < ROOMS; number += 1) ids.push(await hub.createRoom(admin, `Room ${number}`, []));
  const tab = await Tab.signedIn(browser, hub, 'admin');
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const socket = tab.page.waitForEvent('websocket');
    const reloaded = tab.page.reload();
    const opened = await socket;
    const started = performance.now();
    await opened.waitForEvent('framereceived', { predicate: ({ payload }) => String(payload).includes('"server:following"') });
    times.push(Math.round(performance.now() - started));
    await reloaded;
  }
  const isQuick = median(times) < 1000;
  addRow(`Live in all of ${ROOMS} rooms, after the socket is opened`, `${median(times)} ms`, '< 1000 ms', isQuick);
});

test('frame rate while agents stream replies', async () => {
  const room = await hub.createRoom(admin, 'Loud', []);
  const gateways = await Promise.all(
    Array.from({ length: AGENTS }, async (_, index) => {
      const agent = { id: `agent-${index}`, name: `Agent${index}` };
      const gateway = await Gateway.connect(hub, admin, agent, `machine-${index}`);
      await hub.call(admin, 'POST', `/api/rooms/${room}/members`, { memberId: agent.id, memberType: 'agent' });
      return gateway;
    }),
  );
  const tab = await Tab.signedIn(browser, hub, 'admin');
  await tab.enter('Loud');
  // The agents start without a message, because one message may trigger only a limited number of runs.
  const runs = gateways.map((_, index) => ({ roomId: room, agentId: `agent-${index}` }));
  let sent = 0;
  const startedAt = Date.now();
  const timer = setInterval(() => {
    // Sends all chunks that are due, because timers fire late on a busy machine.
    const due = Math.floor(((Date.now() - startedAt) / 1000) * CHUNKS_PER_SECOND);
    for (; sent < due; sent += 1) {
      const content = sent % 40 === 39 ? '\n\n' : WORDS;
      gateways.forEach((gateway, index) => gateway.chunk(runs[index] ?? {}, `r-${index}`, 'text', content));
    }
  }, 5);
  await tab.message('a word or two').nth(AGENTS - 1).waitFor();
  const cpu = await mainThread(tab.page);
  const frames = await framesWhile(tab.page, () => new Promise((done) => setTimeout(done, SECONDS * 1000)));
  const busy = Math.round(((await cpu()) * 1000) / SECONDS);
  clearInterval(timer);
  gateways.forEach((gateway) => gateway.close());
  addRow(`Frames per second, ${AGENTS} agents, ${CHUNKS_PER_SECOND} chunks/s each`, String(frames), '> 50', frames > 50);
  addRow('Main-thread time per second while they stream', `${busy} ms`, '< 500 ms', busy < 500);
});

async function fill(room: string): Promise<void> {
  let next = 1;
  const write = async () => {
    while (next < MESSAGES) {
      const content = `Message ${next}. ${'More words. '.repeat(next % 9)}`;
      next += 1;
      await hub.call(admin, 'POST', `/api/rooms/${room}/messages`, { content });
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_WRITERS }, write));
  await hub.call(admin, 'POST', `/api/rooms/${room}/messages`, { content: `Message ${MESSAGES}.` });
}

async function timed(act: () => Promise<unknown>, shown: ReturnType<Tab['message']>): Promise<number> {
  const startedAt = performance.now();
  await act();
  await shown.waitFor();
  return Math.round(performance.now() - startedAt);
}

async function framesWhile(page: Page, act: () => Promise<unknown>): Promise<number> {
  await page.evaluate(() => {
    const counting = globalThis as unknown as { frames: number; startedAt: number };
    counting.frames = 0;
    counting.startedAt = performance.now();
    const count = () => {
      counting.frames += 1;
      requestAnimationFrame(count);
    };
    requestAnimationFrame(count);
  });
  await act();
  return page.evaluate(() => {
    const { frames, startedAt } = globalThis as unknown as { frames: number; startedAt: number };
    return Math.round((frames * 1000) / (performance.now() - startedAt));
  });
}

/** Returns a function that reads the CPU seconds used by the page's main thread since this call. */
async function mainThread(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const worked = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN;
  };
  const before = await worked();
  return async () => (await worked()) - before;
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

function addRow(what: string, measured: string, goal: string, isMet: boolean): void {
  report.push(`${what.padEnd(56)} ${measured.padStart(9)}   ${goal.padEnd(10)} ${isMet ? 'met' : 'MISSED'}`);
}
