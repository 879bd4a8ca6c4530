/** `<epoch>-<seq>`: a place in the log of the hub. */

/** Whether one comes after another; one of another epoch always does, since the old one means nothing any more. */
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
