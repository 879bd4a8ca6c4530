/** Setup of each test file. Vitest runs it for each one even though files share their modules. */
import { afterEach } from 'vitest';
import { expectNoConsoleErrors } from './browser';

// The hook that is registered first runs last, when all tabs of the test are closed.
afterEach(expectNoConsoleErrors);
