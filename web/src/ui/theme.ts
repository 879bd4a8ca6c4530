/** Light or dark: as the system has it, or as chosen on this device. */
import { create } from 'zustand';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'parlor.theme';
const system = matchMedia('(prefers-color-scheme: dark)');

export const useTheme = create<{ theme: Theme }>(() => ({ theme: stored() }));

export function setTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  useTheme.setState({ theme });
  paint();
}

export function isDark(): boolean {
  const { theme } = useTheme.getState();
  return theme === 'system' ? system.matches : theme === 'dark';
}

export function startTheme(): void {
  system.addEventListener('change', paint);
  paint();
}

function paint(): void {
  document.documentElement.dataset['theme'] = isDark() ? 'dark' : 'light';
}

function stored(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === 'light' || kept === 'dark' ? kept : 'system';
}
