import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { apiRequest } from '../api/http';
import type { SessionChanges } from '../generated/api';
import { Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Button } from '../ui/button';
import { Field } from '../ui/field';
import { agentUrl, isSessionId, MAX_ID_CHARS, MAX_TITLE_CHARS, sessionsOf } from './mail';

interface Props {
  agentId: string;
  /** Ids of the agent's sessions. */
  taken: string[];
  onClose: () => void;
}

/** Form that creates a session of an agent. */
export function NewSession({ agentId, taken, onClose }: Props) {
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const [id, setId] = useState('');
  const [title, setTitle] = useState('');
  // The hub would change the session that has the id.
  const isTaken = taken.includes(id);
  const create = () =>
    attempt(async () => {
      const changes: SessionChanges = title.trim() === '' ? {} : { title: title.trim() };
      await apiRequest('PUT', `${agentUrl(agentId)}/sessions/${encodeURIComponent(id)}`, changes);
      await queries.invalidateQueries({ queryKey: sessionsOf(agentId).queryKey });
      onClose();
    });
  return (
    <form
      aria-label={text.sessions.add}
      className="space-y-3 rounded-xl border bg-surface p-4"
      onSubmit={(event) => {
        event.preventDefault();
        void create();
      }}
    >
      <div className="grid gap-3 sm:grid-cols-2">
        <Field
          label={text.sessions.name}
          hint={text.sessions.nameHint}
          {...(isTaken && { problem: text.sessions.taken })}
          className="font-mono"
          required
          autoFocus
          maxLength={MAX_ID_CHARS}
          value={id}
          onChange={({ target }) => setId(target.value)}
        />
        <Field
          label={text.sessions.title}
          hint={text.sessions.titleHint}
          maxLength={MAX_TITLE_CHARS}
          value={title}
          onChange={({ target }) => setTitle(target.value)}
        />
      </div>
      <Problem>{problem}</Problem>
      <div className="flex justify-end gap-2">
        <Button variant="plain" onClick={onClose}>
          {text.cancel}
        </Button>
        <Button variant="primary" type="submit" disabled={isBusy || isTaken || !isSessionId(id)}>
          {text.sessions.create}
        </Button>
      </div>
    </form>
  );
}
