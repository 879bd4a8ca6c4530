/** Completion of mentions, slash commands and emoji at the caret. Pure functions. */
import type { MemberFrame } from '../generated/api';
import { COMMANDS } from './commands';
import { EMOJI } from './emoji';

export interface Trigger {
  kind: 'mention' | 'command' | 'emoji';
  query: string;
  /** Index where the completed text begins, including `@`, `/` or `:`. */
  from: number;
}

export interface Choice {
  key: string;
  label: string;
  hint?: string;
  /** Text that replaces the query. */
  insert: string;
  sign?: string;
  member?: MemberFrame;
}

const MAX_CHOICES = 8;

export function triggerAt(text: string, caret: number): Trigger | undefined {
  const before = text.slice(0, caret);
  const command = /^\/([a-z]*)$/i.exec(before);
  if (command !== null) return { kind: 'command', query: command[1] ?? '', from: 0 };
  // Names may contain spaces: the query may have two words.
  const mention = /(?:^|[\s(])@([^\s@]*(?: [^\s@]*)?)$/u.exec(before);
  if (mention !== null) {
    const query = mention[1] ?? '';
    return { kind: 'mention', query, from: caret - query.length - 1 };
  }
  const emoji = /(?:^|\s):([a-z0-9_+-]{2,})$/i.exec(before);
  return emoji === null
    ? undefined
    : { kind: 'emoji', query: emoji[1] ?? '', from: caret - (emoji[1] ?? '').length - 1 };
}

export function choicesFor(trigger: Trigger, members: MemberFrame[], me: string | undefined): Choice[] {
  const query = trigger.query.toLowerCase();
  switch (trigger.kind) {
    case 'command':
      return COMMANDS.filter(({ name }) => name.startsWith(query)).map(({ name, hint }) => ({
        key: name,
        label: `/${name}`,
        hint,
        insert: `/${name}`,
      }));
    case 'emoji':
      return EMOJI.filter(([name]) => name.includes(query))
        .toSorted(([a], [b]) => Number(b.startsWith(query)) - Number(a.startsWith(query)))
        .slice(0, MAX_CHOICES)
        .map(([name, sign]) => ({ key: name, label: `:${name}:`, insert: `${sign} `, sign }));
    case 'mention':
      return members
        .filter((member) => member.memberId !== me && matches(member.displayName, query))
        .toSorted((a, b) => Number(b.memberType === 'agent') - Number(a.memberType === 'agent'))
        .slice(0, MAX_CHOICES)
        .map((member) => ({
          key: member.memberId,
          label: member.displayName,
          hint: member.roleDescription,
          insert: `@${member.displayName} `,
          member,
        }));
  }
}

export function complete(text: string, caret: number, trigger: Trigger, choice: Choice): { text: string; caret: number } {
  const head = text.slice(0, trigger.from) + choice.insert;
  return { text: head + text.slice(caret), caret: head.length };
}

function matches(name: string, query: string): boolean {
  const lower = name.toLowerCase();
  return lower.startsWith(query) || lower.split(/[\s_-]+/).some((word) => word.startsWith(query));
}
