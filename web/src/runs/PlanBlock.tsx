import { Check, Circle, ListChecks, LoaderCircle, Minus } from 'lucide-react';
import { lazy, Suspense, useState, type FormEvent } from 'react';
import { apiRequest } from '../api/http';
import type { Reply } from '../chat/message';
import type { Plan, PlanItem } from '../chat/parts';
import { sessionOf } from '../chat/place';
import { Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Button } from '../ui/button';
import { classes } from '../ui/classes';
import { TextArea } from '../ui/field';

const RichText = lazy(() => import('../markdown/RichText'));
const NO_NAMES: readonly string[] = [];

/** Plan of an agent, with its progress and, while it is proposed, buttons to decide. */
export function PlanBlock({ message, plan }: { message: Reply; plan: Plan }) {
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
              <RichText isStreaming={false} names={NO_NAMES} mine={NO_NAMES}>
                {plan.planText}
              </RichText>
            </Suspense>
          </div>
        </details>
      )}
      {plan.status === 'planned' && sessionOf(message.roomId) === undefined && <PlanDecision message={message} plan={plan} />}
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

/** Approves, rejects or edits a proposed plan. The hub stores the decision and sends it to the agent. */
function PlanDecision({ message, plan }: { message: Reply; plan: Plan }) {
  const [isEditing, setEditing] = useState(false);
  const { attempt, problem, isBusy } = useSubmit();
  const decide = (decision: 'approve' | 'reject' | 'edit', more: { text?: string } = {}) =>
    attempt(() => apiRequest('POST', `/api/plan/${decision}`, { agent_id: message.from, session_id: message.roomId, ...more }));
  const edit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const edited = String(new FormData(event.currentTarget).get('text'));
    await decide('edit', { text: edited });
    setEditing(false);
  };
  return (
    <footer className="space-y-2 border-t px-3 py-2">
      {isEditing ? (
        <form className="space-y-2" onSubmit={(event) => void edit(event)}>
          <TextArea
            label={text.runs.editPlan}
            hint={text.runs.editPlanHint}
            name="text"
            defaultValue={plan.planText ?? planAsText(plan)}
            className="text-sm"
            autoFocus
            required
          />
          <div className="flex gap-2">
            <Button size="small" variant="primary" type="submit" disabled={isBusy}>
              {text.save}
            </Button>
            <Button size="small" variant="plain" onClick={() => setEditing(false)}>
              {text.cancel}
            </Button>
          </div>
        </form>
      ) : (
        <div className="flex gap-2">
          <Button size="small" variant="primary" disabled={isBusy} onClick={() => void decide('approve')}>
            {text.runs.approve}
          </Button>
          <Button size="small" disabled={isBusy} onClick={() => setEditing(true)}>
            {text.runs.edit}
          </Button>
          <Button size="small" variant="danger" disabled={isBusy} onClick={() => void decide('reject')}>
            {text.runs.reject}
          </Button>
        </div>
      )}
      <Problem>{problem}</Problem>
    </footer>
  );
}

/** Steps of a plan as a numbered list. */
function planAsText({ items }: Plan): string {
  return items
    .map(({ title, description }, index) => `${index + 1}. ${title}${description === undefined ? '' : `: ${description}`}`)
    .join('\n');
}
