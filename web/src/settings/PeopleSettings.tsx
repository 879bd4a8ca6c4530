import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { apiRequest, apiResult } from '../api/http';
import type { User, Users } from '../generated/api';
import { text } from '../text';
import { Button } from '../ui/button';
import { Field } from '../ui/field';
import { ShownOnce } from '../ui/shown-once';
import { Block, Problem } from './Block';
import { Invitations } from './Invitations';
import { passphrase } from './passphrase';
import { PersonRow } from './PersonRow';
import { useSubmit } from './useSubmit';

/** For admins: accounts and invitations. */
export function PeopleSettings() {
  const { data: users } = useQuery({ queryKey: ['users'], queryFn: () => apiRequest<Users>('GET', '/api/users') });
  return (
    <>
      <Invitations />
      <NewAccount />
      <Block title={text.settings.people}>
        <ul className="divide-y rounded-xl border">
          {users?.data.map((user) => (
            <PersonRow key={user.id} user={user} />
          ))}
        </ul>
      </Block>
    </>
  );
}

function NewAccount() {
  const queries = useQueryClient();
  const [created, setCreated] = useState<{ name: string; password: string }>();
  const { attempt, problem, isBusy } = useSubmit();
  const create = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const username = new FormData(form).get('username');
    const password = passphrase();
    void attempt(async () => {
      const user = await apiResult<User>('POST', '/api/users', { username, password });
      form.reset();
      setCreated({ name: user.username, password });
      await queries.invalidateQueries({ queryKey: ['users'] });
    });
  };
  return (
    <Block title={text.settings.newAccount}>
      <form className="flex items-end gap-3" onSubmit={create}>
        <div className="flex-1">
          <Field label={text.auth.username} name="username" autoCapitalize="none" autoComplete="off" required />
        </div>
        <Button type="submit" className="h-10" disabled={isBusy}>
          {text.settings.newAccountSubmit}
        </Button>
      </form>
      <Problem>{problem}</Problem>
      {created !== undefined && (
        <>
          <p className="text-sm text-soft">{text.settings.accountCreated(created.name)}</p>
          <ShownOnce words={created.password} />
        </>
      )}
    </Block>
  );
}
