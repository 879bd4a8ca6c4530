import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['ably/**/*.test.ts'],
    globalSetup: ['ably/global.ts'],
    setupFiles: ['ably/setup.ts'],
    // Generous, for busy machines. Tests wait for events only.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // The clients wait more than they compute; all files share one hub.
    maxWorkers: 3,
    // Files of one worker share loaded modules, which is faster. The modules keep no state between files.
    isolate: false,
  },
});
