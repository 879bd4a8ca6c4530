/** Setup of each test file: closes the clients of a test after it. */
import { afterEach } from 'vitest';
import { cleanUp } from './clients';

afterEach(cleanUp);
