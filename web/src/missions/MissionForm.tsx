import { useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import type { RoomEntry } from '../chat/state';
import { Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Button } from '../ui/button';
import { Field, TextArea } from '../ui/field';
import { MIN_IDLE_SECS, MAX_IDLE_SECS, setMission, DEFAULT_IDLE_SECS, type Mission, type MissionAgent } from './missions';

interface Props {
  room: RoomEntry;
  /** Active mission that is replaced, if there is one. */
  mission: Mission | undefined;
  onDone: () => void;
}

export function MissionForm({ room, mission, onDone }: Props) {
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const agents = room.members.filter((member) => member.memberType === 'agent');
  // Only the user's changes: the members may load after the form is shown.
  const [choices, setChoices] = useState<Record<string, boolean>>({});
  const isChosen = (id: string) => choices[id] ?? mission?.agents.some((agent) => agent.id === id) ?? true;
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const agentIds = agents.map(({ memberId }) => memberId).filter(isChosen);
    void attempt(async () => {
      await setMission(room.id, String(form.get('text')).trim(), agentIds.map((id) => agentOf(form, id)));
      await queries.invalidateQueries({ queryKey: ['missions'] });
      onDone();
    });
  };
  return (
    <form className="space-y-5" onSubmit={save}>
      <TextArea label={text.missions.text} hint={text.missions.textHint} name="text" defaultValue={mission?.text} maxLength={10_000} autoFocus required />
      <fieldset className="space-y-3">
        <legend className="mb-2 text-sm font-medium text-soft">{text.missions.agents}</legend>
        {agents.length === 0 && <p className="text-sm text-faint">{text.missions.noAgents}</p>}
        {agents.map(({ memberId: id, displayName }) => {
          const before = mission?.agents.find((agent) => agent.id === id);
          return (
            <div key={id} className="rounded-xl border p-3.5">
              <label className="flex items-center gap-2.5 text-sm font-medium">
                <input
                  type="checkbox"
                  className="size-4 accent-(--accent)"
                  checked={isChosen(id)}
                  onChange={({ target }) => setChoices({ ...choices, [id]: target.checked })}
                />
                {displayName}
              </label>
              {isChosen(id) && (
                <div className="mt-3 grid gap-3 sm:grid-cols-[1fr_9rem]">
                  <Field label={text.missions.prompt} name={`prompt ${id}`} placeholder={text.missions.promptPlaceholder} defaultValue={before?.idle_prompt ?? ''} maxLength={10_000} />
                  <Field
                    label={text.missions.seconds}
                    name={`seconds ${id}`}
                    type="number"
                    min={MIN_IDLE_SECS}
                    max={MAX_IDLE_SECS}
                    defaultValue={before?.idle_interval_secs ?? DEFAULT_IDLE_SECS}
                    required
                  />
                </div>
              )}
            </div>
          );
        })}
      </fieldset>
      <Problem>{problem}</Problem>
      <div className="flex gap-2">
        <Button variant="primary" type="submit" disabled={isBusy}>
          {text.missions.submit}
        </Button>
        <Button variant="plain" onClick={onDone}>
          {text.cancel}
        </Button>
      </div>
    </form>
  );
}

function agentOf(form: FormData, id: string): MissionAgent {
  const prompt = String(form.get(`prompt ${id}`)).trim();
  return { id, idle_interval_secs: Number(form.get(`seconds ${id}`)), ...(prompt !== '' && { idle_prompt: prompt }) };
}
