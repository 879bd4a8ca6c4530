import { ArrowLeft } from 'lucide-react';
import type { ReactNode } from 'react';
import { navigate, settingsPath } from '../router';
import { useSession } from '../session/session';
import { text } from '../text';
import { IconButton } from '../ui/button';
import { classes } from '../ui/classes';
import { AppearanceSettings } from './AppearanceSettings';
import { DeviceSettings } from './DeviceSettings';
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
  { id: 'people', label: text.settings.people, admin: true, content: <PeopleSettings /> },
];

export default function Settings({ section, isWide }: { section: string; isWide: boolean }) {
  const session = useSession();
  const isAdmin = session.state === 'in' && session.user.role === 'admin';
  const sections = SECTIONS.filter((one) => one.admin !== true || isAdmin);
  const shown = sections.find((one) => one.id === section) ?? sections[0];
  return (
    <main className="flex min-w-0 flex-1 flex-col bg-surface">
      <header className="flex h-14 shrink-0 items-center gap-1.5 border-b px-2 md:px-5">
        {!isWide && (
          <IconButton label={text.back} onClick={() => navigate('/app/')}>
            <ArrowLeft size={18} />
          </IconButton>
        )}
        <h1 className="font-semibold tracking-tight">{text.settings.heading}</h1>
      </header>
      <div className="flex-1 overflow-y-auto">
        <div className="mx-auto max-w-2xl px-5 py-6">
          <nav aria-label={text.settings.heading} className="mb-8 flex gap-1 overflow-x-auto">
            {sections.map(({ id, label }) => (
              <button
                key={id}
                type="button"
                aria-current={id === shown?.id ? 'page' : undefined}
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
          <div className="space-y-10">{shown?.content}</div>
        </div>
      </div>
    </main>
  );
}
