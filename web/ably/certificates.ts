/** A certificate authority for tests, and a certificate that it issues. Node has no function that creates certificates. */
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';

export interface Issued {
  /** Certificate of the authority, in PEM. */
  authority: string;
  certificate: string;
  key: string;
}

/** Issues a certificate for a host name, valid for a day, by a new authority. */
export function issueFor(host: string): Issued {
  const [authority, server] = [keyPair(), keyPair()];
  const [issuer, subject] = [name('Tests of Parlor'), name(host)];
  const isAuthority = extension('2.5.29.19', true, sequence(der(0x01, Buffer.from([0xff]))));
  const hostName = extension('2.5.29.17', false, sequence(der(0x82, Buffer.from(host))));
  const certified = (of: typeof issuer, key: KeyObject, details: Buffer): string =>
    pem(certificate(issuer, of, key, details, authority.privateKey));
  return {
    authority: certified(issuer, authority.publicKey, isAuthority),
    certificate: certified(subject, server.publicKey, hostName),
    key: server.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

function keyPair(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

function certificate(issuer: Buffer, subject: Buffer, key: KeyObject, details: Buffer, signer: KeyObject): Buffer {
  const algorithm = sequence(identifier('1.2.840.10045.4.3.2'));
  const hour = 3600 * 1000;
  const validity = sequence(time(Date.now() - hour), time(Date.now() + 24 * hour));
  const version = der(0xa0, integer(2));
  const extensions = der(0xa3, sequence(details));
  const publicKey = key.export({ type: 'spki', format: 'der' });
  const content = sequence(version, integer(1), algorithm, issuer, validity, subject, publicKey, extensions);
  const signature = sign('sha256', content, signer);
  return sequence(content, algorithm, der(0x03, Buffer.from([0]), signature));
}

/** A value of DER: tag, length and content. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length: size } = content;
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, ...parts);
}

function integer(value: number): Buffer {
  return der(0x02, Buffer.from([value]));
}

function identifier(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  const bytes = rest.flatMap((arc) => {
    const groups = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    return groups;
  });
  return der(0x06, Buffer.from([first * 40 + second, ...bytes]));
}

function name(common: string): Buffer {
  return sequence(der(0x31, sequence(identifier('2.5.4.3'), der(0x0c, Buffer.from(common)))));
}

function time(millis: number): Buffer {
  const text = new Date(millis).toISOString().replace(/[-:T]|\.\d+/g, '').slice(2);
  return der(0x17, Buffer.from(text));
}

function extension(id: string, isCritical: boolean, content: Buffer): Buffer {
  const critical = isCritical ? [der(0x01, Buffer.from([0xff]))] : [];
  return sequence(identifier(id), ...critical, der(0x04, content));
}

function pem(bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}
