import { Plus } from 'lucide-react';
import { useEffect, useMemo, useState } from 'react';
import { useChat } from '../chat/store';
import type { RoomEntry } from '../chat/state';
import type { Task } from '../generated/api';
import { roomPath } from '../router';
import { useClient } from '../session/session';
import { text } from '../text';
import { Button } from '../ui/button';
import { DialogBoundary } from '../ui/dialog';
import { EmptyState, Page } from '../ui/page';
import { COLUMNS, tasksOf } from './columns';
import { TaskCard } from './TaskCard';
import { TaskDialog } from './TaskDialog';

/** Task board of a room. */
export default function TasksPage({ roomId, isWide }: { roomId: string; isWide: boolean }) {
  const room = useChat((state) => state.rooms[roomId]);
  const known = useChat((state) => state.chats[roomId]?.tasks);
  const isLive = useChat((state) => state.connection === 'live');
  const client = useClient();
  const [problem, setProblem] = useState<string>();
  const [editing, setEditing] = useState<Task | 'new'>();
  const isMissing = known === undefined;
  useEffect(() => {
    if (!isMissing || !isLive) return;
    client.loader.loadTasks(roomId).catch((failure: unknown) => setProblem(failure instanceof Error ? failure.message : text.failed));
  }, [client, roomId, isMissing, isLive]);
  const tasks = useMemo(() => Object.values(known ?? {}), [known]);
  if (room === undefined) {
    return (
      <Page title={text.tasks.heading} isWide={isWide}>
        <EmptyState title={text.rooms.notFound} />
      </Page>
    );
  }
  const actions = (
    <Button variant="primary" onClick={() => setEditing('new')}>
      <Plus size={16} />
      {text.tasks.add}
    </Button>
  );
  return (
    <Page title={text.tasks.titleFor(room.name)} back={roomPath(roomId)} isWide={isWide} actions={actions} isBroad>
      {problem !== undefined && (
        <p role="alert" className="mb-4 text-sm text-danger">
          {problem}
        </p>
      )}
      {known !== undefined && tasks.length === 0 ? (
        <EmptyState title={text.tasks.none} lead={text.tasks.noneLead} />
      ) : (
        <Board room={room} tasks={tasks} onEdit={setEditing} />
      )}
      {editing !== undefined && (
        <DialogBoundary onClose={() => setEditing(undefined)}>
          <TaskDialog room={room} task={editing === 'new' ? undefined : editing} onClose={() => setEditing(undefined)} />
        </DialogBoundary>
      )}
    </Page>
  );
}

interface BoardProps {
  room: RoomEntry;
  tasks: Task[];
  onEdit: (task: Task) => void;
}

function Board({ room, tasks, onEdit }: BoardProps) {
  return (
    <div className="grid gap-4 md:grid-cols-2 xl:grid-cols-4">
      {COLUMNS.map(({ id }) => {
        const here = tasksOf(tasks, id);
        return (
          <section key={id} aria-label={text.tasks.columns[id]} className="rounded-2xl bg-ground p-3">
            <h2 className="mb-2.5 flex items-baseline gap-2 px-1 text-sm font-semibold">
              {text.tasks.columns[id]}
              <span className="text-xs font-normal text-faint tabular-nums">{here.length}</span>
            </h2>
            <ul className="space-y-2">
              {here.map((task) => (
                <TaskCard key={task.id} room={room} task={task} onEdit={() => onEdit(task)} />
              ))}
            </ul>
          </section>
        );
      })}
    </div>
  );
}
