/** Text that grows: drawn some times a second, however often it grows. */
import { useEffect, useRef, useState } from 'react';

/** As often as eyes can use it; parsing more often would take the time that scrolling and typing need. */
const PACE_MS = 100;

export function usePaced(text: string, isGrowing: boolean): string {
  const [shown, setShown] = useState(text);
  const latest = useRef(text);
  useEffect(() => {
    latest.current = text;
  }, [text]);
  useEffect(() => {
    if (!isGrowing) return;
    setShown(latest.current);
    // Each text at its own time: several that grow at once share the frames among them.
    const timer = setInterval(() => setShown(latest.current), PACE_MS);
    return () => clearInterval(timer);
  }, [isGrowing]);
  return isGrowing ? shown : text;
}
