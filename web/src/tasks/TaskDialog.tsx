import { useState, type FormEvent } from 'react';
import { apiRequest } from '../api/http';
import type { RoomEntry } from '../chat/state';
import type { Task } from '../generated/api';
import { Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Dialog, FormButtons } from '../ui/dialog';
import { Choice, Field, TextArea } from '../ui/field';

interface Props {
  room: RoomEntry;
  /** Undefined for a new task. */
  task: Task | undefined;
  onClose: () => void;
}

export function TaskDialog({ room, task, onClose }: Props) {
  const [assigneeId, setAssignee] = useState(task?.assigneeId ?? '');
  const { attempt, problem, isBusy } = useSubmit();
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const fieldValue = (name: string) => String(form.get(name) ?? '').trim();
    const assignee = room.members.find((member) => member.memberId === assigneeId);
    // Empty fields are omitted for a new task, and `null` to clear them in an existing one.
    const empty = task === undefined ? undefined : null;
    const body = {
      title: fieldValue('title'),
      description: fieldValue('description') || empty,
      dueDate: fieldValue('due') === '' ? empty : new Date(fieldValue('due')).toISOString(),
      assigneeId: assignee?.memberId ?? empty,
      ...(assignee !== undefined && { assigneeType: assignee.memberType }),
    };
    void attempt(async () => {
      if (task === undefined) await apiRequest('POST', `/api/tasks/rooms/${room.id}`, body);
      else await apiRequest('PUT', `/api/tasks/${task.id}`, body);
      onClose();
    });
  };
  const members = room.members.map((member) => ({ value: member.memberId, label: member.displayName }));
  return (
    <Dialog open onClose={onClose} title={task === undefined ? text.tasks.add : text.tasks.edit}>
      <form className="space-y-4" onSubmit={save}>
        <Field label={text.tasks.title} name="title" defaultValue={task?.title} maxLength={200} autoFocus required />
        <TextArea label={text.tasks.description} name="description" defaultValue={task?.description} />
        <div className="grid gap-4 sm:grid-cols-2">
          <Choice
            label={text.tasks.assignee}
            value={assigneeId}
            options={[{ value: '', label: text.tasks.unassigned }, ...members]}
            onChange={setAssignee}
          />
          <Field label={text.tasks.due} name="due" type="datetime-local" defaultValue={localTime(task?.dueDate)} />
        </div>
        <Problem>{problem}</Problem>
        <FormButtons isBusy={isBusy} onClose={onClose} />
      </form>
    </Dialog>
  );
}

/** Local time without a zone, as `datetime-local` inputs require. */
function localTime(iso: string | undefined): string {
  if (iso === undefined) return '';
  const at = new Date(iso);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
