/** Cache of the REST queries of all components. */
import { QueryClient } from '@tanstack/react-query';

export const queries = new QueryClient({ defaultOptions: { queries: { retry: 1, staleTime: 10_000 } } });
