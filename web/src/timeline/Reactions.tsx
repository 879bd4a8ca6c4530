import { useChat } from '../chat/store';
import type { LoggedMessage } from '../chat/message';
import { text } from '../text';
import { classes } from '../ui/classes';
import { react } from './MessageActions';

export function Reactions({ message }: { message: LoggedMessage }) {
  const me = useChat((state) => state.me?.id) ?? '';
  if (message.reactions.length === 0) return null;
  return (
    <div className="mt-1 flex flex-wrap gap-1">
      {message.reactions.map(({ emoji, userIds, usernames }) => {
        const isMine = userIds.includes(me);
        return (
          <button
            key={emoji}
            type="button"
            aria-pressed={isMine}
            title={usernames.join(', ')}
            aria-label={text.timeline.reactedBy(emoji, usernames.join(', '))}
            onClick={() => react(message.id, emoji)}
            className={classes(
              'inline-flex h-6 items-center gap-1 rounded-full border px-2 text-sm tabular-nums',
              isMine ? 'border-accent/50 bg-accent-soft text-accent' : 'bg-raised text-soft hover:border-line-strong',
            )}
          >
            <span>{emoji}</span>
            {userIds.length}
          </button>
        );
      })}
    </div>
  );
}
