import { useState } from 'react';
import { apiResult } from '../api/http';
import type { User } from '../generated/api';
import { signOut, useSession, userChanged } from '../session/session';
import { text } from '../text';
import { Avatar } from '../ui/avatar';
import { Button } from '../ui/button';
import { Field } from '../ui/field';
import { Block, Problem } from './Block';
import { useSubmit } from './useSubmit';

export function ProfileSettings() {
  const session = useSession();
  const user = session.state === 'in' ? session.user : undefined;
  const [name, setName] = useState(user?.displayName ?? '');
  const { attempt, problem, isBusy } = useSubmit();
  if (user === undefined) return null;
  const save = () =>
    attempt(async () => userChanged(await apiResult<User>('PUT', '/api/users/me', { displayName: name.trim() })));
  return (
    <Block title={text.settings.profile} lead={text.settings.signedInAs(user.username)}>
      <div className="flex items-center gap-4">
        <Avatar id={user.id} name={user.displayName} kind="user" size={56} />
        <div className="flex-1">
          <Field label={text.settings.displayName} value={name} onChange={({ target }) => setName(target.value)} />
        </div>
      </div>
      <Problem>{problem}</Problem>
      <div className="flex justify-between">
        <Button
          variant="primary"
          disabled={isBusy || name.trim() === '' || name.trim() === user.displayName}
          onClick={() => void save()}
        >
          {text.save}
        </Button>
        <Button onClick={() => void signOut()}>{text.settings.signOut}</Button>
      </div>
    </Block>
  );
}
