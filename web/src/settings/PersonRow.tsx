import { useQueryClient } from '@tanstack/react-query';
import { MoreHorizontal } from 'lucide-react';
import { useState } from 'react';
import { apiRequest } from '../api/http';
import { useChat } from '../chat/store';
import type { ManagedUser, UserChanges } from '../generated/api';
import { text } from '../text';
import { Avatar } from '../ui/avatar';
import { IconButton } from '../ui/button';
import { ConfirmDialog } from '../ui/dialog';
import { Menu, MenuItem, MenuLine } from '../ui/menu';
import { ShownOnce } from '../ui/shown-once';
import { Problem } from './Block';
import { passphrase } from './passphrase';
import { useSubmit } from './useSubmit';

/** For admins: one account with its actions. */
export function PersonRow({ user }: { user: ManagedUser }) {
  const queries = useQueryClient();
  const isMe = useChat((state) => state.me?.id) === user.id;
  const [password, setPassword] = useState<string>();
  const [isRemoving, setRemoving] = useState(false);
  const { attempt, problem, isBusy } = useSubmit();
  const path = `/api/users/${user.id}`;
  const refresh = () => queries.invalidateQueries({ queryKey: ['users'] });
  const change = (changes: UserChanges) =>
    attempt(async () => {
      await apiRequest('PUT', path, changes);
      if (changes.password !== undefined) setPassword(changes.password);
      await refresh();
    });
  const remove = () =>
    attempt(async () => {
      await apiRequest('DELETE', path);
      await refresh();
    });
  const facts = [
    user.role === 'admin' ? text.settings.admin : '',
    user.locked ? text.settings.locked : '',
    user.totpEnabled ? text.settings.hasFactor : '',
  ];
  return (
    <li className="px-4 py-2.5">
      <div className="flex items-center gap-3">
        <Avatar id={user.id} name={user.displayName} kind="user" size={30} />
        <span className="min-w-0 flex-1 truncate text-sm">
          <span className="font-medium">{user.displayName}</span> <span className="text-faint">{user.username}</span>
        </span>
        <span className="text-xs text-faint">{facts.filter(Boolean).join(' · ')}</span>
        {!isMe && (
          <Menu
            trigger={
              <IconButton label={`${text.more}: ${user.displayName}`} className="size-7">
                <MoreHorizontal size={15} />
              </IconButton>
            }
          >
            <MenuItem onSelect={() => void change({ role: user.role === 'admin' ? 'user' : 'admin' })}>
              {user.role === 'admin' ? text.settings.makeUser : text.settings.makeAdmin}
            </MenuItem>
            <MenuItem onSelect={() => void change({ password: passphrase() })}>{text.settings.resetPassword}</MenuItem>
            <MenuLine />
            <MenuItem danger onSelect={() => setRemoving(true)}>
              {text.settings.deleteAccount}
            </MenuItem>
          </Menu>
        )}
      </div>
      <Problem>{problem}</Problem>
      {password !== undefined && (
        <div className="mt-2 space-y-2">
          <p className="text-sm text-soft">{text.settings.accountCreated(user.username)}</p>
          <ShownOnce words={password} />
        </div>
      )}
      {isRemoving && (
        <ConfirmDialog
          title={text.settings.deleteAccount}
          lead={text.settings.deleteAccountConfirm(user.displayName)}
          isBusy={isBusy}
          onConfirm={() => void remove()}
          onClose={() => setRemoving(false)}
        />
      )}
    </li>
  );
}
