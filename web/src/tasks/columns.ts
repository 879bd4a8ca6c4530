/** Columns of the task board, and the allowed changes of status. */
import type { Task, TaskStatus } from '../generated/api';

export const COLUMNS = [
  { id: 'todo', statuses: ['pending'] },
  { id: 'doing', statuses: ['in_progress'] },
  { id: 'waiting', statuses: ['input_required'] },
  { id: 'done', statuses: ['completed', 'failed', 'cancelled'] },
] as const satisfies { id: string; statuses: readonly TaskStatus[] }[];

export type ColumnId = (typeof COLUMNS)[number]['id'];

/** Tasks of a column: open ones by due date, finished ones newest first. */
export function tasksOf(tasks: Task[], column: ColumnId): Task[] {
  const { statuses } = COLUMNS.find((other) => other.id === column) ?? COLUMNS[0];
  const here = tasks.filter((task) => statuses.some((status) => status === task.status));
  if (column === 'done') return here.toSorted((a, b) => b.updatedAt.localeCompare(a.updatedAt));
  const due = (task: Task) => task.dueDate ?? '9999';
  return here.toSorted((a, b) => due(a).localeCompare(due(b)) || a.createdAt.localeCompare(b.createdAt));
}

/** Statuses that can follow. The hub requires that a finished task is reopened first. */
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
  const isFinished = status === 'completed' || status === 'cancelled';
  return dueDate !== undefined && !isFinished && Date.parse(dueDate) < now;
}
