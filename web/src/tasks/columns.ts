/** Where a task stands on the board, and where it can go. */
import type { Task, TaskStatus } from '../generated/api';

export const COLUMNS = [
  { id: 'todo', statuses: ['pending'] },
  { id: 'doing', statuses: ['in_progress'] },
  { id: 'waiting', statuses: ['input_required'] },
  { id: 'done', statuses: ['completed', 'failed', 'cancelled'] },
] as const satisfies { id: string; statuses: readonly TaskStatus[] }[];

export type ColumnId = (typeof COLUMNS)[number]['id'];

/** What has to be done soonest first; what is over, newest first. */
export function tasksOf(tasks: Task[], column: ColumnId): Task[] {
  const { statuses } = COLUMNS.find((one) => one.id === column) ?? COLUMNS[0];
  const here = tasks.filter((task) => statuses.some((status) => status === task.status));
  if (column === 'done') return here.toSorted((a, b) => b.updatedAt.localeCompare(a.updatedAt));
  const due = (task: Task) => task.dueDate ?? '9999';
  return here.toSorted((a, b) => due(a).localeCompare(due(b)) || a.createdAt.localeCompare(b.createdAt));
}

/** The hub wants what is over to be taken up again before it goes on. */
export function nextOf(status: TaskStatus): TaskStatus[] {
  switch (status) {
    case 'pending':
      return ['in_progress', 'completed', 'cancelled'];
    case 'in_progress':
      return ['completed', 'input_required', 'pending', 'cancelled'];
    case 'input_required':
      return ['in_progress', 'completed', 'cancelled'];
    default:
      return ['pending'];
  }
}

export function isOverdue({ dueDate, status }: Task, now: number): boolean {
  const isOver = status === 'completed' || status === 'cancelled';
  return dueDate !== undefined && !isOver && Date.parse(dueDate) < now;
}
