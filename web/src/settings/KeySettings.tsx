import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { apiRequest, apiResult } from '../api/http';
import type { CreatedKey, Key, Scope } from '../generated/api';
import { useSession } from '../session/session';
import { text } from '../text';
import { Button } from '../ui/button';
import { Field } from '../ui/field';
import { ShownOnce } from '../ui/shown-once';
import { shortTime } from '../ui/time';
import { Block, Problem } from './Block';
import { useSubmit } from './useSubmit';

const SCOPES: Scope[] = ['read', 'write', 'agents', 'hosting'];
const ADMIN_SCOPES: Scope[] = ['sources', 'dead-letters', 'metrics', 'admin'];

/** The user's API keys. */
export function KeySettings() {
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const { data: keys = [] } = useQuery({ queryKey: ['keys'], queryFn: () => apiResult<Key[]>('GET', '/api/keys') });
  const revoke = (id: string) =>
    attempt(async () => {
      await apiRequest('DELETE', `/api/keys/${id}`);
      await queries.invalidateQueries({ queryKey: ['keys'] });
    });
  return (
    <>
      <NewKey />
      <NewAblyKey />
      {keys.length > 0 && (
        <Block title={text.settings.keys}>
          <ul aria-label={text.settings.keys} className="divide-y rounded-xl border">
            {keys.map((key) => (
              <li key={key.id} className="flex items-center gap-3 px-4 py-2.5 text-sm">
                <span className="min-w-0 flex-1 break-words">
                  <span className="font-medium">{key.name}</span>{' '}
                  <span className="text-xs text-faint">
                    {key.capability ?? key.scopes.join(', ')} · {shortTime(Date.parse(key.createdAt), Date.now())}
                  </span>
                </span>
                <Button size="small" variant="danger" disabled={isBusy} onClick={() => void revoke(key.id)}>
                  {text.settings.revoke}
                </Button>
              </li>
            ))}
          </ul>
          <Problem>{problem}</Problem>
        </Block>
      )}
    </>
  );
}

function useIsAdmin() {
  const session = useSession();
  return session.state === 'in' && session.user.role === 'admin';
}

/** Creates a key from the fields of a form; `createdKey` is its text, which is shown once. */
function useNewKey() {
  const queries = useQueryClient();
  const [createdKey, setCreatedKey] = useState<string>();
  const { attempt, problem, isBusy } = useSubmit();
  const create = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = new FormData(form);
    const capability = fields.get('capability');
    const body = {
      name: fields.get('name'),
      scopes: fields.getAll('scope'),
      ...(capability === null ? {} : { capability }),
    };
    void attempt(async () => {
      setCreatedKey((await apiResult<CreatedKey>('POST', '/api/keys', body)).key);
      form.reset();
      await queries.invalidateQueries({ queryKey: ['keys'] });
    });
  };
  return { create, createdKey, problem, isBusy };
}

function NewKey() {
  const isAdmin = useIsAdmin();
  const { create, createdKey, problem, isBusy } = useNewKey();
  return (
    <Block title={text.settings.newKey} lead={text.settings.newKeyLead}>
      <form aria-label={text.settings.newKey} className="space-y-4" onSubmit={create}>
        <Field label={text.settings.keyName} name="name" maxLength={100} required />
        <fieldset>
          <legend className="mb-1.5 text-sm font-medium text-soft">{text.settings.scopes}</legend>
          <div className="grid gap-1.5 sm:grid-cols-2">
            {[...SCOPES, ...(isAdmin ? ADMIN_SCOPES : [])].map((scope) => (
              <label key={scope} className="flex items-baseline gap-2.5 text-sm">
                <input type="checkbox" name="scope" value={scope} className="size-3.5 translate-y-0.5 accent-(--accent)" />
                <span>
                  <code className="font-mono text-[0.92em]">{scope}</code>{' '}
                  <span className="text-faint">{text.settings.scope[scope]}</span>
                </span>
              </label>
            ))}
          </div>
        </fieldset>
        <Problem>{problem}</Problem>
        <Button type="submit" disabled={isBusy}>
          {text.settings.newKeySubmit}
        </Button>
      </form>
      <Created text={createdKey} />
    </Block>
  );
}

/** Form for keys of clients that use the Ably protocol; for admins. */
function NewAblyKey() {
  const isAdmin = useIsAdmin();
  const { create, createdKey, problem, isBusy } = useNewKey();
  if (!isAdmin) return null;
  return (
    <Block title={text.settings.newAblyKey} lead={text.settings.newAblyKeyLead}>
      <form aria-label={text.settings.newAblyKey} className="space-y-4" onSubmit={create}>
        <Field label={text.settings.keyName} name="name" maxLength={100} required />
        <Field
          label={text.settings.capability}
          name="capability"
          defaultValue={'{"*":["*"]}'}
          spellCheck={false}
          autoComplete="off"
          required
        />
        <p className="text-xs text-faint">{text.settings.capabilityHint}</p>
        <Problem>{problem}</Problem>
        <Button type="submit" disabled={isBusy}>
          {text.settings.newAblyKeySubmit}
        </Button>
      </form>
      <Created text={createdKey} />
    </Block>
  );
}

function Created({ text: createdKey }: { text: string | undefined }) {
  if (createdKey === undefined) return null;
  return (
    <>
      <p className="text-sm text-soft">{text.settings.keyCreated}</p>
      <ShownOnce words={createdKey} />
    </>
  );
}
