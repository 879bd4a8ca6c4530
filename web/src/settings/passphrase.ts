const LETTERS = 'abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/** Hard to guess, easy to read out; with a letter of each kind and a digit, as the hub wants it. */
export function passphrase(): string {
  const picked = Array.from(crypto.getRandomValues(new Uint32Array(16)), (number) => LETTERS[number % LETTERS.length]);
  return `${picked.join('')}aA7`;
}
