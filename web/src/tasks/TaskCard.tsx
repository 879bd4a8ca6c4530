import { CalendarClock, MoreHorizontal } from 'lucide-react';
import { apiRequest } from '../api/http';
import type { RoomEntry } from '../chat/state';
import type { Task, TaskStatus } from '../generated/api';
import { stripDirectionMarks } from '../markdown/hiddenCharacters';
import { Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Avatar } from '../ui/avatar';
import { IconButton } from '../ui/button';
import { classes } from '../ui/classes';
import { Menu, MenuItem, MenuLine } from '../ui/menu';
import { shortTime, fullTime } from '../ui/time';
import { isOverdue, nextOf } from './columns';

interface Props {
  room: RoomEntry;
  task: Task;
  onEdit: () => void;
}

export function TaskCard({ room, task, onEdit }: Props) {
  const { attempt, problem } = useSubmit();
  const assignee = room.members.find((member) => member.memberId === task.assigneeId);
  const path = `/api/tasks/${task.id}`;
  const move = (status: TaskStatus) => void attempt(() => apiRequest('PUT', path, { status }));
  const remove = () => void attempt(() => apiRequest('DELETE', path));
  const isOver = task.status === 'cancelled' || task.status === 'failed';
  return (
    <li aria-label={task.title} className="group/task relative rounded-xl border bg-surface p-3 pr-9">
      <p className={classes('text-sm font-medium break-words', task.status === 'cancelled' && 'text-faint line-through')}>
        {stripDirectionMarks(task.title)}
      </p>
      {task.description !== undefined && (
        <p className="mt-1 line-clamp-3 text-xs whitespace-pre-wrap text-soft">{stripDirectionMarks(task.description)}</p>
      )}
      {task.result !== undefined && (
        <p className="mt-1.5 line-clamp-4 rounded-lg bg-code px-2.5 py-1.5 text-xs whitespace-pre-wrap">{stripDirectionMarks(task.result)}</p>
      )}
      {(assignee !== undefined || task.dueDate !== undefined || isOver) && (
        <p className="mt-2 flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-soft">
          {assignee !== undefined && (
            <span className="flex min-w-0 items-center gap-1.5">
              <Avatar id={assignee.memberId} name={assignee.displayName} kind={assignee.memberType} size={18} />
              <span className="truncate">{assignee.displayName}</span>
            </span>
          )}
          {task.dueDate !== undefined && <Due task={task} date={task.dueDate} />}
          {isOver && <span className={task.status === 'failed' ? 'text-danger' : ''}>{text.tasks.status[task.status]}</span>}
        </p>
      )}
      <Problem>{problem}</Problem>
      <Menu
        trigger={
          <IconButton label={`${text.more}: ${task.title}`} className="absolute top-1.5 right-1.5 size-7">
            <MoreHorizontal size={15} />
          </IconButton>
        }
      >
        {nextOf(task.status).map((status) => (
          <MenuItem key={status} onSelect={() => move(status)}>
            {text.tasks.moveTo[status]}
          </MenuItem>
        ))}
        <MenuLine />
        <MenuItem onSelect={onEdit}>{text.tasks.edit}</MenuItem>
        <MenuItem danger onSelect={remove}>
          {text.remove}
        </MenuItem>
      </Menu>
    </li>
  );
}

function Due({ task, date }: { task: Task; date: string }) {
  const at = Date.parse(date);
  return (
    <time
      dateTime={date}
      title={fullTime(at)}
      className={classes('flex items-center gap-1', isOverdue(task, Date.now()) && 'font-medium text-danger')}
    >
      <CalendarClock size={13} aria-hidden />
      {shortTime(at, Date.now())}
    </time>
  );
}
