const LETTERS = 'abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/** Random password without look-alike characters. The suffix satisfies the hub's password rules. */
export function passphrase(): string {
  const picked = Array.from(crypto.getRandomValues(new Uint32Array(16)), (number) => LETTERS[number % LETTERS.length]);
  return `${picked.join('')}aA7`;
}
