import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { apiRequest } from '../api/http';
import { roomsOf } from '../agents/rooms';
import type { AgentSession, SessionChanges } from '../generated/api';
import { Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Button } from '../ui/button';
import { Choice, Field } from '../ui/field';
import { agentUrl, changesOf, formOf, MAX_TITLE_CHARS, sessionsOf } from './mail';

const MAX_DEBOUNCE_SECS = 600;
const MAX_BATCH = 100;

interface Props {
  agentId: string;
  session: AgentSession;
  /** Whether the setting of the agent turns automatic turns on. */
  isOnForAgent: boolean;
  onClose: () => void;
}

/** Form for title, automatic turns and room of a session. */
export function SessionSettings({ agentId, session, isOnForAgent, onClose }: Props) {
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const [title, setTitle] = useState(session.title);
  const [autoRun, setAutoRun] = useState(() => formOf(session.autoRun));
  const [roomId, setRoom] = useState(session.roomId ?? '');
  const { data: rooms = [] } = useQuery(roomsOf(agentId));
  const isUnknownRoom = roomId !== '' && !rooms.some((room) => room.id === roomId);
  const roomOptions = [
    { value: '', label: text.sessions.noRoom },
    ...rooms.map((room) => ({ value: room.id, label: room.name })),
    ...(isUnknownRoom ? [{ value: roomId, label: text.sessions.otherRoom }] : []),
  ];
  const save = () =>
    attempt(async () => {
      const changes: SessionChanges = { title, autoRun: changesOf(autoRun), roomId: roomId === '' ? null : roomId };
      await apiRequest('PUT', `${agentUrl(agentId)}/sessions/${encodeURIComponent(session.id)}`, changes);
      await queries.invalidateQueries({ queryKey: sessionsOf(agentId).queryKey });
      onClose();
    });
  return (
    <form
      aria-label={text.sessions.settingsOf(session.title)}
      className="space-y-3 rounded-xl border bg-surface p-4"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <Field label={text.sessions.title} required maxLength={MAX_TITLE_CHARS} value={title} onChange={({ target }) => setTitle(target.value)} />
      <div className="grid gap-3 sm:grid-cols-2">
        <Choice
          label={text.sessions.automaticTurns}
          value={autoRun.mode}
          options={[
            { value: 'inherit', label: text.sessions.inherit(isOnForAgent) },
            { value: 'on', label: text.sessions.on },
            { value: 'off', label: text.sessions.off },
          ]}
          onChange={(mode) => setAutoRun({ ...autoRun, mode })}
        />
        <Choice label={text.sessions.room} value={roomId} options={roomOptions} onChange={setRoom} />
      </div>
      {autoRun.mode === 'on' && (
        <div className="grid gap-3 sm:grid-cols-3">
          <Field
            label={text.sessions.model}
            placeholder={text.sessions.hubModel}
            maxLength={MAX_TITLE_CHARS}
            value={autoRun.model}
            onChange={({ target }) => setAutoRun({ ...autoRun, model: target.value })}
          />
          <Field
            label={text.sessions.debounce}
            type="number"
            min={0}
            max={MAX_DEBOUNCE_SECS}
            step="any"
            placeholder="3"
            value={autoRun.seconds}
            onChange={({ target }) => setAutoRun({ ...autoRun, seconds: target.value })}
          />
          <Field
            label={text.sessions.batch}
            type="number"
            min={1}
            max={MAX_BATCH}
            step={1}
            placeholder="20"
            value={autoRun.batch}
            onChange={({ target }) => setAutoRun({ ...autoRun, batch: target.value })}
          />
        </div>
      )}
      <p className="text-xs text-faint">{text.sessions.roomHint}</p>
      <Problem>{problem}</Problem>
      <div className="flex justify-end gap-2">
        <Button variant="plain" onClick={onClose}>
          {text.cancel}
        </Button>
        <Button variant="primary" type="submit" disabled={isBusy}>
          {text.save}
        </Button>
      </div>
    </form>
  );
}
