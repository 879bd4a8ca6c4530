import type { FormEvent } from 'react';
import { apiRequest } from '../api/http';
import { signOut } from '../session/session';
import { text } from '../text';
import { Button } from '../ui/button';
import { Field } from '../ui/field';
import { Block, Problem } from './Block';
import { useSubmit } from './useSubmit';

export function PasswordSettings() {
  const { attempt, problem, isBusy } = useSubmit();
  const change = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const [currentPassword, newPassword] = [form.get('current'), form.get('new')];
    void attempt(async () => {
      await apiRequest('PUT', '/api/users/me/password', { currentPassword, newPassword });
      await signOut();
    });
  };
  return (
    <Block title={text.settings.password} lead={text.settings.passwordLead}>
      <form className="space-y-4" onSubmit={change}>
        <Field
          label={text.settings.currentPassword}
          name="current"
          type="password"
          autoComplete="current-password"
          required
        />
        <Field
          label={text.settings.newPassword}
          hint={text.auth.passwordHint}
          name="new"
          type="password"
          autoComplete="new-password"
          required
        />
        <Problem>{problem}</Problem>
        <Button type="submit" disabled={isBusy}>
          {text.settings.changePassword}
        </Button>
      </form>
    </Block>
  );
}
