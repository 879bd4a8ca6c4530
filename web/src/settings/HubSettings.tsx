import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { FormEvent } from 'react';
import { apiRequest } from '../api/http';
import type { Health, NewSettings, Settings } from '../generated/api';
import { text } from '../text';
import { Button } from '../ui/button';
import { Field } from '../ui/field';
import { Block, Problem } from './Block';
import { HubMetrics } from './HubMetrics';
import { useSubmit } from './useSubmit';

/** For admins: metrics, health, and settings that take effect without a restart. */
export function HubSettings() {
  const { data: settings } = useQuery({ queryKey: ['hub-settings'], queryFn: () => apiRequest<Settings>('GET', '/api/settings') });
  const { data: health } = useQuery({ queryKey: ['health'], queryFn: () => apiRequest<Health>('GET', '/api/health') });
  return (
    <>
      <HubMetrics />
      {settings !== undefined && <SettingsForm settings={settings} />}
      {health !== undefined && (
        <Block title={text.settings.health}>
          <dl className="grid grid-cols-[8rem_1fr] gap-y-1.5 text-sm">
            <dt className="text-faint">{text.settings.version}</dt>
            <dd>{health.version}</dd>
            <dt className="text-faint">{text.settings.state}</dt>
            <dd>{health.ok ? text.settings.healthy : health.status}</dd>
          </dl>
        </Block>
      )}
    </>
  );
}

function SettingsForm({ settings }: { settings: Settings }) {
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const changes: NewSettings = {
      hubName: String(form.get('name')).trim(),
      invitations: form.get('invitations') !== null,
      lockoutFailures: Number(form.get('failures')),
      lockoutSeconds: Number(form.get('seconds')),
    };
    void attempt(async () => {
      queries.setQueryData(['hub-settings'], await apiRequest<Settings>('POST', '/api/settings', changes));
    });
  };
  return (
    <Block title={text.settings.hub} lead={text.settings.hubLead}>
      <form className="space-y-4" onSubmit={save}>
        <Field label={text.settings.hubName} name="name" defaultValue={settings.hubName} maxLength={100} required />
        <label className="flex items-center gap-2.5 text-sm">
          <input
            type="checkbox"
            name="invitations"
            defaultChecked={settings.invitations}
            className="size-4 accent-(--accent)"
          />
          {text.settings.invitations}
        </label>
        <div className="grid gap-4 sm:grid-cols-2">
          <Field
            label={text.settings.lockoutFailures}
            name="failures"
            type="number"
            min={1}
            defaultValue={settings.lockoutFailures}
            required
          />
          <Field
            label={text.settings.lockoutSeconds}
            name="seconds"
            type="number"
            min={1}
            defaultValue={settings.lockoutSeconds}
            required
          />
        </div>
        <Problem>{problem}</Problem>
        <Button variant="primary" type="submit" disabled={isBusy}>
          {text.save}
        </Button>
      </form>
    </Block>
  );
}
