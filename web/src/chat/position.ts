/** Positions in the log of the hub, written as `<epoch>-<seq>`. */

/**
 * Whether a position is after another. One of a different epoch always is, because the old epoch is invalid.
 */
export function isAfter(position: string, other: string | undefined): boolean {
  if (other === undefined) return true;
  const [epoch, seq] = parts(position);
  const [otherEpoch, otherSeq] = parts(other);
  return epoch !== otherEpoch || seq > otherSeq;
}

function parts(position: string): [string, number] {
  const at = position.lastIndexOf('-');
  return [position.slice(0, at), Number(position.slice(at + 1))];
}
