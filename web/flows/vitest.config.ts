import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Pictures and measurements are made on demand, for people; they prove nothing.
    include: [process.env['ONLY'] ?? 'flows/**/*.flow.ts'],
    testTimeout: 240_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    // Each file has its own browser, each test its own hub. Flows wait for each other's pages more than they compute,
    // so one file more than there are cores keeps both of a small machine busy.
    maxWorkers: 3,
    // Files of one worker share their modules, which takes less time than to load them for each; they share no state.
    isolate: false,
    setupFiles: ['flows/setup.ts'],
  },
});
