import type { ReactNode } from 'react';
import { navigate, settingsPath } from '../router';
import { useIsAdmin } from '../session/session';
import { text } from '../text';
import { Boundary } from '../ui/boundary';
import { classes } from '../ui/classes';
import { Page } from '../ui/page';
import { AppearanceSettings } from './AppearanceSettings';
import { AuditSettings } from './AuditSettings';
import { DeadLetterSettings } from './DeadLetterSettings';
import { DeviceSettings } from './DeviceSettings';
import { HubSettings } from './HubSettings';
import { KeySettings } from './KeySettings';
import { LimitSettings } from './LimitSettings';
import { PeopleSettings } from './PeopleSettings';
import { PasswordSettings } from './PasswordSettings';
import { ProfileSettings } from './ProfileSettings';
import { SecondFactorSettings } from './SecondFactorSettings';

const SECTIONS: { id: string; label: string; admin?: boolean; content: ReactNode }[] = [
  { id: 'account', label: text.settings.account, content: <ProfileSettings /> },
  {
    id: 'security',
    label: text.settings.security,
    content: (
      <>
        <PasswordSettings />
        <SecondFactorSettings />
        <DeviceSettings />
      </>
    ),
  },
  { id: 'appearance', label: text.settings.appearance, content: <AppearanceSettings /> },
  { id: 'keys', label: text.settings.keys, content: <KeySettings /> },
  { id: 'people', label: text.settings.people, admin: true, content: <PeopleSettings /> },
  { id: 'audit', label: text.settings.audit, admin: true, content: <AuditSettings /> },
  { id: 'dead-letters', label: text.mail.deadLetters, admin: true, content: <DeadLetterSettings /> },
  { id: 'limits', label: text.settings.limits, admin: true, content: <LimitSettings /> },
  { id: 'hub', label: text.settings.hub, admin: true, content: <HubSettings /> },
];

export default function Settings({ section, isWide }: { section: string; isWide: boolean }) {
  const isAdmin = useIsAdmin();
  const sections = SECTIONS.filter((other) => other.admin !== true || isAdmin);
  const shown = sections.find((other) => other.id === section) ?? sections[0];
  return (
    <Page title={text.settings.heading} isWide={isWide}>
      <nav aria-label={text.settings.heading} className="mb-8 flex gap-1 overflow-x-auto [scrollbar-width:none]">
        {sections.map(({ id, label }) => (
          <button
            key={id}
            type="button"
            aria-current={id === shown?.id ? 'page' : undefined}
            ref={(tab) => {
              if (id === shown?.id) tab?.scrollIntoView({ block: 'nearest', inline: 'center' });
            }}
            onClick={() => navigate(settingsPath(id), 'replace')}
            className={classes(
              'rounded-lg px-3 py-1.5 text-sm font-medium whitespace-nowrap',
              id === shown?.id ? 'bg-chosen text-ink' : 'text-soft hover:bg-hover',
            )}
          >
            {label}
          </button>
        ))}
      </nav>
      <Boundary key={shown?.id}>
        <div className="space-y-10">{shown?.content}</div>
      </Boundary>
    </Page>
  );
}
