import { useState } from 'react';
import { apiRequest } from '../api/http';
import type { RoomEntry } from '../chat/state';
import type { RoomBody, RoomPolicy, RoomRole } from '../generated/api';
import { navigate } from '../router';
import { text } from '../text';
import { Button } from '../ui/button';
import { Dialog } from '../ui/dialog';
import { Choice, Field, TextArea } from '../ui/field';
import { Section } from './Section';

const POLICIES: { value: RoomPolicy; label: string }[] = [
  { value: 'mention', label: text.details.policyMention },
  { value: 'triage', label: text.details.policyTriage },
  { value: 'all', label: text.details.policyAll },
];
const ROLES: { value: RoomRole; label: string }[] = [
  { value: 'member', label: text.details.member },
  { value: 'admin', label: text.details.admin },
  { value: 'owner', label: text.details.owner },
];

export function RoomSettings({ room }: { room: RoomEntry }) {
  const [name, setName] = useState(room.name);
  const [prompt, setPrompt] = useState(room.systemPrompt ?? '');
  const [problem, setProblem] = useState<string>();
  const [isRemoving, setRemoving] = useState(false);
  if (room.role === 'member') return null;
  const change = (changes: RoomBody) =>
    apiRequest('PUT', `/api/rooms/${room.id}`, changes).then(
      () => setProblem(undefined),
      (failure: unknown) => setProblem(failure instanceof Error ? failure.message : text.failed),
    );
  const isChanged = name.trim() !== room.name || prompt !== (room.systemPrompt ?? '');
  return (
    <Section title={text.details.settings}>
      <div className="space-y-4">
        <Field label={text.details.name} value={name} maxLength={100} onChange={({ target }) => setName(target.value)} />
        <TextArea
          label={text.details.systemPrompt}
          hint={text.details.systemPromptHint}
          value={prompt}
          onChange={({ target }) => setPrompt(target.value)}
        />
        {isChanged && (
          <Button
            variant="primary"
            size="small"
            disabled={name.trim() === ''}
            onClick={() => void change({ name: name.trim(), systemPrompt: prompt.trim() === '' ? null : prompt })}
          >
            {text.save}
          </Button>
        )}
        <Choice
          label={text.details.policy}
          value={room.policy}
          options={POLICIES}
          onChange={(policy) => void change({ policy })}
        />
        <Choice
          label={text.details.approveRole}
          value={room.approveRole}
          options={ROLES}
          onChange={(approveRole) => void change({ approveRole })}
        />
        {problem !== undefined && (
          <p role="alert" className="text-sm text-danger">
            {problem}
          </p>
        )}
        {room.role === 'owner' && (
          <Button variant="danger" size="small" onClick={() => setRemoving(true)}>
            {text.details.deleteRoom}
          </Button>
        )}
      </div>
      {isRemoving && (
        <Dialog open onClose={() => setRemoving(false)} title={text.details.deleteRoom} lead={text.details.deleteRoomConfirm}>
          <div className="flex justify-end gap-2">
            <Button variant="plain" onClick={() => setRemoving(false)}>
              {text.cancel}
            </Button>
            <Button
              variant="danger"
              onClick={() => void apiRequest('DELETE', `/api/rooms/${room.id}`).then(() => navigate('/app/', 'replace'))}
            >
              {text.details.deleteRoom}
            </Button>
          </div>
        </Dialog>
      )}
    </Section>
  );
}
