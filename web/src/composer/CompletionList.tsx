import { Avatar } from '../ui/avatar';
import { classes } from '../ui/classes';
import type { Choice } from './completion';

export const OPTION_ID = 'completion-';

interface Props {
  choices: Choice[];
  chosen: number;
  onSelect: (choice: Choice) => void;
}

export function CompletionList({ choices, chosen, onSelect }: Props) {
  return (
    <ul
      id="completion"
      role="listbox"
      className="absolute bottom-full left-0 z-20 mb-1.5 w-80 max-w-full animate-appear rounded-xl border bg-raised p-1 shadow-float"
    >
      {choices.map((choice, index) => (
        <li
          key={choice.key}
          id={`${OPTION_ID}${index}`}
          role="option"
          aria-selected={index === chosen}
          className={classes(
            'flex cursor-pointer items-center gap-2.5 rounded-lg px-2 py-1.5 text-sm',
            index === chosen && 'bg-hover',
          )}
          // On pointer down, because a click would first move the focus out of the message field.
          onPointerDown={(event) => {
            event.preventDefault();
            onSelect(choice);
          }}
        >
          {choice.member !== undefined && (
            <Avatar id={choice.member.memberId} name={choice.label} kind={choice.member.memberType} size={22} />
          )}
          {choice.sign !== undefined && <span className="text-base">{choice.sign}</span>}
          <span className="font-medium">{choice.label}</span>
          {choice.hint !== undefined && <span className="truncate text-faint">{choice.hint}</span>}
        </li>
      ))}
    </ul>
  );
}
