import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Check, Copy } from 'lucide-react';
import { useState, type FormEvent } from 'react';
import { ask, data } from '../api/http';
import type { CreatedInvitation, User, Users } from '../generated/api';
import { text } from '../text';
import { Avatar } from '../ui/avatar';
import { Button } from '../ui/button';
import { useCopy } from '../ui/copy';
import { Field } from '../ui/field';
import { Block, Problem } from './Block';
import { useAttempt } from './useAttempt';

/** For admins: who has an account, and how others get one. */
export function PeopleSettings() {
  const { data: users } = useQuery({ queryKey: ['users'], queryFn: () => ask<Users>('GET', '/api/users') });
  return (
    <>
      <Invite />
      <NewAccount />
      <Block title={text.settings.people}>
        <ul className="divide-y rounded-xl border">
          {users?.data.map((user) => (
            <li key={user.id} className="flex items-center gap-3 px-4 py-2.5">
              <Avatar id={user.id} name={user.displayName} kind="user" size={30} />
              <span className="min-w-0 flex-1 truncate text-sm">
                <span className="font-medium">{user.displayName}</span> <span className="text-faint">{user.username}</span>
              </span>
              <span className="text-xs text-faint">{user.role === 'admin' ? text.settings.admin : text.settings.user}</span>
            </li>
          ))}
        </ul>
      </Block>
    </>
  );
}

function Invite() {
  const [url, setUrl] = useState<string>();
  const { attempt, problem, isBusy } = useAttempt();
  const make = () => attempt(async () => setUrl((await data<CreatedInvitation>('POST', '/api/invites', {})).url));
  return (
    <Block title={text.settings.invite} lead={text.settings.inviteLead}>
      {url === undefined ? (
        <Button look="primary" disabled={isBusy} onClick={() => void make()}>
          {text.settings.inviteGo}
        </Button>
      ) : (
        <ShownOnce words={url} />
      )}
      <Problem>{problem}</Problem>
    </Block>
  );
}

function NewAccount() {
  const queries = useQueryClient();
  const [made, setMade] = useState<{ name: string; password: string }>();
  const { attempt, problem, isBusy } = useAttempt();
  const make = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const username = new FormData(form).get('username');
    const password = passphrase();
    void attempt(async () => {
      const user = await data<User>('POST', '/api/users', { username, password });
      form.reset();
      setMade({ name: user.username, password });
      await queries.invalidateQueries({ queryKey: ['users'] });
    });
  };
  return (
    <Block title={text.settings.newAccount}>
      <form className="flex items-end gap-3" onSubmit={make}>
        <div className="flex-1">
          <Field label={text.door.username} name="username" autoCapitalize="none" autoComplete="off" required />
        </div>
        <Button type="submit" className="h-10" disabled={isBusy}>
          {text.settings.newAccountGo}
        </Button>
      </form>
      <Problem>{problem}</Problem>
      {made !== undefined && (
        <>
          <p className="text-sm text-soft">{text.settings.accountMade(made.name)}</p>
          <ShownOnce words={made.password} />
        </>
      )}
    </Block>
  );
}

function ShownOnce({ words }: { words: string }) {
  const [isCopied, copy] = useCopy();
  return (
    <div className="flex items-center gap-3 rounded-xl border bg-raised py-2 pr-2 pl-4">
      <code data-shown-once className="min-w-0 flex-1 font-mono text-sm break-all select-all">
        {words}
      </code>
      <Button size="small" onClick={() => copy(words)}>
        {isCopied ? <Check size={14} /> : <Copy size={14} />}
        {isCopied ? text.copied : text.copy}
      </Button>
    </div>
  );
}

const LETTERS = 'abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/** Hard to guess, easy to read out; with a letter of each kind and a digit, as the hub wants it. */
function passphrase(): string {
  const picked = Array.from(crypto.getRandomValues(new Uint32Array(16)), (number) => LETTERS[number % LETTERS.length]);
  return `${picked.join('')}aA7`;
}
