/** Text that grows: drawn some times a second, however often it grows. */
import { useEffect, useRef, useState } from 'react';

/** As often as eyes can use it; reading it more often would take the time that scrolling and typing need. */
const LEAST_MS = 100;
/** Several that grow at once share the time among them. */
const EACH_MS = 50;

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
      // Each text at its own time: so several do not ask for the same frame.
      timer = setTimeout(draw, Math.max(LEAST_MS, growing * EACH_MS));
    };
    draw();
    return () => {
      growing -= 1;
      clearTimeout(timer);
    };
  }, [isGrowing]);
  return isGrowing ? shown : text;
}
