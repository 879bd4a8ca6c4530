import { Check, Circle, ListChecks, LoaderCircle, Minus } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import type { ChatMessage, Plan, PlanItem } from '../chat/state';
import { useHouse } from '../session/session';
import { text } from '../text';
import { Button } from '../ui/button';
import { classes } from '../ui/classes';
import { INPUT } from '../ui/field';

const RichText = lazy(() => import('../markdown/RichText'));
const NOBODY: readonly string[] = [];

/** What an agent means to do, how far it is, and the word of people on it. */
export function PlanBlock({ message, plan }: { message: ChatMessage; plan: Plan }) {
  const done = plan.items.filter((item) => item.status === 'done' || item.status === 'skipped').length;
  return (
    <section aria-label={text.runs.plan} className="overflow-hidden rounded-xl border bg-raised">
      <header className="flex items-center gap-2 border-b px-3 py-2 text-sm">
        <ListChecks size={16} className="shrink-0 text-accent" />
        <span className="truncate font-semibold">{plan.summary}</span>
        <span className="ml-auto shrink-0 text-xs text-faint tabular-nums">
          {text.runs.planStatus[plan.status]} · {done}/{plan.items.length}
        </span>
      </header>
      <ol className="space-y-1.5 px-3 py-2.5">
        {plan.items.map((item, index) => (
          <Item key={index} item={item} />
        ))}
      </ol>
      {plan.planText !== undefined && (
        <details className="border-t px-3 py-2 text-sm">
          <summary className="text-faint hover:text-soft">{text.more}</summary>
          <div className="prose-parlor mt-2">
            <Suspense fallback={<p>{plan.planText}</p>}>
              <RichText isStreaming={false} names={NOBODY} mine={NOBODY}>
                {plan.planText}
              </RichText>
            </Suspense>
          </div>
        </details>
      )}
      {plan.status === 'planned' && <Verdict message={message} />}
    </section>
  );
}

function Item({ item }: { item: PlanItem }) {
  const isOver = item.status === 'done' || item.status === 'skipped';
  return (
    <li className="flex gap-2.5 text-sm">
      <span className="mt-0.5">
        <ItemState status={item.status} />
      </span>
      <span>
        <span className={classes(isOver && 'text-faint', item.status === 'skipped' && 'line-through')}>{item.title}</span>
        {item.description !== undefined && <span className="block text-xs text-faint">{item.description}</span>}
      </span>
    </li>
  );
}

function ItemState({ status }: { status: PlanItem['status'] }) {
  switch (status) {
    case 'done':
      return <Check size={15} className="text-accent" />;
    case 'in_progress':
      return <LoaderCircle size={15} className="animate-spin text-accent" />;
    case 'skipped':
      return <Minus size={15} className="text-faint" />;
    case 'pending':
      return <Circle size={15} className="text-line-strong" />;
  }
}

/** People answer a plan as they answer anything: by saying so to the agent. */
function Verdict({ message }: { message: ChatMessage }) {
  const house = useHouse();
  const [isEditing, setEditing] = useState(false);
  const [changes, setChanges] = useState('');
  const say = (words: string) =>
    house.say(message.roomId, { content: `@${message.senderName} ${words}`, replyToId: message.id, attachments: [] });
  if (isEditing) {
    return (
      <form
        className="flex gap-2 border-t p-2"
        onSubmit={(event) => {
          event.preventDefault();
          say(text.runs.editWords + changes);
          setEditing(false);
        }}
      >
        <input
          autoFocus
          required
          aria-label={text.runs.edit}
          className={classes(INPUT, 'h-8 py-1 text-sm')}
          value={changes}
          onChange={(event) => setChanges(event.target.value)}
        />
        <Button size="small" look="primary" type="submit" className="h-8">
          {text.composer.send}
        </Button>
      </form>
    );
  }
  return (
    <footer className="flex gap-2 border-t px-3 py-2">
      <Button size="small" look="primary" onClick={() => say(text.runs.approveWords)}>
        {text.runs.approve}
      </Button>
      <Button size="small" onClick={() => setEditing(true)}>
        {text.runs.edit}
      </Button>
      <Button size="small" look="danger" onClick={() => say(text.runs.rejectWords)}>
        {text.runs.reject}
      </Button>
    </footer>
  );
}
