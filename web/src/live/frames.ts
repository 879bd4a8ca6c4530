/** Frames of `/ws/client`. Their types are generated from the hub's Rust types. */
import type { ServerFrame } from '../generated/frames';

export type { ClientFrame, ServerFrame, UiSseMessage as UiEvent } from '../generated/frames';

/** Parses a frame without validation: the hub is trusted, and `translate` ignores frames of unknown types. */
export function parseFrame(text: string): ServerFrame | undefined {
  try {
    const frame: unknown = JSON.parse(text);
    return typeof frame === 'object' && frame !== null && 'type' in frame ? (frame as ServerFrame) : undefined;
  } catch {
    return undefined;
  }
}
