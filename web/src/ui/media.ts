import { useSyncExternalStore } from 'react';

const WIDE = '(min-width: 768px)';

/** Whether rooms and conversation fit beside each other. */
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
