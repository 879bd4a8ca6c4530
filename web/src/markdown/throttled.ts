/** Throttles the rendering of streaming text. */
import { useEffect, useRef, useState } from 'react';

/** Minimum time between two renders of a text. Leaves time for scrolling and typing. */
const MIN_INTERVAL_MS = 100;
/** Interval per streaming text: the more texts stream, the less often each one is rendered. */
const INTERVAL_PER_TEXT_MS = 50;

let growing = 0;

export function useThrottledText(text: string, isGrowing: boolean): string {
  const [shown, setShown] = useState(text);
  const latest = useRef(text);
  useEffect(() => {
    latest.current = text;
  }, [text]);
  useEffect(() => {
    if (!isGrowing) return;
    growing += 1;
    let timer: ReturnType<typeof setTimeout>;
    const draw = () => {
      setShown(latest.current);
      // Each text has its own timer, so that the renders spread over different frames.
      timer = setTimeout(draw, Math.max(MIN_INTERVAL_MS, growing * INTERVAL_PER_TEXT_MS));
    };
    draw();
    return () => {
      growing -= 1;
      clearTimeout(timer);
    };
  }, [isGrowing]);
  return isGrowing ? shown : text;
}
