import { useSyncExternalStore } from 'react';

const WIDE = '(min-width: 768px)';

/** Whether the screen is wide enough for the sidebar beside a page. */
export function useIsWide(): boolean {
  return useSyncExternalStore(
    (changed) => {
      const query = matchMedia(WIDE);
      query.addEventListener('change', changed);
      return () => query.removeEventListener('change', changed);
    },
    () => matchMedia(WIDE).matches,
  );
}
