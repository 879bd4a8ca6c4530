/** Keys of the hub for Ably clients. */

export type Capability = Record<string, string[]>;

/** Creates a key with this capability and returns it as `app.key:secret`. */
export async function makeKey(url: string, token: string, capability: Capability = { '*': ['*'] }): Promise<string> {
  const response = await fetch(`${url}/api/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'tests', scopes: [], capability: JSON.stringify(capability) }),
  });
  const body: unknown = await response.json();
  if (!response.ok) throw new Error(`no key: ${response.status} ${JSON.stringify(body)}`);
  const data = (body as { data: { key: string } }).data;
  return data.key;
}
