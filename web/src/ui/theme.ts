/** Light or dark theme: that of the system, or the user's choice on this device. */
import { create } from 'zustand';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'parlor.theme';
const system = matchMedia('(prefers-color-scheme: dark)');

export const useTheme = create<{ theme: Theme }>(() => ({ theme: stored() }));

export function setTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  useTheme.setState({ theme });
  applyTheme();
}

export function isDark(): boolean {
  const { theme } = useTheme.getState();
  return theme === 'system' ? system.matches : theme === 'dark';
}

export function startTheme(): void {
  system.addEventListener('change', applyTheme);
  applyTheme();
}

function applyTheme(): void {
  document.documentElement.dataset['theme'] = isDark() ? 'dark' : 'light';
}

function stored(): Theme {
  const value = localStorage.getItem(KEY);
  return value === 'light' || value === 'dark' ? value : 'system';
}
