import { useQuery } from '@tanstack/react-query';
import { FolderOpen } from 'lucide-react';
import { useId, type FormEvent } from 'react';
import { apiRequest, RequestProblem } from '../api/http';
import type { RoomEntry } from '../chat/state';
import { escapeHidden } from '../markdown/hiddenCharacters';
import { useIsAdmin } from '../session/session';
import { Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Button } from '../ui/button';
import { Field } from '../ui/field';
import { Section } from './Section';

/** Project folder of a room on the hub's machine. Members see it; hub admins set it. */
export function ProjectRoot({ room }: { room: RoomEntry }) {
  const isAdmin = useIsAdmin();
  const { data: allowed } = useQuery({
    queryKey: ['project-roots'],
    queryFn: async () => (await apiRequest<{ roots: string[] }>('GET', '/api/project-roots')).roots,
    enabled: isAdmin,
  });
  const { projectRoot } = room;
  const canChoose = isAdmin && (allowed?.length ?? 0) > 0;
  if (projectRoot === undefined && !canChoose) return null;
  return (
    <Section title={text.details.root}>
      {projectRoot !== undefined && (
        <p className="flex items-start gap-2 text-sm">
          <FolderOpen size={15} aria-hidden className="mt-0.5 shrink-0 text-faint" />
          <span className="font-mono text-xs leading-5 break-all">{escapeHidden(projectRoot)}</span>
        </p>
      )}
      {canChoose && <RootForm key={projectRoot} room={room} allowed={allowed ?? []} />}
    </Section>
  );
}

function RootForm({ room, allowed }: { room: RoomEntry; allowed: string[] }) {
  const listId = useId();
  const { attempt, problem, isBusy } = useSubmit();
  const set = (projectRoot: string | null) => attempt(() => put(room.id, projectRoot));
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    void set(String(new FormData(event.currentTarget).get('root')).trim());
  };
  return (
    <form className="mt-3 space-y-2" onSubmit={save}>
      <Field
        label={text.details.rootPath}
        hint={text.details.rootHint}
        name="root"
        list={listId}
        placeholder={allowed[0]}
        defaultValue={room.projectRoot}
        className="h-9 py-1 font-mono text-xs"
        autoComplete="off"
        required
      />
      <datalist id={listId}>
        {allowed.map((root) => (
          <option key={root} value={root} />
        ))}
      </datalist>
      <Problem>{problem}</Problem>
      <div className="flex gap-2">
        <Button size="small" type="submit" disabled={isBusy}>
          {text.save}
        </Button>
        {room.projectRoot !== undefined && (
          <Button size="small" variant="plain" disabled={isBusy} onClick={() => void set(null)}>
            {text.details.rootClear}
          </Button>
        )}
      </div>
    </form>
  );
}

async function put(roomId: string, projectRoot: string | null): Promise<void> {
  try {
    await apiRequest('PUT', `/api/rooms/${roomId}/project-root`, { projectRoot });
  } catch (failure) {
    // The hub returns the same error for a missing folder and one that is not allowed, to not reveal which
    // exist.
    const isRefused = failure instanceof RequestProblem && failure.status === 403;
    throw isRefused ? new RequestProblem(403, { error: text.details.rootRejected }) : failure;
  }
}
