import { useState } from 'react';
import { text } from '../text';
import { Button } from '../ui/button';
import { Choice } from '../ui/field';
import { setTheme, useTheme, type Theme } from '../ui/theme';
import { Block } from './Block';

const THEMES: { value: Theme; label: string }[] = [
  { value: 'system', label: text.settings.system },
  { value: 'light', label: text.settings.light },
  { value: 'dark', label: text.settings.dark },
];

export function AppearanceSettings() {
  const { theme } = useTheme();
  return (
    <>
      <Block title={text.settings.appearance}>
        <Choice label={text.settings.theme} value={theme} options={THEMES} onChange={setTheme} />
      </Block>
      <Notifications />
    </>
  );
}

function Notifications() {
  const [permission, setPermission] = useState(() => ('Notification' in window ? Notification.permission : 'denied'));
  return (
    <Block title={text.settings.notifications} lead={text.settings.notificationsLead}>
      {permission === 'default' ? (
        <Button onClick={() => void Notification.requestPermission().then(setPermission)}>
          {text.settings.notificationsAllow}
        </Button>
      ) : (
        <p className="text-sm text-soft">
          {permission === 'granted' ? text.settings.notificationsOn : text.settings.notificationsBlocked}
        </p>
      )}
    </Block>
  );
}
